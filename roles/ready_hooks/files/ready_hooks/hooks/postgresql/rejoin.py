# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The way back after a switchover: the old primary becomes a standby of the new one."""

from __future__ import annotations

from typing import Any

from ready_hooks.core.errors import HookError
from ready_hooks.hooks.postgresql import wal
from ready_hooks.hooks.postgresql.conninfo import quoted
from ready_hooks.hooks.postgresql.decision import Action, Phase, State, decide
from ready_hooks.hooks.postgresql.pair import Pair
from ready_hooks.hooks.postgresql.switchover import Switchover

# seconds in which a standby that can stream begins to
_FIRST_STREAM = 15.0
_STOP = 60.0


class Rejoin:
    """Undoes a switchover; `data` is the record."""

    def __init__(self, pair: Pair, data: dict[str, Any]) -> None:
        self._pair, self._run, self._data = pair, pair.run, data
        self._other = pair.other(data["other"])

    def settle(self) -> None:
        """Leave one primary, and this server as a part of the replication. Raises HookError."""
        other = self._pair.state_of(self._other)
        own = self._pair.own_state()
        action = decide(Phase(self._data["phase"]), own, other)
        self._run.say(f"this server: {own.value}, {self._other.title}: {other.value}; {action.value}")
        if action is Action.KEEP:
            self._pair.resume_synchronous(self._other, self._data)
        elif action is Action.START_AS_PRIMARY:
            if own is State.STANDBY:
                self._pair.stop(_STOP)
            Switchover(self._pair, self._data).go_back()
        elif action is Action.FINISH_PROMOTION:
            self._finish_promotion()
            self._rejoin(own)
        elif action is Action.REJOIN:
            self._rejoin(own)
        else:
            raise HookError(self._other.title, *_REMEDIES[action])

    def _finish_promotion(self) -> None:
        switchover = Switchover(self._pair, self._data)
        if not switchover.has_everything(self._data["checkpoint"]):
            remedy = "find out which server has the latest writes, and promote that one"
            raise HookError(self._other.title, "it does not have the last records of this server any more", remedy)
        switchover.promote()

    def _rejoin(self, own: State) -> None:
        if own is State.STANDBY and self._follow(_FIRST_STREAM):
            self._finish()
            return
        if own is State.STANDBY:
            self._pair.stop(_STOP)
        if not self._run.dry_run:
            self._make_equal()
        self._pair.start(State.STANDBY)
        if not self._follow(None):
            raise HookError(self._pair.own.title, f"it does not stream from {self._other.title}", "look at its log")
        self._finish()

    def _make_equal(self) -> None:
        """Let the stopped server start as a standby, without the records that the primary does not have."""
        instance = self._pair.instance
        self._finish_rewind()  # of a run that was killed
        own = instance.control_data()
        if wal.has_diverged(own, *self._timeline()):
            self._run.warn(f"{self._pair.own.title}: it has records that {self._other.title} does not have")
            if not self._run.options["rewind"]:
                raise HookError(
                    self._pair.own.title, "it has diverged from the new primary", "set rewind, or rebuild it"
                )
            if not own.can_rewind:
                problem = "pg_rewind needs wal_log_hints or data checksums"
                raise HookError(self._pair.own.title, problem, "rebuild this standby by pg_basebackup")
            self._run.say("run pg_rewind")
            self._data["settings"] = instance.settings()
            self._run.remember(self._data)
            instance.rewind(self._other.target, self._pair.environment)
            self._finish_rewind()
        instance.make_standby()

    def _finish_rewind(self) -> None:
        """Undo what a rewind has changed beside the data; the record has that a rewind was begun."""
        if "settings" in self._data:
            self._pair.instance.finish_rewind(self._data["settings"])
            del self._data["settings"]
            self._run.remember(self._data)

    def _timeline(self) -> tuple[int, str]:
        """Return the number and the history of the new primary's timeline."""
        number = self._other.ask("SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)")
        history = f"SELECT coalesce(pg_read_file('pg_wal/{number}.history', 0, 1000000, true), '')"
        return int(number, 16), self._other.ask(history)

    def _follow(self, most: float | None) -> bool:
        """Point this standby to the primary, and wait until it streams."""
        if self._run.dry_run:
            self._run.say("would wait until this server streams")
            return True
        wanted = self._run.options["primary_conninfo"]
        if wanted is not None and self._pair.own.setting("primary_conninfo") != wanted:
            self._run.say("set primary_conninfo")
            self._pair.own.ask(f"ALTER SYSTEM SET primary_conninfo = {quoted(wanted)};\nSELECT pg_reload_conf();")
        return self._pair.wait_until_streaming(self._other, most)

    def _finish(self) -> None:
        self._pair.resume_synchronous(self._other, self._data)
        self._run.say(f"{self._pair.own.title} streams from {self._other.title}")


_REMEDIES = {
    Action.FAIL_BOTH_PRIMARY: (
        "it and this server are primaries",
        "stop the one whose writes you give up, and rejoin it by hand",
    ),
    Action.FAIL_UNREACHABLE: (
        "it does not answer, and may have been promoted; this server does not start as a primary",
        "repair the connection",
    ),
    Action.FAIL_NO_PRIMARY: ("neither it nor this server is a primary", "find out why, and promote one of them"),
}
