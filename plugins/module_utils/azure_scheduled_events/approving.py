# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Which events may be approved, why the others may not, and how the approvals are sent.

An approval releases every VM in ``Resources``. So one that would release others than this VM needs
an explicit word, and an event that has started, or whose words are not known, is left alone.
"""

from __future__ import annotations

from datetime import datetime, timezone
from types import MappingProxyType
from typing import Any, Iterable, Mapping, Sequence

from .conversation import ImdsSession
from .document import EVENT_TYPES, EventDocument, ScheduledEvent, escape_surrogates
from .errors import ImdsError, ImdsRefused
from .identity import affects_only
from .named_tuple import NamedTuple
from .pacing import Pacer
from .policy import Policy
from .predicates import PolicyContext
from .receipts import Receipts
from .selection import Selection
from .timestamps import as_utc_text

APPROVE = "approve"
APPROVED = "approved"
ALREADY_APPROVED = "already_approved"
NOT_FOUND = "not_found"
NOT_SELECTED = "not_selected"
NOT_DUE = "not_due"
STARTED = "started"
OTHERS_AFFECTED = "others_affected"
FAILED = "failed"

# far below the body size that IMDS takes, with ids of ordinary length
_IDS_PER_REQUEST = 100


class ApprovalOutcome(NamedTuple):
    """What is to be done, or was done, about one event.

    Attributes:
        event_id: as IMDS wrote it, or as the caller did where IMDS has no such event.
        outcome: one of the words above; "approve" only in a plan.
        reason: one sentence for people.
        event: the event, or None where IMDS has none.
    """

    event_id: str
    outcome: str
    reason: str
    event: ScheduledEvent | None = None

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON values. A plan looks as if it had been carried out."""
        return {
            "event_id": escape_surrogates(self.event_id),
            "outcome": APPROVED if self.outcome == APPROVE else self.outcome,
            "reason": self.reason,
            "event": self.event.as_dict() if self.event is not None else None,
        }


class ApprovalCriteria(NamedTuple):
    """On what an approval is decided.

    Attributes:
        selection: which events are meant.
        own_name: this VM's resource name, or None where unknown.
        release_others: whether an event may be approved that also hits other VMs than this one.
        policy: rules that decide further, or None for the selection alone.
        prepared: for the policy: "none", "running", "ok" or "failed".
        gates: for the policy: results of external checks.
    """

    selection: Selection
    own_name: str | None
    release_others: bool = False
    policy: Policy | None = None
    prepared: str = "none"
    gates: Mapping[str, bool] = MappingProxyType({})


