# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Active faults: which request gets which fault. Pure; fault_injection.py applies them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from ..model.rules import Rules
from ..scenario.fault import Fault


@dataclass(frozen=True)
class ActiveFault:
    """A fault with its number in the control API, and its time window on the simulator's clock."""

    number: int
    fault: Fault
    begins: float
    ends: float

    def is_active_at(self, now: float) -> bool:
        """Return True if ``now`` is inside the time window."""
        return self.begins <= now < self.ends


class FaultRegistry:
    """The faults of a running simulator, in the order in which they were added."""

    def __init__(self) -> None:
        self._active: list[ActiveFault] = []
        self._seen: Counter[tuple[int, str]] = Counter()
        self._last_number = 0

    def __bool__(self) -> bool:
        return bool(self._active)

    def inject(self, fault: Fault, base: float, rules: Rules) -> ActiveFault:
        """Add a fault; its times count from ``base``, a moment of the simulator's clock."""
        self._last_number += 1
        begins, ends = (rules.moment_of(each, base) for each in (fault.begins, fault.ends))
        active = ActiveFault(self._last_number, fault, begins, ends)
        self._active.append(active)
        return active

    def clear(self, number: int | None = None) -> int:
        """Remove the fault with this number in the control API, or all (None), and return how many were removed."""
        kept = [] if number is None else [each for each in self._active if each.number != number]
        removed = len(self._active) - len(kept)
        self._active = kept
        return removed

    def is_active(self, number: int, now: float) -> bool:
        """Return True if the fault ``number`` exists and is active at ``now``."""
        return any(each.number == number and each.is_active_at(now) for each in self._active)

    def match(self, vm: str, route: str, method: str, now: float) -> ActiveFault | None:
        """Return the first fault that applies to this request, and count the request for every matching fault."""
        first_match = None
        for active in self._active:
            if not active.is_active_at(now) or not active.fault.matches(vm, route, method):
                continue
            self._seen[active.number, vm] += 1
            nth = self._seen[active.number, vm]
            if first_match is None and active.fault.first <= nth <= (active.fault.last or math.inf):
                first_match = active
        return first_match

    def is_refused(self, vms: tuple[str, ...], now: float) -> bool:
        """Return True if the listener of ``vms`` has to refuse connections at ``now``."""
        return any(
            each.fault.action == "refuse"
            and each.is_active_at(now)
            and (not each.fault.vms or set(each.fault.vms) & set(vms))
            for each in self._active
        )

    def next_refusal_change(self, now: float) -> float:
        """Return when the next refusal begins or ends after ``now``, or infinity."""
        edges = [
            edge
            for each in self._active
            if each.fault.action == "refuse"
            for edge in (each.begins, each.ends)
            if edge > now
        ]
        return min(edges, default=math.inf)

    def seen(self, number: int) -> dict[str, int]:
        """Return VM name -> number of matching requests inside the time window."""
        return {vm: count for (each, vm), count in self._seen.items() if each == number}

    def seen_in_all(self) -> Counter[int]:
        """Return number of the fault -> number of matching requests of all VMs inside the time window."""
        seen: Counter[int] = Counter()
        for (number, _vm), count in self._seen.items():
            seen[number] += count
        return seen

    def all(self) -> list[ActiveFault]:
        """Return all faults, also those whose time window is over."""
        return list(self._active)
