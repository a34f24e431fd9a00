# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The invariants of maintenances, and those of a whole life: (c), (h), (o)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from azure_scheduled_events.document import ScheduledEvent
from hook_runner.records import OK, RECOVER
from maintenance_world.evidence import Evidence

if TYPE_CHECKING:
    from maintenance_world.world import World

MOST_STARTS_PER_HOUR = 150


class LifeChecks:
    """Checks the maintenances, in each second and at the end."""

    def __init__(self, world: World, seen: Evidence) -> None:
        self._world, self._seen = world, seen

    def check_second(self, own: list[ScheduledEvent]) -> None:
        """(c) Each own event of the last document is an event of the maintenance."""
        daemon = self._world.daemon
        taken = {record.key for record in daemon.records.present} if daemon else set()
        for event in own:
            if event.key not in taken:
                self._seen.violate(f"(c) the last document lists {event.key}, and it is no event of the maintenance")

    def check_end(self) -> None:
        """Check what has to be true at the end of a life, and over all of it."""
        self._check_rate()
        self._check_history()
        if not self._world.is_removed:
            self._check_recovered()

    def _check_recovered(self) -> None:
        """(c) No maintenance is open, and each recover hook has succeeded after the last other hook."""
        seen, world, daemon = self._seen, self._world, self._world.daemon
        if daemon is None or daemon.records.maintenance or daemon.records.finished or world.disk.open():
            seen.violate(f"(c) the life ends {daemon.runner.machine.phase if daemon else 'without a daemon'}")
            return
        others = [serial for serial, start in enumerate(seen.starts) if start.stage != RECOVER]
        history = world.disk.closed()
        if not others or seen.is_lost or not history or history[-1].given_up_by:
            return
        later = range(others[-1] + 1, len(seen.starts))
        undone = {seen.starts[serial].name for serial in later if seen.results.get(serial) == OK}
        for hook in world.plan.hooks[RECOVER]:
            if hook.name not in undone:
                seen.violate(f"(c) recover/{hook.name} did not succeed after the last other hook")

    def _check_history(self) -> None:
        seen = self._seen
        history = self._world.disk.closed()
        for one, two in pairwise(history):
            if one.ended is None or (two.began < one.ended and not self._world.plan.jumps):
                seen.violate(f"(c) the maintenances {one.number} and {two.number} overlap")
        for each in history:
            for record in each.events:
                if record.outcome == "completed" and record.key not in seen.first_started:
                    seen.violate(f"(o) {record.key} has the outcome completed, and no document has it as Started")
            if not each.timeline:
                seen.violate(f"(o) maintenance {each.number} has no timeline")

    def _check_rate(self) -> None:
        """(h) Hooks begin seldom."""
        starts, first = self._seen.starts, 0
        for index, start in enumerate(starts):
            while start.second - starts[first].second > 3600:
                first += 1
            if index - first + 1 > MOST_STARTS_PER_HOUR:
                self._seen.violate(f"(h) {index - first + 1} hooks start in an hour")
                return
