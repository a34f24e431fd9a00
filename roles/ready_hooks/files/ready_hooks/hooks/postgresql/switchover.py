# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The controlled switchover: this primary stops, its replica proves that it has everything and takes over."""

from __future__ import annotations

from typing import Any

from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.hooks.postgresql import conninfo, replica, wal
from ready_hooks.hooks.postgresql.decision import Phase, State
from ready_hooks.hooks.postgresql.pair import Pair
from ready_hooks.hooks.postgresql.server import Server, Unreachable

_OLDEST = 130000
# seconds that a switchover needs at least, those that stay for the start of the old primary, and
# most for the replay of the last records
_LEAST, _RESERVED, _REPLAY = 10.0, 5.0, 60.0


def ensure_ready(pair: Pair, other: Server) -> str:
    """Return the system identifier if the other server can take over now. Raises HookError."""
    if int(pair.own.setting("server_version_num")) < _OLDEST:
        raise HookError(pair.own.title, "its version is older than PostgreSQL 13", "use Patroni, or switch by hand")
    if pair.instance.is_patronis:
        raise HookError(pair.own.title, "Patroni manages this server", "set patroni to its configuration")
    system = pair.own.ask("SELECT system_identifier FROM pg_control_system()")
    try:
        found = replica.replica_state(other.ask(replica.QUESTION))
    except ValueError as error:
        raise HookError(other.title, str(error)) from None
    refusal = replica.refusal(found, system, pair.written(pair.own), pair.run.options["most_lag"])
    if refusal is not None:
        raise HookError(other.title, refusal[0], refusal[1])
    if not pair.own.holds("EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming')"):
        raise HookError(pair.own.title, "no replica streams from it", "repair the replication")
    _test_way_back(pair, system)
    return system


def ensure_time(deadline: Deadline, title: str) -> None:
    """Raise OutOfTime if too little time is left to switch over to this server or member."""
    left = deadline.left()
    if left < _LEAST:
        problem = f"only {left:.0f} s are left for a switchover, which has not begun"
        raise OutOfTime(title, problem, "set a longer timeout for the hook")


def _test_way_back(pair: Pair, system: str) -> None:
    """Raise HookError if this server could not stream from the new primary."""
    given = pair.run.options["primary_conninfo"] or pair.own.setting("primary_conninfo")
    if not given:
        remedy = 'set it, for example to "host=db2 user=replicator"'
        raise HookError("primary_conninfo", "this server has none for the time after the switchover", remedy)
    if conninfo.has_password(given):
        return  # psql would show it in the list of processes
    answer = pair.other(conninfo.replication(given)).ask("IDENTIFY_SYSTEM;")
    if answer.split("|")[0] != system:
        raise HookError(given, "primary_conninfo leads to another database system", "correct it")


class Switchover:
    """One switchover, which extends `data`, the record."""

    def __init__(self, pair: Pair, data: dict[str, Any]) -> None:
        self._pair, self._run, self._data = pair, pair.run, data
        self._other = pair.other(data["other"])

    def begin(self) -> None:
        """Switch over from a primary that runs. Raises HookError, after which this server is the primary again."""
        self._ensure_ready()
        self._run.act("write a checkpoint", self._pair.own.ask, "CHECKPOINT", None)
        self._ensure_ready()  # a checkpoint can take minutes
        self._enter(Phase.STOPPING)
        self.resume()

    def resume(self) -> None:
        """Continue in the phase STOPPING. Raises HookError as `begin`."""
        try:
            self._pair.stop(max(1.0, self._run.deadline.left() - _RESERVED))
            if self._run.dry_run:
                self._run.say(f"would verify that {self._other.title} has all records, and promote it")
                return
            self._verify()
            if self._run.options["suspend_synchronous"]:
                self._pair.suspend_synchronous(self._other, self._data)
            self._pair.instance.make_standby()
            self.promote()
        except HookError as error:
            if self._data["phase"] == Phase.STOPPING:
                self._run.warn(str(error))
                self.go_back()
            raise

    def promote(self) -> None:
        """Promote the other server, which has all records, and wait until it takes writes. Raises HookError."""
        if self._run.dry_run:
            self._run.say(f"would promote {self._other.title}")
            return
        is_first = self._data["phase"] == Phase.STOPPING
        self._enter(Phase.PROMOTING)
        self._run.say(f"promote {self._other.title}")
        try:
            # without a wait for its end, which could be canceled after the promotion was requested
            self._other.ask("SELECT pg_promote(false)")
        except Unreachable as error:
            self._run.warn(f"{error}; it may have taken the promotion")
        except HookError:
            if self._pair.state_of(self._other) is State.STANDBY:
                if is_first:
                    self._enter(Phase.STOPPING)  # it refused, and no earlier one can take effect
                raise
        if not self._run.deadline.wait_until(lambda: self._pair.state_of(self._other) is State.PRIMARY, interval=0.1):
            raise HookError(self._other.title, "it did not become the primary in time", "recover will try again")
        self._enter(Phase.PROMOTED)
        self._run.say(f"{self._other.title} is the primary")

    def go_back(self) -> None:
        """Start this server as the primary again; no promotion was sent. Raises HookError."""
        self._pair.run.act("undo the switchover", self._pair.instance.make_primary)
        self._pair.start(State.PRIMARY)
        self._pair.resume_synchronous(self._other, self._data)
        self._run.forget()

    def has_everything(self, checkpoint: int) -> bool:
        """Return True if the other server is a standby that replayed the last record. Raises HookError."""
        position = "coalesce(pg_last_wal_replay_lsn(), '0/0')"
        return wal.lsn(self._other.ask(f"SELECT {position}")) > checkpoint

    def _ensure_ready(self) -> None:
        """Raise HookError if the other server cannot take over now, or the time is too short."""
        ensure_ready(self._pair, self._other)
        ensure_time(self._run.deadline, self._other.title)

    def _verify(self) -> None:
        own = self._pair.instance.control_data()
        if own.state != wal.CLEAN:
            raise HookError(self._pair.own.title, f"it did not stop cleanly ({own.state})", "look at its log")
        self._data["checkpoint"] = own.checkpoint
        most = min(_REPLAY, max(1.0, self._run.deadline.left() - _RESERVED))
        if not self._run.deadline.wait_until(lambda: self.has_everything(own.checkpoint), most, 0.05):
            raise HookError(self._other.title, "it does not have the last records", "it is not promoted")
        self._run.say(f"{self._other.title} has all records")

    def _enter(self, phase: Phase) -> None:
        self._data["phase"] = phase.value
        self._run.remember(self._data)
