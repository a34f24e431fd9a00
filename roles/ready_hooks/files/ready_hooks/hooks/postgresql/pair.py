# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The two servers of one run: this host's and, where an option names it, the other one."""

from __future__ import annotations

from typing import Any

from ready_hooks.core.errors import HookError
from ready_hooks.core.hook import Run
from ready_hooks.hooks.postgresql import synchronous, wal
from ready_hooks.hooks.postgresql.decision import State
from ready_hooks.hooks.postgresql.instance import Instance, locate
from ready_hooks.hooks.postgresql.server import Server, Unreachable, variables

_STARTUP = 60.0


class Pair:
    """This server, and how to reach another one."""

    def __init__(self, run: Run) -> None:
        self.run = run
        options = run.options
        self.environment = variables(options["user"], options["password_file"], options["pgpass"])
        location = locate(options, run.deadline)
        self.instance = Instance(location, options["user"], run.deadline)
        target = f"port={location.port} dbname={options['database']}"
        self.own = Server(location.unit, target, options["user"], variables(options["user"]), run.deadline)

    def other(self, target: str) -> Server:
        """Return the server of a connection string."""
        return Server(target, target, self.run.options["user"], self.environment, self.run.deadline)

    def own_state(self) -> State:
        """Return the state of this server; wait for the end of its start. Raises HookError."""
        if not self.instance.has_process:
            return State.STOPPED
        if not self.run.deadline.wait_until(lambda: self.own.answers() or not self.instance.has_process, _STARTUP):
            raise HookError(self.own.title, "the server runs and does not answer", "look at its log")
        if not self.instance.has_process:
            return State.STOPPED
        return State.PRIMARY if self.own.is_primary else State.STANDBY

    def state_of(self, other: Server) -> State:
        """Return the state of the other server. Raises HookError."""
        try:
            return State.PRIMARY if other.is_primary else State.STANDBY
        except Unreachable as error:
            self.run.warn(str(error))
            return State.UNREACHABLE

    def stop(self, most: float) -> None:
        """Stop this server cleanly. Raises HookError."""
        self.run.act(f"stop {self.instance.location.unit}", self.instance.stop, most)

    def start(self, expected: State) -> None:
        """Start this server, and wait until it has the expected state. Raises HookError."""
        self.run.act(f"start {self.instance.location.unit} as a {expected.value}", self.instance.unit.change, "start")
        if self.run.dry_run:
            return

        def started() -> bool:
            return self.own.answers() and self.own.is_primary is (expected is State.PRIMARY)

        if not self.run.deadline.wait_until(started, interval=0.1):
            raise HookError(self.own.title, f"it did not start as a {expected.value}", "look at its log")

    def choose(self, target: str, data: dict[str, Any]) -> Server:
        """Return the other server, which the record names from now on. Raises HookError."""
        if data.get("other", target) != target:
            self.resume_synchronous(self.other(data["other"]), data)
        data["other"] = target
        return self.other(target)

    def suspend_synchronous(self, other: Server, data: dict[str, Any]) -> None:
        """Let the other server commit without this one; the record gets what `resume_synchronous` needs.

        A run that was killed has perhaps written the record only.
        """
        before = synchronous.present(other)
        if not before["names"]:
            return
        data["synchronous"] = before
        self.run.remember(data)
        self.run.act(f"set {synchronous.SETTING} of {other.title} to ''", synchronous.suspend, other, self.run.deadline)

    def resume_synchronous(self, other: Server, data: dict[str, Any]) -> None:
        """Restore the setting of the other server."""
        if "synchronous" not in data:
            return
        if self.run.dry_run:
            self.run.say(f"would restore {synchronous.SETTING} of {other.title}")
            return
        if synchronous.resume(other, data["synchronous"]):
            self.run.say(f"restored {synchronous.SETTING} of {other.title}")
        else:
            self.run.warn(f"{other.title}: {synchronous.SETTING} was changed during the maintenance; it stays as it is")
        del data["synchronous"]
        self.run.shorten_record(data)

    def written(self, server: Server) -> int:
        """Return the position of a primary. Raises HookError."""
        return wal.lsn(server.ask("SELECT pg_current_wal_lsn()"))

    def wait_until_streaming(self, other: Server, most: float | None = None) -> bool:
        """Wait until this standby streams from the other server, and lags at most by `most_lag`."""
        status = "coalesce((SELECT status FROM pg_stat_wal_receiver), '')"

        def streams() -> bool:
            try:
                if not self.own.holds(f"{status} = 'streaming'"):
                    return False
                replayed = wal.lsn(self.own.ask("SELECT coalesce(pg_last_wal_replay_lsn(), '0/0')"))
                return self.written(other) - replayed <= int(self.run.options["most_lag"])
            except HookError:
                return False

        return self.run.deadline.wait_until(streams, most, 0.2)
