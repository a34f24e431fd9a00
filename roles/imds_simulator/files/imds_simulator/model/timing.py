# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""When the next step of an event is due (docs/reference/scheduled-events.md 2.2). Pure functions."""

from __future__ import annotations

from .events import ENDED, NO_STEP, PLANNED, SCHEDULED, ScheduledStep, SimulatedEvent
from .rules import Rules


def next_step(event: SimulatedEvent, deciding: SimulatedEvent | None, rules: Rules) -> ScheduledStep:
    """Return the next step of ``event``; ``deciding`` is the event for whose approval its batch waits, if any."""
    if event.status == ENDED:
        return NO_STEP
    if event.status == PLANNED:
        return ScheduledStep(event.appears_at, 0, "appear")
    if event.status == SCHEDULED and event.advises:
        leave = ScheduledStep(float(event.not_before), 2, "finish")
    elif event.status == SCHEDULED:
        leave = ScheduledStep(_start_moment(event, deciding or event, rules), 2, "start")
    else:
        leave = ScheduledStep(event.ends_at, 2, "finish")
    return min([leave, *event.pending], key=lambda due: (due.moment, due.rank))


def _start_moment(event: SimulatedEvent, deciding: SimulatedEvent, rules: Rules) -> float:
    """Return when a Scheduled event starts: at NotBefore, or earlier if approved.

    Needed are the approval of the event, the release by the other tenants on the hardware (reference 2.2.3), and for
    a delete operation the approval of the event that decides (reference 2.2.8).
    """
    if not rules.knobs.approval_shortens or event.approved_at is None or deciding.approved_at is None:
        return float(event.not_before)
    approved = max(event.released_at, event.approved_at, deciding.approved_at)
    return min(approved + rules.to_wall_seconds(rules.knobs.start_delay), float(event.not_before))
