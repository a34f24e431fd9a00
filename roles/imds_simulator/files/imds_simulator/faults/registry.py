# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The faults of a running simulator: which request gets which fault."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Callable

from ..times import When
from .fault import Fault

# the faults that are over and stay in the list
MAX_OVER = 100


@dataclass(eq=False)
class ActiveFault:
    """A fault with its number in the control API, and its time window on the simulator's clock.

    ``seen``: VM name -> number of matching requests inside the time window. ``exhausted``: when the last one of its
    VMs had the last of its requests.
    """

    number: int
    fault: Fault
    begins: float
    ends: float
    seen: Counter[str] = field(default_factory=Counter)
    exhausted: float = math.inf

    def is_active_at(self, now: float) -> bool:
        """Return True if ``now`` is inside the time window."""
        return self.begins <= now < self.ends

    def is_over(self, now: float) -> bool:
        """Return True if no further request gets the fault."""
        return min(self.ends, self.exhausted) <= now


class FaultRegistry:
    """The faults of a simulator with these VMs, in the order in which they were added."""

    def __init__(self, vms: Collection[str]) -> None:
        self._vms = vms
        self._active: list[ActiveFault] = []
        self._last_number = 0

    def inject(self, fault: Fault, base: float, now: float, moment_of: Callable[[When, float], float]) -> ActiveFault:
        """Add a fault; ``moment_of`` returns the moment of a time that counts from the moment ``base``."""
        self._last_number += 1
        window = fault.window
        begins = moment_of(window.begins, base)
        ends = moment_of(window.until, base) if window.lasts is None else moment_of(window.lasts, begins)
        active = ActiveFault(self._last_number, fault, begins, ends)
        self._active = [*self.all(now), active]
        return active

    def all(self, now: float) -> list[ActiveFault]:
        """Return the faults in force and to come, and the last MAX_OVER that are over; forget older ones."""
        over = [each for each in self._active if each.is_over(now)]
        self.clear(over[:-MAX_OVER], now)
        return list(self._active)

    def clear(self, removed: Collection[ActiveFault], now: float) -> None:
        """Remove these faults; their time windows end at ``now``, if not earlier."""
        for each in removed:
            each.ends = min(each.ends, now)
        self._active = [each for each in self._active if each not in removed]

    def match(self, vm: str, route: str, method: str, now: float) -> ActiveFault | None:
        """Return the first fault that applies to this request, and count the request for every matching fault."""
        first_match = None
        for active in self._active:
            window = active.fault.window
            if not active.is_active_at(now) or not window.matches(vm, route, method):
                continue
            active.seen[vm] += 1
            if all(active.seen[each] >= window.requests.last for each in window.vms or self._vms):
                active.exhausted = min(active.exhausted, now)
            if first_match is None and window.requests.first <= active.seen[vm] <= window.requests.last:
                first_match = active
        return first_match

    def refused_vms(self, now: float) -> set[str]:
        """Return the VMs whose listeners have to refuse connections at ``now``."""
        named = {each.fault.window.vms for each in self._refusals() if each.is_active_at(now)}
        return {vm for vms in named for vm in vms or self._vms}

    def next_refusal_change(self, now: float) -> float:
        """Return when the next refusal begins or ends after ``now``, or infinity."""
        edges = (edge for each in self._refusals() for edge in (each.begins, each.ends))
        return min((edge for edge in edges if edge > now), default=math.inf)

    def _refusals(self) -> list[ActiveFault]:
        return [each for each in self._active if not each.fault.effect.is_per_request]
