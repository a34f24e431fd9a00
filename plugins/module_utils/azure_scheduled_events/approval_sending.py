# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Sends planned approvals and determines the outcome of each."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Iterable, Sequence

from .approval_plan import APPROVE, APPROVED, FAILED, NOT_FOUND, ApprovalOutcome
from .changes import holds_unchanged
from .document import EventDocument
from .errors import ImdsError, ImdsRefused
from .pacing import Pacer
from .receipts import Receipts
from .timestamps import as_utc_text

# with ids of ordinary length, far below the body size that IMDS accepts
_IDS_PER_REQUEST = 100


def send_approvals(
    pacer: Pacer, plan: Sequence[ApprovalOutcome], receipts: Receipts, within: float
) -> tuple[list[ApprovalOutcome], list[str]]:
    """Send the planned approvals.

    Only decisions with outcome "approve" are sent. An event that IMDS refuses does not delay the others. After an
    error the events are read again, and only those that are still Scheduled are sent again. ``within`` is in seconds,
    for all attempts; ``receipts`` notes the accepted approvals.

    Returns:
        The plan with "approved", "failed" or "not_found" in place of "approve", and warnings about receipts.
    """
    sending = _ApprovalSender(pacer, pacer.clock() + within)
    wanted = [item for item in plan if item.outcome == APPROVE]
    for start in range(0, len(wanted), _IDS_PER_REQUEST):
        sending.send(wanted[start : start + _IDS_PER_REQUEST])
    warnings = _write_receipts(receipts, [item for item in sending.done.values() if item.outcome == APPROVED])
    return [sending.done.get(item.event_id, item) for item in plan], warnings


def _write_receipts(receipts: Receipts, approved: Iterable[ApprovalOutcome]) -> list[str]:
    now = as_utc_text(datetime.now(timezone.utc))
    damaged = False
    try:
        for item in approved:
            not_before = item.event.not_before if item.event is not None else None
            damaged = receipts.write(item.event_id, now, not_before) or damaged
    except OSError as error:
        return [
            f"receipts: the approval cannot be noted ({error}), and will be sent again next time;"
            " name a folder that this user or root owns and that no other user can write to"
        ]
    if damaged:
        return [f"receipts: {receipts.path} was damaged; it is replaced, and approvals that it had are sent again"]
    return []


class _ApprovalSender:
    """Sends the approvals of one call; ``done`` holds the outcomes that are final."""

    def __init__(self, pacer: Pacer, deadline: float) -> None:
        self._pacer = pacer
        self._deadline = deadline
        self.done: dict[str, ApprovalOutcome] = {}
        self._refused_before: set[str] = set()

    def send(self, batch: list[ApprovalOutcome]) -> None:
        while batch:
            if self._pacer.clock() >= self._deadline:
                self._set_outcome(batch, FAILED, "the timeout passed before it could be sent")
                return
            try:
                self._pacer.call(self._pacer.imds.approve, [item.event_id for item in batch], within=self._time_left())
            except ImdsError as error:
                batch = self._retryable_items(error, batch)
            else:
                self._set_outcome(batch, APPROVED, None)
                return

    def _retryable_items(self, error: ImdsError, batch: list[ApprovalOutcome]) -> list[ApprovalOutcome]:
        """Return the items that are worth another attempt; set the outcome of the others."""
        about_an_id = isinstance(error, ImdsRefused) and error.status == 400 and not error.supported_versions
        if error.retryable:
            return (
                self._still_scheduled(batch, error) if self._pause() else self._set_outcome(batch, FAILED, str(error))
            )
        if not about_an_id:
            return self._set_outcome(batch, FAILED, str(error))
        wanted = self._still_scheduled(batch, error)
        again = [item for item in wanted if item.event_id not in self._refused_before]
        self._set_outcome([item for item in wanted if item not in again], FAILED, str(error))
        if again and len(batch) == 1 and not self._pause():
            return self._set_outcome(again, FAILED, str(error))
        # a refusal of a batch does not name the event at fault: each is sent once more on its own
        for item in again:
            self._refused_before.add(item.event_id)
            self.send([item])
        return []

    def _still_scheduled(self, batch: list[ApprovalOutcome], doubt: ImdsError) -> list[ApprovalOutcome]:
        """Read the events, and return the items whose events are Scheduled and unchanged since they were planned."""
        document = self._read_events()
        if document is None:
            return self._set_outcome(batch, FAILED, str(doubt))
        wanted = []
        for item in batch:
            event = document.find(item.event_id)
            if event is not None and event.status == "Started":
                self._set_outcome([item], APPROVED, f"IMDS gave no clear answer ({doubt}), but the event has started")
            elif event is None and document.complete:
                self._set_outcome([item], NOT_FOUND, f"IMDS gave no clear answer ({doubt}), and the event is gone")
            elif event is None or item.event is None or not holds_unchanged(item.event, event):
                self._set_outcome([item], FAILED, f"IMDS gave no clear answer ({doubt}), and the event has changed")
            else:
                wanted.append(item)
        return wanted

    def _read_events(self) -> EventDocument | None:
        """Return the events, or None if IMDS gave no good answer before the deadline."""
        while True:
            try:
                return self._pacer.call(self._pacer.imds.events, within=self._time_left())
            except ImdsError as error:
                if not (error.retryable and self._pause()):
                    return None

    def _set_outcome(self, batch: list[ApprovalOutcome], outcome: str, reason: str | None) -> list[ApprovalOutcome]:
        """Set the outcome of each item; return the items that remain to be sent, which is none."""
        for item in batch:
            self.done[item.event_id] = item._replace(outcome=outcome, reason=reason or item.reason)
        return []

    def _pause(self) -> bool:
        """Wait as the retry table says; return False if no time is left for another attempt."""
        delay = self._pacer.delay(event_known=True)
        if self._pacer.clock() + delay >= self._deadline:
            return False
        self._pacer.sleep(delay)
        return True

    def _time_left(self) -> float:
        return max(0.1, self._deadline - self._pacer.clock())
