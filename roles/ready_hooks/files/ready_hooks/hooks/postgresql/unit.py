# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The unit of systemd that runs the server, or Patroni."""

from __future__ import annotations

from collections.abc import Iterator

from ready_hooks.core import commands
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.hook import WARNING, Finding
from ready_hooks.core.systemd import STOPPED_WITH, show

_RUNNING = ("active", "activating", "reloading", "deactivating")


class Unit:
    """A unit; each method raises HookError if systemd refuses or the time is over."""

    def __init__(self, name: str, deadline: Deadline) -> None:
        self.name, self._deadline = name, deadline

    @property
    def runs(self) -> bool:
        """Whether systemd runs the unit, or is about to stop or start it."""
        return show(self.name, ["ActiveState"], self._deadline).get("ActiveState") in _RUNNING

    def findings(self) -> Iterator[Finding]:
        """Yield a warning if systemd stops other units with this one: recover starts this one only."""
        shown = show(self.name, STOPPED_WITH, self._deadline)
        names = sorted({name for names in shown.values() for name in names.split() if not name.endswith(".target")})
        if names:
            problem = f"systemd stops {', '.join(names)} with it, and recover starts only this one"
            yield Finding(WARNING, f"{self.name}: {problem}; list them in a hook systemd-units before this one")

    def change(self, verb: str, most: float | None = None) -> None:
        """Run systemctl with this verb, such as start, for at most so many seconds."""
        commands.must_run(["systemctl", verb, "--", self.name], self._deadline, most)