class ApprovalResult(NamedTuple):
    """What came of one call that approves.

    Attributes:
        document: on which the decisions rest.
        own_name: this VM's resource name, or None where unknown.
        plan: what was to be done about every event that is meant.
        items: what was done; the plan where nothing was sent.
        warnings: what went wrong without being a failure.
    """

    document: EventDocument
    own_name: str | None
    plan: list[ApprovalOutcome]
    items: list[ApprovalOutcome]
    warnings: list[str]

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON values. A plan looks as if it had been carried out."""
        approved = [escape_surrogates(item.event_id) for item in self.items if item.outcome in (APPROVE, APPROVED)]
        return {
            "changed": bool(approved),
            "approvals": [item.as_dict() for item in self.items],
            "approved": approved,
            "incarnation": self.document.incarnation,
            "resource_name": self.own_name,
        }

    def failure(self, event_ids: Sequence[str]) -> str | None:
        """Why the call has failed, or None.

        event_ids: asked for by name. Only one of these fails for the sake of the other VMs that it
            hits.
        """
        named = {event_id.casefold() for event_id in event_ids}
        bad = [
            f"{escape_surrogates(item.event_id)}: {item.reason}"
            for item in self.items
            if item.outcome == FAILED or (item.outcome == OTHERS_AFFECTED and item.event_id.casefold() in named)
        ]
        if not bad:
            return None
        return f"{len(bad)} of {len(self.items)} events could not be approved. {'; '.join(bad)}"


def approve(conversation: ImdsSession, grounds: ApprovalCriteria, receipts_folder: str, send: bool) -> ApprovalResult:
    """Read the events, decide, and send what is to be approved, if ``send`` says so.

    grounds: its name is the conversation's, once that is known.
    Raises ImdsError where the events cannot be read.
    """
    document = conversation.read_events(name_required=grounds.selection.needs_own_name or not grounds.release_others)
    receipts = Receipts(receipts_folder, conversation.imds.endpoint)
    grounds = grounds._replace(own_name=conversation.resource_name)
    plan = plan_approvals(document, grounds, receipts, conversation.imds.api_version)
    items = plan
    warnings: list[str] = []
    if send:
        items, warnings = send_approvals(conversation.pacer, plan, receipts, conversation.time_left())
        if document.complete:
            receipts.prune(event.event_id for event in document.events)
    return ApprovalResult(document, conversation.resource_name, plan, items, warnings)


def plan_approvals(
    document: EventDocument, grounds: ApprovalCriteria, receipts: Receipts, api_version: str
) -> list[ApprovalOutcome]:
    """What to do about every event that is meant: those with outcome "approve" are to be sent.

    Raises OwnNameUnknown where a decision depends on a name that is not known.
    """
    asked = tuple(dict.fromkeys(grounds.selection.event_ids or ()))
    missing = "IMDS lists no such event: it is over, was cancelled, or never was"
    if not document.complete:
        missing = "IMDS lists no such event among those that can be read"
    plan = [ApprovalOutcome(event_id, NOT_FOUND, missing) for event_id in asked if document.find(event_id) is None]
    named = {event_id.casefold() for event_id in asked}
    for event in document.events:
        if not grounds.selection.matches(event, grounds.own_name):
            if event.key in named:
                plan.append(
                    ApprovalOutcome(event.event_id, NOT_SELECTED, "the other selection words leave it out", event)
                )
            continue
        plan.append(_plan_event(event, document, grounds, receipts, api_version))
    return plan


def _plan_event(
    event: ScheduledEvent, document: EventDocument, grounds: ApprovalCriteria, receipts: Receipts, api_version: str
) -> ApprovalOutcome:
    if event.status == "Started":
        return ApprovalOutcome(event.event_id, STARTED, "it has started, so there is nothing left to approve", event)
    if event.status != "Scheduled":
        return ApprovalOutcome(
            event.event_id, NOT_DUE, f"its status {event.status!r} is not one that can be approved", event
        )
    approved_at = receipts.find(event.event_id, event.not_before)
    if approved_at is not None:
        reason = f"this host approved it at {approved_at}; it waits for Azure to start it"
        return ApprovalOutcome(event.event_id, ALREADY_APPROVED, reason, event)
    obstacle, reason = _selection_or_policy(event, document, grounds, api_version)
    if obstacle is not None:
        return ApprovalOutcome(event.event_id, NOT_DUE, obstacle, event)
    if not grounds.release_others and not affects_only(event, grounds.own_name):
        names = escape_surrogates(", ".join(event.resources))
        return ApprovalOutcome(
            event.event_id,
            OTHERS_AFFECTED,
            f"an approval would release other VMs too ({names}), which needs release_others",
            event,
        )
    return ApprovalOutcome(event.event_id, APPROVE, reason, event)


def _selection_or_policy(
    event: ScheduledEvent, document: EventDocument, grounds: ApprovalCriteria, api_version: str
) -> tuple[str | None, str]:
    """Whether the caller wants the event approved: (what keeps it back or None, the reason)."""
    if grounds.policy is None:
        if event.event_type not in EVENT_TYPES and not (grounds.selection.event_ids or grounds.selection.types):
            return f"its type {event.event_type!r} is unknown, and neither its type nor its id was asked for", ""
        return None, "selected"
    situation = PolicyContext(
        now=document.server_time or datetime.now(timezone.utc),
        own_name=grounds.own_name,
        api_version=api_version,
        prepared=grounds.prepared,
        gates=grounds.gates,
    )
    decision = grounds.policy.decide(event, situation)
    return None if decision.due else decision.reason, decision.reason


def send_approvals(
    pacer: Pacer, plan: Sequence[ApprovalOutcome], receipts: Receipts, within: float
) -> tuple[list[ApprovalOutcome], list[str]]:
    """Send what the plan wants approved: (the plan with "approved" or "failed" in place of "approve", warnings).

    One event that IMDS refuses does not hold up the others. After a doubtful answer the events are
    looked at again, and only what is still Scheduled is sent again, as long as ``within`` seconds
    last.
    """
    sending = _ApprovalSender(pacer, pacer.clock() + within)
    wanted = [item for item in plan if item.outcome == APPROVE]
    for start in range(0, len(wanted), _IDS_PER_REQUEST):
        sending.send(wanted[start : start + _IDS_PER_REQUEST])
    warnings = _write_receipts(receipts, [item for item in sending.done.values() if item.outcome == APPROVED])
    return [sending.done.get(item.event_id, item) for item in plan], warnings


def _write_receipts(receipts: Receipts, approved: Iterable[ApprovalOutcome]) -> list[str]:
    now = as_utc_text(datetime.now(timezone.utc))
    try:
        for item in approved:
            receipts.write(item.event_id, now, item.event.not_before if item.event is not None else None)
    except OSError as error:
        return [
            f"receipts: the approval cannot be noted ({error}), and will be given again next time;"
            " name a folder that belongs to this user or to root, and that others cannot write to"
        ]
    return []


class _ApprovalSender:
    """The approvals of one run on their way; ``done`` has an outcome for each that is settled."""

    def __init__(self, pacer: Pacer, deadline: float) -> None:
        self._pacer = pacer
        self._deadline = deadline
        self.done: dict[str, ApprovalOutcome] = {}
        self._refused_before: set[str] = set()

    def send(self, batch: list[ApprovalOutcome]) -> None:
        while batch:
            if self._pacer.clock() >= self._deadline:
                self._set_outcome(batch, FAILED, "the time was up before it could be sent")
                return
            try:
                self._pacer.call(self._pacer.imds.approve, [item.event_id for item in batch], within=self._time_left())
            except ImdsError as error:
                batch = self._retryable_items(error, batch)
            else:
                self._set_outcome(batch, APPROVED, None)
                return

    def _retryable_items(self, error: ImdsError, batch: list[ApprovalOutcome]) -> list[ApprovalOutcome]:
        """Those of the batch that are worth another attempt; the others are settled."""
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
        # a refusal of a batch does not say which event is at fault: each is sent once more, by
        # itself
        for item in again:
            self._refused_before.add(item.event_id)
            self.send([item])
        return []

    def _still_scheduled(self, batch: list[ApprovalOutcome], doubt: ImdsError) -> list[ApprovalOutcome]:
        """Those that are still Scheduled, and as they were when they were planned. Nothing is sent again without a look."""
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
            elif (
                event is None
                or item.event is None
                or event._replace(not_before=None) != item.event._replace(not_before=None)
            ):
                self._set_outcome([item], FAILED, f"IMDS gave no clear answer ({doubt}), and the event has changed")
            else:
                wanted.append(item)
        return wanted

    def _read_events(self) -> EventDocument | None:
        """The events now, or None where IMDS could not be read as long as there was time."""
        while True:
            try:
                return self._pacer.call(self._pacer.imds.events, within=self._time_left())
            except ImdsError as error:
                if not (error.retryable and self._pause()):
                    return None

    def _set_outcome(self, batch: list[ApprovalOutcome], outcome: str, reason: str | None) -> list[ApprovalOutcome]:
        """Note the outcome of each; returns what is left to do of them, which is nothing."""
        for item in batch:
            self.done[item.event_id] = item._replace(outcome=outcome, reason=reason or item.reason)
        return []

    def _pause(self) -> bool:
        """Wait as the retry table says; False where there is no time left for another attempt."""
        delay = self._pacer.delay(event_known=True)
        if self._pacer.clock() + delay >= self._deadline:
            return False
        self._pacer.sleep(delay)
        return True

    def _time_left(self) -> float:
        return max(0.1, self._deadline - self._pacer.clock())
