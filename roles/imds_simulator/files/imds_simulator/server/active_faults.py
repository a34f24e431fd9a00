# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Faults: which request gets which, and until when (T80). Pure; fault_injection.py carries them out."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from ..model.rules import Rules
from ..scenario.fault import Fault


@dataclass(frozen=True)
class ActiveFault:
    """A fault with its number in the control API and its window on the simulator's clock."""

    number: int
    fault: Fault
    begins: float
    ends: float

    def is_active_at(self, now: float) -> bool:
        return self.begins <= now < self.ends


class FaultRegistry:
    """All faults of a running simulator, in the order in which they are tried."""

    def __init__(self) -> None:
        self._active: list[ActiveFault] = []
        self._seen: Counter[tuple[int, str]] = Counter()
        self._last_number = 0

    def __bool__(self) -> bool:
        return bool(self._active)

    def inject(self, fault: Fault, base: float, rules: Rules) -> ActiveFault:
        """Add a fault whose times count from ``base`` on the simulator's clock."""
        self._last_number += 1
        begins, ends = (base + rules.to_wall_seconds(each) for each in (fault.begins, fault.ends))
        active = ActiveFault(self._last_number, fault, begins, ends)
        self._active.append(active)
        return active

    def clear(self, number: int | None = None) -> int:
        """Remove one fault, or all; returns how many there were."""
        kept = [] if number is None else [each for each in self._active if each.number != number]
        removed = len(self._active) - len(kept)
        self._active = kept
        return removed

    def is_active(self, number: int, now: float) -> bool:
        """Whether that fault still holds: a hanging answer ends with its fault."""
        return any(each.number == number and each.is_active_at(now) for each in self._active)

    def match(self, vm: str, route: str, method: str, now: float) -> ActiveFault | None:
        """The first fault that this request meets; counts the request for every fault that it concerns."""
        hit = None
        for active in self._active:
            if not active.is_active_at(now) or not active.fault.matches(vm, route, method):
                continue
            self._seen[active.number, vm] += 1
            nth = self._seen[active.number, vm]
            if hit is None and active.fault.first <= nth <= (active.fault.last or math.inf):
                hit = active
        return hit

    def is_refused(self, vms: tuple[str, ...], now: float) -> bool:
        """Whether connections to the listener of ``vms`` are refused at this moment."""
        return any(
            each.fault.action == "refuse"
            and each.is_active_at(now)
            and (not each.fault.vms or set(each.fault.vms) & set(vms))
            for each in self._active
        )

    def next_refusal_change(self, now: float) -> float:
        """When a refusal begins or ends next; infinity when none is planned."""
        edges = [
            edge
            for each in self._active
            if each.fault.action == "refuse"
            for edge in (each.begins, each.ends)
            if edge > now
        ]
        return min(edges, default=math.inf)

    def seen(self, number: int) -> dict[str, int]:
        """How many matching requests each VM has made inside the fault's window."""
        return {vm: count for (each, vm), count in self._seen.items() if each == number}

    def all(self) -> list[ActiveFault]:
        return list(self._active)
