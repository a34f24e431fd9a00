# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Notes when a VM first receives a document that lists an event."""

from __future__ import annotations

from ..model.events import SimulatedEvent
from ..model.occurrence import Occurrence
from ..model.world import World


class FirstViews:
    """The events that each VM has received, while they last."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._last: dict[str, tuple[SimulatedEvent, ...]] = {}
        self._received: dict[int, set[str]] = {}

    def receive(self, vm: str, events: tuple[SimulatedEvent, ...], moment: float) -> list[Occurrence]:
        """Note that ``vm`` receives ``events`` and return an occurrence for each that it had not received."""
        # the same object, which a document keeps; most requests end here
        if self._last.get(vm) is events:
            return []
        self._last[vm] = events
        found = []
        for event in events:
            if vm not in self._received.setdefault(event.number, set()):
                self._received[event.number].add(vm)
                found.append(Occurrence(moment, "seen", event.group, event.name, event.id, {"vm": vm}))
        if len(self._received) > len(self._world.live):
            self._received = {number: vms for number, vms in self._received.items() if number in self._world.live}
        return found
