# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""What happens to an event at each step of its life (docs/reference/scheduled-events.md 2.1); each returns what there is to report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..scenario.plans import BY_NOTICE, Change, IncarnationStep
from ..times import iso
from .events import (
    CONTROL_PLANE,
    GONE,
    PLANNED,
    SCHEDULED,
    STARTED,
    Due,
    LiveEvent,
    impact_of,
    notice_of,
    started_for,
    whole_second,
)
from .occurrence import Happening
from .world import World


def carry_out(world: World, event: LiveEvent, due: Due, moment: float) -> list[Happening]:
    """Carry out one due step."""
    if due.step == "appear":
        return appear(world, event, moment)
    if due.step == "start":
        return start(world, event, moment, "approved" if moment < event.not_before else "NotBefore reached")
    if due.step == "finish":
        return remove(world, event, moment, "finished")
    event.pending.remove(due)
    if due.change is not None:
        return change(world, event, due.change, moment)
    return _end_impact(event, due.impact, moment)


def appear(world: World, event: LiveEvent, moment: float) -> list[Happening]:
    """Absent -> Scheduled, or straight to Started (reference 2.1 transitions 1 and 4)."""
    plan, knobs = event.plan, world.knobs
    event.status = SCHEDULED
    event.not_before = whole_second(moment + world.wall(notice_of(plan, event.content.type, knobs)))
    event.released_at = moment + world.wall(knobs.approve_hold if plan.hold is None else plan.hold)
    event.pending = _dated(world, event, "appearing", moment)
    if plan.starts != BY_NOTICE:
        return start(world, event, moment, plan.starts)
    unwatched = not any(scope.enabled(moment, knobs, world.speed) for scope in world.scopes_seeing(event))
    if unwatched and knobs.disabled_service == "unannounced":
        return start(world, event, moment, "nobody has enabled the service")
    world.changed(world.scopes_seeing(event))
    return [tell(event, moment, "scheduled", not_before=iso(event.not_before))]


def start(world: World, event: LiveEvent, moment: float, why: str) -> list[Happening]:
    """Scheduled -> Started: same id, NotBefore blank (reference 2.1 transition 2)."""
    first_time = event.started_at is None
    event.status, event.started_at = STARTED, moment
    event.ends_at = moment + world.wall(started_for(event.plan, event.content.type, world.knobs))
    if first_time:
        event.pending += _dated(world, event, "start", moment)
    world.changed(world.scopes_seeing(event))
    return [tell(event, moment, "started", why=why), *_begin_impact(world, event, impact_of(event), moment)]


def remove(world: World, event: LiveEvent, moment: float, what: str) -> list[Happening]:
    """The event is over or cancelled: gone from the document (reference 2.1 transitions 3 and 5)."""
    scopes = world.scopes_seeing(event) if event.visible else []
    event.status, event.gone_at, event.cancelled = GONE, moment, what == "cancelled"
    event.pending = []
    world.changed(scopes)
    for follower in world.followers(event):
        if follower.status == PLANNED:
            follower.appears_at = moment + world.wall(follower.plan.at)
    ended = [happening for kind in list(event.impacts) for happening in _end_impact(event, kind, moment)]
    return [*ended, tell(event, moment, what)]


def change(world: World, event: LiveEvent, what: Change, moment: float) -> list[Happening]:
    """Whatever else a scenario or the control API does to a living event."""
    if what.action == "approve":
        return approve(world, event, CONTROL_PLANE, moment)
    if what.action == "release":
        # who has let go already does not do so again
        event.released_at = min(event.released_at, moment)
        return [tell(event, moment, "released")]
    if what.action == "impact":
        kind = what.type or event.plan.actual or event.content.type
        return _begin_impact(world, event, (kind, what.impact_for), moment)
    if what.action in ("cancel", "complete"):
        return remove(world, event, moment, "cancelled" if what.action == "cancel" else "finished")
    return _edit(world, event, what, moment)


def approve(world: World, event: LiveEvent, by: str, moment: float) -> list[Happening]:
    """Note an approval by a VM or the control plane; nothing visible happens yet (reference 1.5, 2.5.8)."""
    if event.status != SCHEDULED or by in event.approvals:
        return []
    event.approvals[by] = moment
    enough = (
        by == CONTROL_PLANE
        or world.knobs.approval_needed == "one"
        or set(event.content.resources) <= set(event.approvals)
    )
    if enough and event.approved_at is None:
        event.approved_at = moment
    if world.knobs.approve_changes_incarnation:
        world.changed(world.scopes_seeing(event))
    return [tell(event, moment, "approved", by=by, complete=event.approved_at is not None)]


def step_incarnation(world: World, step: IncarnationStep, moment: float) -> list[Happening]:
    """DocumentIncarnation jumps or goes back although no event changed (reference 2.5.3, 2.5.6)."""
    scopes = {id(scope): scope for scope in map(world.scope_for, world.groups[step.group].vms)}.values()
    for scope in scopes:
        scope.changed((scope.incarnation if step.to is None else step.to) + step.add - scope.incarnation)
    values = sorted({scope.incarnation for scope in scopes})
    return [Happening(moment, "incarnation", step.group, detail={"incarnation": values})]


def tell(event: LiveEvent, moment: float, what: str, **detail: Any) -> Happening:
    """``event`` as a line of the log."""
    content = event.content
    return Happening(
        moment,
        what,
        event.group,
        event.name,
        event.id,
        dict(type=content.type, resources=list(content.resources), **detail),
    )


def _edit(world: World, event: LiveEvent, what: Change, moment: float) -> list[Happening]:
    before = _shown(world, event)
    scopes = world.scopes_seeing(event)
    event.edit(what)
    if what.notice is not None:
        event.not_before = whole_second(moment + world.wall(what.notice))
    if what.status == STARTED and event.status == SCHEDULED:
        return start(world, event, moment, "changed")
    if what.status == SCHEDULED and event.status == STARTED:
        # officially impossible (reference 2.1 "backward"), but clients must survive it (T31)
        event.status, event.approvals, event.approved_at = SCHEDULED, {}, None
    if event.visible and before != _shown(world, event):
        scopes += [scope for scope in world.scopes_seeing(event) if scope not in scopes]
        world.changed(scopes)
    return [
        tell(
            event,
            moment,
            "changed",
            status=event.status,
            not_before=iso(event.not_before) if event.not_before else None,
        )
    ]


def _shown(world: World, event: LiveEvent) -> tuple[Any, ...]:
    """What clients see of ``event``: NotBefore is blank once Started, and may be any text."""
    dated = event.content.not_before is None and (event.status == SCHEDULED or world.knobs.started_not_before == "kept")
    return event.content, event.status, event.not_before if dated else None


def _dated(world: World, event: LiveEvent, since: str, moment: float) -> list[Due]:
    return [
        Due(moment + world.wall(each.after), 1, "change", each) for each in event.plan.changes if each.since == since
    ]


def _begin_impact(world: World, event: LiveEvent, impact: tuple[str, float] | None, moment: float) -> list[Happening]:
    if impact is None:
        return []
    kind, lasts = impact
    event.impacts.append(kind)
    event.pending.append(Due(moment + world.wall(lasts), 1, "impact-end", impact=kind))
    return [_impact_line(event, moment, "impact-start", kind)]


def _end_impact(event: LiveEvent, kind: str, moment: float) -> list[Happening]:
    event.impacts.remove(kind)
    return [_impact_line(event, moment, "impact-end", kind)]


def _impact_line(event: LiveEvent, moment: float, what: str, kind: str) -> Happening:
    line = tell(event, moment, what)
    return replace(line, detail=dict(line.detail, type=kind))
