# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""What VMs, the control plane and the person at the control API ask of the world."""
from __future__ import annotations

import dataclasses
from typing import Optional, Sequence

from . import transitions
from .groups import Vm
from .happening import Happening
from .life import GONE, SCHEDULED, STARTED, LiveEvent
from .model import World
from .plans import HARDWARE_FAILURE, Change, EventPlan


class Impossible(ValueError):
    """The event is in no state for that."""


def approvable(world: World, vm: Vm, event_id: str) -> list[LiveEvent]:
    """The events that ``vm`` may approve under that id: any of its scope (spec 1.5, 3.1.1)."""
    fold = str.upper if world.knobs.id_case == "fold" else str
    return [event for event in world.seen_by(world.scope_for(vm)) if fold(event.id) == fold(event_id)]


def approve(world: World, events: Sequence[LiveEvent], by: str, now: float) -> list[Happening]:
    """Approve every one of ``events``; already approved or Started ones stay as they are."""
    happened = [line for event in events for line in transitions.approve(world, event, by, now)]
    world.replan()
    return happened


def schedule(world: World, plan: EventPlan, now: float) -> tuple[LiveEvent, list[Happening]]:
    """Add an event; it appears ``plan.at`` simulated seconds from now."""
    event = world.add(plan, now)
    world.replan()
    return event, world.settle(now)


def fail(world: World, vms: Sequence[str], kind: Optional[str], name: str, now: float) -> tuple[LiveEvent, list[Happening]]:
    """The hardware under ``vms`` fails: an event that is Started from its first moment (spec 2.1 transition 4)."""
    return schedule(world, EventPlan(name=name, resources=tuple(vms), type=kind, starts=HARDWARE_FAILURE), now)


def change(world: World, event: LiveEvent, what: Change, now: float) -> list[Happening]:
    """Change a living event now; raises Impossible when its state does not allow that."""
    if event.status == GONE:
        raise Impossible("event %s is over" % event.name)
    if what.action == "cancel" and event.status == STARTED:
        raise Impossible("event %s is Started; only a Scheduled event can be cancelled (spec 2.1), use complete" % event.name)
    if what.action in ("approve", "release") and event.status != SCHEDULED:
        raise Impossible("event %s is %s, not Scheduled" % (event.name, event.status))
    happened = transitions.change(world, event, dataclasses.replace(what, after=0.0), now)
    world.replan()
    return happened + world.settle(now)
