# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""When the next thing happens to an event: pure functions of its state (docs/reference/scheduled-events.md 2.2)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from .events import ENDED, NO_STEP, PLANNED, SCHEDULED, ScheduledStep, SimulatedEvent
from .rules import Rules


def next_step(event: SimulatedEvent, batch: Iterable[SimulatedEvent], rules: Rules) -> ScheduledStep:
    """The next transition of ``event``; ``batch`` are the events of the same delete operation."""
    if event.status == ENDED:
        return NO_STEP
    if event.status == PLANNED:
        return ScheduledStep(event.appears_at, 0, "appear")
    if event.status == SCHEDULED:
        leave = ScheduledStep(start_moment(event, batch, rules), 2, "start")
    else:
        leave = ScheduledStep(event.ends_at, 2, "finish")
    return min([leave, *event.pending], key=lambda due: (due.moment, due.rank))


def start_moment(event: SimulatedEvent, batch: Iterable[SimulatedEvent], rules: Rules) -> float:
    """NotBefore, or earlier once everybody concerned has agreed.

    Everybody: the group itself, the other tenants on the hardware (reference 2.2.3), and for a
    delete operation the other instances of the batch that are still waiting (reference 2.2.8).
    """
    if not rules.knobs.approval_shortens:
        return float(event.not_before)
    agreed = event.released_at
    for each in chain((event,), (mate for mate in batch if mate is not event and mate.status == SCHEDULED)):
        if each.approved_at is None:
            return float(event.not_before)
        agreed = max(agreed, each.approved_at)
    return min(agreed + rules.to_wall_seconds(rules.knobs.start_delay), float(event.not_before))
