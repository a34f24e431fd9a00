# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The unit of systemd that runs the server, or Patroni."""

from __future__ import annotations

from ready_hooks.core import commands
from ready_hooks.core.deadline import Deadline

_RUNNING = ("active", "activating", "reloading", "deactivating")


class Unit:
    """A unit; each method raises HookError if systemd refuses or the time is over."""

    def __init__(self, name: str, deadline: Deadline) -> None:
        self.name, self._deadline = name, deadline

    @property
    def runs(self) -> bool:
        """Whether systemd runs the unit, or is about to stop or start it."""
        question = ["systemctl", "show", "--value", "--property=ActiveState", "--", self.name]
        return commands.must_run(question, self._deadline).strip() in _RUNNING

    def change(self, verb: str, most: float | None = None) -> None:
        """Run systemctl with this verb, such as start, for at most so many seconds."""
        commands.must_run(["systemctl", verb, "--", self.name], self._deadline, most)
