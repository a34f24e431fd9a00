# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The transitions of an event (docs/reference/scheduled-events.md 2.1). Each returns its occurrences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..scenario.plans import BY_NOTICE, Change, IncarnationStep
from ..times import iso
from .events import (
    CONTROL_PLANE,
    ENDED,
    PLANNED,
    SCHEDULED,
    STARTED,
    Occurrence,
    ScheduledStep,
    SimulatedEvent,
    ceil_second,
    impact_for,
)
from .world import World

_DELETING = frozenset(("Preempt", "Terminate"))


def run_step(world: World, event: SimulatedEvent, due: ScheduledStep, moment: float) -> list[Occurrence]:
    """Run one due step of ``event``."""
    if due.step == "appear":
        return appear(world, event, moment)
    if due.step == "start":
        return start(world, event, moment, "approved" if moment < event.not_before else "NotBefore reached")
    if due.step == "finish":
        return remove(world, event, moment, "finished")
    event.pending.remove(due)
    if due.change is not None:
        return change(world, event, due.change, moment)
    return [occurrence(event, moment, "impact-end", type=due.impact)]


def appear(world: World, event: SimulatedEvent, moment: float) -> list[Occurrence]:
    """Absent -> Scheduled, or straight to Started (reference 2.1 transitions 1 and 4)."""
    plan, knobs = event.plan, world.knobs
    event.status = SCHEDULED
    # simulated seconds from appearance to NotBefore (reference 2.4)
    notice = knobs.notice_overrides[event.content.type] if plan.notice is None else plan.notice
    event.not_before = ceil_second(moment + world.to_wall_seconds(notice))
    event.released_at = moment + world.to_wall_seconds(knobs.approve_hold if plan.hold is None else plan.hold)
    event.pending = _schedule_changes(world, event, moment, after_start=False)
    if plan.starts != BY_NOTICE:
        return start(world, event, moment, plan.starts)
    world.bump_incarnation(world.scopes_showing(event))
    return [occurrence(event, moment, "scheduled", not_before=iso(event.not_before))]


def start(world: World, event: SimulatedEvent, moment: float, why: str) -> list[Occurrence]:
    """Scheduled -> Started: same id, NotBefore blank (reference 2.1 transition 2)."""
    first_time = event.started_at is None
    event.status, event.started_at = STARTED, moment
    # simulated seconds from Started to removal (reference 2.4.5, 2.4.6)
    usual, planned = world.knobs.started_duration[event.content.type], event.plan.started_for
    event.ends_at = moment + world.to_wall_seconds(usual if planned is None else planned)
    if first_time:
        event.pending += _schedule_changes(world, event, moment, after_start=True)
    world.bump_incarnation(world.scopes_showing(event))
    begun = _begin_impact(world, event, *impact_for(event), moment)
    return [occurrence(event, moment, "started", why=why), *begun]


def remove(world: World, event: SimulatedEvent, moment: float, outcome: str, **detail: Any) -> list[Occurrence]:
    """Finished or cancelled: the event leaves the document (reference 2.1 transitions 3 and 5).

    The end of an eviction or deletion that still lasts deletes the VMs.
    """
    impacts = [each.impact for each in event.pending if each.impact]
    deletes = outcome == "finished" and not _DELETING.isdisjoint(impacts)
    scopes = world.scopes_showing(event) if event.visible else set()
    event.status, event.gone_at, event.cancelled = ENDED, moment, outcome == "cancelled"
    event.pending = []
    world.retire(event)
    world.bump_incarnation(scopes)
    for waiting in world.events:
        if waiting.plan.after == event.name and waiting.status == PLANNED:
            waiting.appears_at = world.moment_of(waiting.plan.at, moment)
    ended = [occurrence(event, moment, "impact-end", type=kind) for kind in impacts]
    deleted = _delete_vms(world, event, moment) if deletes else []
    return [*ended, occurrence(event, moment, outcome, **detail), *deleted]


def _delete_vms(world: World, event: SimulatedEvent, moment: float) -> list[Occurrence]:
    """Delete the VMs of ``event``; other events lose them, and end without a VM."""
    names = [name for name in event.content.resources if name not in world.removed]
    world.removed.update(names)
    found = [Occurrence(moment, "removed", event.group, event.name, event.id, {"vm": name}) for name in names]
    for other in list(world.events):
        if other.status != ENDED and not world.removed.isdisjoint(other.content.resources):
            found += _edit(world, other, Change(resources=other.content.resources), moment)
    return found


