# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""When the next step of an event is due (docs/reference/scheduled-events.md 2.2). Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from .events import ENDED, NO_STEP, PLANNED, SCHEDULED, ScheduledStep, SimulatedEvent
from .rules import Rules


def next_step(event: SimulatedEvent, batch: Iterable[SimulatedEvent], rules: Rules) -> ScheduledStep:
    """Return the next step of ``event``; ``batch`` are the events of the same delete operation."""
    if event.status == ENDED:
        return NO_STEP
    if event.status == PLANNED:
        return ScheduledStep(event.appears_at, 0, "appear")
    if event.status == SCHEDULED and event.advises:
        leave = ScheduledStep(float(event.not_before), 2, "finish")
    elif event.status == SCHEDULED:
        leave = ScheduledStep(start_moment(event, batch, rules), 2, "start")
    else:
        leave = ScheduledStep(event.ends_at, 2, "finish")
    return min([leave, *event.pending], key=lambda due: (due.moment, due.rank))


def start_moment(event: SimulatedEvent, batch: Iterable[SimulatedEvent], rules: Rules) -> float:
    """Return when a Scheduled event starts: at NotBefore, or earlier if approved.

    Needed are the approval of the event, the release by the other tenants on the hardware
    (reference 2.2.3), and for a delete operation the approvals of the other Scheduled events of the
    batch (reference 2.2.8).
    """
    if not rules.knobs.approval_shortens:
        return float(event.not_before)
    approved = event.released_at
    for each in chain((event,), (other for other in batch if other is not event and other.status == SCHEDULED)):
        if each.approved_at is None:
            return float(event.not_before)
        approved = max(approved, each.approved_at)
    return min(approved + rules.to_wall_seconds(rules.knobs.start_delay), float(event.not_before))
