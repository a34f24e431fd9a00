# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""What VMs, the control plane and the person at the control API ask of the world."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..scenario.groups import Vm
from ..scenario.plans import HARDWARE_FAILURE, Change, EventPlan
from . import transitions
from .events import ENDED, PLANNED, SCHEDULED, STARTED, SimulatedEvent
from .occurrence import Occurrence
from .simulation import Simulation
from .world import World


class InvalidState(ValueError):
    """The event is in no state for that."""


def approvable_events(world: World, vm: Vm, ids: Sequence[str]) -> dict[str, list[SimulatedEvent]]:
    """For each id the events that ``vm`` may approve under it: any of its scope (docs/reference/scheduled-events.md 1.5, 3.1.1)."""
    fold = str.upper if world.knobs.id_case == "fold" else str
    by_id: dict[str, list[SimulatedEvent]] = {}
    for event in world.events_visible_to(world.scope_for(vm)):
        by_id.setdefault(fold(event.id), []).append(event)
    return {each: by_id.get(fold(each), []) for each in ids}


def approve(simulation: Simulation, events: Sequence[SimulatedEvent], by: str, now: float) -> list[Occurrence]:
    """Approve every one of ``events``; already approved or Started ones stay as they are."""
    happened = [line for event in events for line in transitions.approve(simulation.world, event, by, now)]
    simulation.reschedule(*events)
    return happened


def schedule(simulation: Simulation, plan: EventPlan, now: float) -> tuple[SimulatedEvent, list[Occurrence]]:
    """Add an event; it appears ``plan.at`` simulated seconds from now."""
    event = simulation.add(plan, now)
    simulation.reschedule(event)
    return event, simulation.advance_to(now)


def fail(
    simulation: Simulation, vms: Sequence[str], kind: str | None, name: str, now: float
) -> tuple[SimulatedEvent, list[Occurrence]]:
    """The hardware under ``vms`` fails: an event that is Started from its first moment (reference 2.1 transition 4)."""
    return schedule(simulation, EventPlan(name=name, resources=tuple(vms), type=kind, starts=HARDWARE_FAILURE), now)


def change(simulation: Simulation, event: SimulatedEvent, what: Change, now: float) -> list[Occurrence]:
    """Change a living event now; raises InvalidState when its state does not allow that."""
    if event.status == ENDED:
        raise InvalidState(f"event {event.name} is over")
    if what.action == "cancel" and event.status == STARTED:
        raise InvalidState(
            f"event {event.name} is Started; only a Scheduled event can be cancelled (reference 2.1), use complete"
        )
    if event.status == PLANNED and (what.action == "impact" or what.notice is not None or what.status is not None):
        raise InvalidState(f"event {event.name} has not appeared yet: it has no NotBefore, status or impact to change")
    if what.action in ("approve", "release") and event.status != SCHEDULED:
        raise InvalidState(f"event {event.name} is {event.status}, not Scheduled")
    happened = transitions.change(simulation.world, event, dataclasses.replace(what, after=0.0), now)
    simulation.reschedule(event)
    return happened + simulation.advance_to(now)