def change(world: World, event: SimulatedEvent, requested: Change, moment: float) -> list[Occurrence]:
    """Apply a change from a scenario or the control API (reference 2.1)."""
    if requested.action == "approve":
        return approve(world, event, CONTROL_PLANE, moment)
    if requested.action == "release":
        # an earlier release stays valid
        event.released_at = min(event.released_at, moment)
        return [occurrence(event, moment, "released")]
    if requested.action == "impact":
        kind = requested.type or event.plan.actual or event.content.type
        return _begin_impact(world, event, kind, requested.impact_for, moment)
    if requested.action in ("cancel", "complete"):
        return remove(world, event, moment, "cancelled" if requested.action == "cancel" else "finished")
    return _edit(world, event, requested, moment)


def approve(world: World, event: SimulatedEvent, by: str, moment: float) -> list[Occurrence]:
    """Record an approval by a VM, the control plane or Azure Resource Manager.

    The event stays Scheduled until its start is due. See reference 1.5, 2.5.8.
    """
    if event.status != SCHEDULED or by in event.approvals:
        return []
    event.approvals[by] = moment
    if world.knobs.approve_changes_incarnation:
        world.bump_incarnation(world.scopes_showing(event))
    approved = occurrence(event, moment, "approved", by=by)
    # thousands of VMs may approve an event of thousands, and each such line is about one of them
    return [replace(approved, detail={"type": event.content.type, "by": by}) if by in world.vms else approved]


def step_incarnation(world: World, step: IncarnationStep, moment: float) -> list[Occurrence]:
    """Change DocumentIncarnation without a change of events (reference 2.5.3, 2.5.6)."""
    scopes = {world.scope_for(vm) for vm in world.groups[step.group].vms}
    for scope in scopes:
        scope.count_change((scope.incarnation if step.to is None else step.to) + step.add - scope.incarnation)
    values = sorted({scope.incarnation for scope in scopes})
    return [Occurrence(moment, "incarnation", step.group, detail={"incarnation": values})]


def occurrence(event: SimulatedEvent, moment: float, kind: str, **detail: Any) -> Occurrence:
    """Return an occurrence with the data of ``event``, and ``detail``."""
    content = event.content
    detail = {"type": content.type, "resources": list(content.resources), **detail}
    return Occurrence(moment, kind, event.group, event.name, event.id, detail, content, event.not_before)


def _edit(world: World, event: SimulatedEvent, requested: Change, moment: float) -> list[Occurrence]:
    """Edit ``event``; its Resources have no deleted VM, and without another one it ends."""
    if requested.resources is not None:
        left = tuple(vm for vm in requested.resources if vm not in world.removed)
        if not left:
            outcome, names = "finished" if event.status == STARTED else "cancelled", ", ".join(requested.resources)
            return remove(world, event, moment, outcome, why=f"Azure deleted {names}")
        requested = replace(requested, resources=left)
    before = _visible_state(world, event)
    scopes = world.scopes_showing(event)
    event.edit(requested)
    if requested.notice is not None:
        event.not_before = ceil_second(moment + world.to_wall_seconds(requested.notice))
    if requested.status == STARTED and event.status == SCHEDULED:
        return start(world, event, moment, "changed")
    if requested.status == SCHEDULED and event.status == STARTED:
        # documented as impossible (reference 2.1 "backward"); clients must handle it
        event.status, event.approvals = SCHEDULED, {}
    if event.visible and before != _visible_state(world, event):
        world.bump_incarnation(scopes | world.scopes_showing(event))
    not_before = iso(event.not_before) if event.not_before else None
    return [occurrence(event, moment, "changed", status=event.status, not_before=not_before)]


def _visible_state(world: World, event: SimulatedEvent) -> tuple[Any, ...]:
    """Return the state of ``event`` that the document shows; NotBefore is empty once Started, and may be any text."""
    dated = event.content.not_before is None and event.status == SCHEDULED
    return event.content, event.status, event.not_before if dated else None


def _schedule_changes(world: World, event: SimulatedEvent, moment: float, *, after_start: bool) -> list[ScheduledStep]:
    return [
        ScheduledStep(moment + world.to_wall_seconds(each.delay), "change", each)
        for each in event.plan.all_changes
        if (each.after_start is not None) == after_start
    ]


def _begin_impact(world: World, event: SimulatedEvent, kind: str, duration: float, moment: float) -> list[Occurrence]:
    if not duration:
        return []
    event.pending.append(ScheduledStep(moment + world.to_wall_seconds(duration), "impact-end", impact=kind))
    return [occurrence(event, moment, "impact-start", type=kind)]
