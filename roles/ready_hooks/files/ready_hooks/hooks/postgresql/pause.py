# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Prepare on a replica, and on a primary without a replica to switch to."""

from __future__ import annotations

from typing import Any

from ready_hooks.core.errors import HookError
from ready_hooks.hooks.postgresql import synchronous
from ready_hooks.hooks.postgresql.conninfo import identifier
from ready_hooks.hooks.postgresql.decision import State
from ready_hooks.hooks.postgresql.pair import Pair
from ready_hooks.hooks.postgresql.server import Server

# seconds that stay for the next step, or for the undo of one
_RESERVED = 2.0
_CONSOLE = "pgbouncer"


class Pause:
    """Takes a server out of use, and undoes it; `prepare` extends `data`, the record."""

    def __init__(self, pair: Pair, data: dict[str, Any]) -> None:
        self._pair, self._run, self._data = pair, pair.run, data

    def prepare(self, own: State) -> None:
        """Write a checkpoint; by options, pause clients, release the primary from this standby, and stop."""
        options = self._run.options
        # first, because it can take minutes
        self._run.act("write a checkpoint", self._pair.own.ask, "CHECKPOINT", None)
        if options["pgbouncer"] is not None:
            self._pause_clients(options["pgbouncer"])
        target = options["primary"] or options["replica"]
        if own is State.STANDBY and options["suspend_synchronous"] and target is not None:
            other = self._pair.other(target)
            if synchronous.would_block(other):
                self._pair.suspend_synchronous(self._pair.choose(target, self._data), self._data)
        if options["stop"]:
            self._data["stopped"] = True
            self._run.remember(self._data)
            self._pair.stop(self._left())

    def recover(self) -> None:
        """Undo `prepare`. Raises HookError."""
        if self._data.get("stopped") and not self._pair.instance.has_process:
            self._pair.start(State.STANDBY if self._pair.instance.is_standby else State.PRIMARY)
        if "paused" in self._data:
            self._resume_clients()
        if "synchronous" in self._data:
            other = self._pair.other(self._data["other"])
            if not self._run.dry_run and not self._pair.wait_until_streaming(other):
                raise HookError(self._pair.own.title, f"it does not stream from {other.title}", "look at its log")
            self._pair.resume_synchronous(other, self._data)

    def _pause_clients(self, target: str) -> None:
        if self._data.get("paused", {}).get("target", target) != target:
            self._resume_clients()
        pooler = self._pair.other(target)
        paused = self._data.setdefault("paused", {"target": target, "databases": []})
        for name in _databases(pooler, paused=False):
            if name not in paused["databases"]:
                paused["databases"].append(name)
            self._run.remember(self._data)
            try:
                self._run.act(f"pause the clients of {name}", pooler.ask, f"PAUSE {identifier(name)};", self._left())
            except HookError:
                self._run.warn(f"{target}: not all queries ended in time; the clients go on")
                self._resume_clients()
                raise

    def _resume_clients(self) -> None:
        pooler = self._pair.other(self._data["paused"]["target"])
        for name in _databases(pooler, paused=True):  # a PgBouncer that was restarted has none
            if name in self._data["paused"]["databases"]:
                self._run.act(f"resume the clients of {name}", pooler.ask, f"RESUME {identifier(name)};")
        if not self._run.dry_run:
            del self._data["paused"]
            self._run.shorten_record(self._data)

    def _left(self) -> float:
        return max(1.0, self._run.deadline.left() - _RESERVED)


def _databases(pooler: Server, paused: bool) -> list[str]:
    """Return the databases of a PgBouncer that are paused, or those that are not."""
    # the last columns are paused and disabled; the console itself cannot be paused
    rows = [line.split("|") for line in pooler.ask("SHOW DATABASES;").splitlines()]
    return [row[0] for row in rows if len(row) > 2 and row[0] != _CONSOLE and row[-2] == str(int(paused))]
