# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The answers of the functions: plain JSON values, with a version that callers check."""

from __future__ import annotations

import time
from typing import Any, Sequence

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.printable import escape_surrogates

from .execution.results import StepResult
from .imds_observation import VmObservation
from .record import BY_HAND, Reason

VERSION = 1

PREPARE = "prepare"
RECOVER = "recover"
APPROVE = "approve"

PREPARED = "prepared"
ALREADY_PREPARED = "already_prepared"
WOULD_PREPARE = "would_prepare"
RECOVERED = "recovered"
NOT_PREPARED = "not_prepared"
WOULD_RECOVER = "would_recover"
STILL_LISTED = "still_listed"
NOT_LISTED = "not_listed"
NOT_AFFECTED = "not_affected"
NOT_SELECTED = "not_selected"
STARTED = "started"
NO_STEPS = "no_steps"
UNAVAILABLE = "unavailable"
BUSY = "busy"
FAILED = "failed"
APPROVED = "approved"
ALREADY_APPROVED = "already_approved"
OTHERS_AFFECTED = "others_affected"

_SUCCESSES = {
    PREPARE: frozenset((PREPARED, ALREADY_PREPARED, WOULD_PREPARE)),
    RECOVER: frozenset((RECOVERED, NOT_PREPARED, WOULD_RECOVER)),
    APPROVE: frozenset((APPROVED, ALREADY_APPROVED)),
}


def is_success(stage: str, outcome: str) -> bool:
    """Return True if an answer with that outcome is a success of that stage."""
    return outcome in _SUCCESSES[stage]


class Job:
    """One call of a function, with the event that it is about as IMDS lists it.

    ``stage`` is PREPARE, RECOVER or APPROVE. ``event_id`` is None for a preparation by hand.
    """

    def __init__(self, stage: str, event_id: str | None) -> None:
        self.stage = stage
        self.by_hand = event_id is None
        self.event_id = BY_HAND if event_id is None else event_id
        self.key = self.event_id.casefold()
        self.event: ScheduledEvent | None = None
        self.name: str | None = None
        self._starts: float | None = None

    def record_observation(self, seen: VmObservation) -> VmObservation:
        """Note the event of the last document."""
        self.name = seen.name
        self.event = None if self.by_hand else seen.tracked.document.find(self.event_id)
        self._starts = None if self.event is None else time.monotonic() + self.event.seconds_left(seen.now)
        return seen

    def seconds_left(self) -> float | None:
        """Return the seconds until the event may start; None if it is not listed."""
        return None if self._starts is None else max(0.0, self._starts - time.monotonic())

    def has_deadline(self) -> bool:
        """Return True if the steps have to end before the start of the event."""
        return self.stage == PREPARE and self.event is not None and self.event.not_before is not None

    def reason(self) -> Reason:
        """Return the reason to record for a preparation."""
        event = self.event
        return Reason(BY_HAND) if event is None else Reason(event.event_id, event.event_type, event.resources)

    def answer(
        self, outcome: str, reason: str, steps: Sequence[StepResult] = (), changed: bool = False
    ) -> dict[str, Any]:
        """Return the answer, which for an approval has no event and no steps."""
        short = {
            "version": VERSION,
            "event_id": escape_surrogates(self.event_id),
            "outcome": outcome,
            "reason": escape_surrogates(reason),
            "resource_name": self.name,
        }
        if self.stage == APPROVE:
            return short
        event = None if self.event is None else self.event.as_dict()
        return dict(short, changed=changed, event=event, steps=[step.as_dict() for step in steps])


def steps_have_run(number: int) -> str:
    """Return the reason of an answer after so many steps have succeeded."""
    return "1 step has run" if number == 1 else f"{number} steps have run"
