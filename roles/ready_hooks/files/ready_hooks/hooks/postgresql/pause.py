# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""What prepare does on a replica, and on a primary without a replica to switch to."""

from __future__ import annotations

from typing import Any

from ready_hooks.core.errors import HookError
from ready_hooks.hooks.postgresql import synchronous
from ready_hooks.hooks.postgresql.decision import State
from ready_hooks.hooks.postgresql.pair import Pair

_RESERVED = 1.0


class Pause:
    """Takes a server out of use, and undoes it.

    Args:
        pair: this server.
        data: the record, which `prepare` extends.
    """

    def __init__(self, pair: Pair, data: dict[str, Any]) -> None:
        self._pair, self._run, self._data = pair, pair.run, data

    def prepare(self, own: State) -> None:
        """Write a checkpoint; by options, release the primary from this standby and stop this server."""
        options = self._run.options
        target = options["primary"] or options["replica"]
        if own is State.STANDBY and options["suspend_synchronous"] and target is not None:
            other = self._pair.other(target)
            if synchronous.would_block(other):
                self._data.setdefault("other", target)
                self._pair.suspend_synchronous(other, self._data)
        self._run.act("write a checkpoint", self._pair.own.ask, "CHECKPOINT", None)
        if options["stop"]:
            self._data["stopped"] = True
            self._run.remember(self._data)
            self._pair.stop(max(1.0, self._run.deadline.left() - _RESERVED))

    def recover(self) -> None:
        """Undo `prepare`. Raises HookError."""
        if self._data.get("stopped") and not self._pair.instance.has_process:
            self._pair.start(State.STANDBY if self._pair.instance.is_standby else State.PRIMARY)
        if "synchronous" in self._data:
            other = self._pair.other(self._data["other"])
            if not self._run.dry_run and not self._pair.wait_until_streaming(other):
                raise HookError(self._pair.own.title, f"it does not stream from {other.title}", "look at its log")
            self._pair.resume_synchronous(other, self._data)
        self._run.forget()
