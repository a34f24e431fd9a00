# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Requests of VMs, of the control plane and of the control API to the simulation."""

from __future__ import annotations

from collections.abc import Sequence

from ..scenario.groups import Vm
from ..scenario.plans import Change, EventPlan
from . import transitions
from .events import ENDED, PLANNED, SCHEDULED, STARTED, Occurrence, SimulatedEvent
from .simulation import Simulation
from .world import World


class InvalidState(ValueError):
    """The operation is not allowed in the state of the event, or of a VM."""


def approvable_events(world: World, vm: Vm, ids: Sequence[str]) -> dict[str, list[SimulatedEvent]]:
    """Return for each id the events with that id that ``vm`` may approve.

    A VM may approve any event of its scope (docs/reference/scheduled-events.md 1.5, 3.1.1).
    """
    by_id: dict[str, list[SimulatedEvent]] = {}
    for event in world.events_visible_to(world.scope_for(vm)):
        by_id.setdefault(event.id.upper(), []).append(event)
    return {each: by_id.get(each.upper(), []) for each in ids}


def approve(simulation: Simulation, events: Sequence[SimulatedEvent], by: str, now: float) -> list[Occurrence]:
    """Approve ``events``; those that are Started, or approved by the same approver, stay unchanged."""
    occurrences = [each for event in events for each in transitions.approve(simulation.world, event, by, now)]
    simulation.reschedule(now)
    return occurrences


def schedule(simulation: Simulation, plan: EventPlan, now: float) -> tuple[SimulatedEvent, list[Occurrence]]:
    """Add an event that appears ``plan.at`` simulated seconds from now.

    Raises:
        InvalidState: a VM was deleted.
    """
    check_present(simulation.world, plan.name, plan.resources)
    event = simulation.world.add(plan, now)
    simulation.reschedule(now)
    return event, simulation.advance_to(now)


def change(simulation: Simulation, event: SimulatedEvent, requested: Change, now: float) -> list[Occurrence]:
    """Change an event now.

    Raises:
        InvalidState: the state of the event does not allow the change, or a VM was deleted.
    """
    check_present(simulation.world, event.name, requested.resources or ())
    if event.status == ENDED:
        raise InvalidState(f"event {event.name}: it has ended")
    if requested.action == "cancel" and event.status == STARTED:
        raise InvalidState(f"event {event.name}: a Started event cannot be cancelled (reference 2.1); use complete")
    if event.status == PLANNED and (
        requested.action == "impact" or requested.notice is not None or requested.status is not None
    ):
        raise InvalidState(
            f"event {event.name}: it has not appeared yet; its NotBefore, status and impact cannot be changed"
        )
    if requested.action in ("approve", "release") and event.status != SCHEDULED:
        raise InvalidState(f"event {event.name}: it is {event.status}, not Scheduled")
    occurrences = transitions.change(simulation.world, event, requested, now)
    simulation.reschedule(now)
    return occurrences + simulation.advance_to(now)


def check_present(world: World, event: str, vms: Sequence[str]) -> None:
    """Raise InvalidState, which names ``event``, if one of ``vms`` was deleted."""
    for vm in vms:
        if vm in world.removed:
            raise InvalidState(f"event {event}: Azure has deleted {vm}; name another VM")
