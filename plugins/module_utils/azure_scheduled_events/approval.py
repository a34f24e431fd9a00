# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Approves events: reads them, decides, and sends the approvals, one event in a request."""

from __future__ import annotations

import collections
from datetime import datetime, timezone
from typing import Any, Iterator, NamedTuple, Sequence

from . import release
from .approval_plan import (
    APPROVE,
    APPROVED,
    FAILED,
    NOT_DUE,
    NOT_FOUND,
    ApprovalCriteria,
    ApprovalOutcome,
    plan_approvals,
)
from .changes import holds_unchanged
from .document import EventDocument
from .errors import ImdsError
from .printable import printable
from .receipts import Receipts
from .session import ImdsSession
from .timestamps import as_utc_text
from .tracking import Tracker

# seconds between the two documents that an approval needs
_CONFIRMED_AFTER = 1.0


class ApprovalResult(NamedTuple):
    """The result of one call that approves.

    Attributes:
        document: the document on which the decisions rest.
        own_name: this VM's resource name, or None where unknown.
        plan: the decision about every selected event.
        items: the outcome of every selected event; the plan where nothing was sent.
        warnings: problems that are not a failure.
    """

    document: EventDocument
    own_name: str | None
    plan: list[ApprovalOutcome]
    items: list[ApprovalOutcome]
    warnings: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values; planned approvals are listed as approved."""
        approved = [item.event_id for item in self.items if item.outcome in (APPROVE, APPROVED)]
        return {
            "changed": bool(approved),
            "approvals": [item.as_dict() for item in self.items],
            "approved": approved,
            "incarnation": self.document.incarnation,
            "resource_name": self.own_name,
        }

    def failure(self, event_ids: Sequence[str]) -> str | None:
        """Return why the call has failed, or None.

        The text is one sentence with the reason for each event. An event that affects other VMs is a failure only if
        it is one of ``event_ids``, which the caller named.
        """
        named = {event_id.casefold() for event_id in event_ids}
        bad = [
            f"{printable(item.event_id)}: {item.reason}"
            for item in self.items
            if item.outcome == FAILED or (item.outcome == release.OTHERS_AFFECTED and item.event_id.casefold() in named)
        ]
        if not bad:
            return None
        return f"{len(bad)} of {len(self.items)} events could not be approved. {'; '.join(bad)}"


def approve(session: ImdsSession, criteria: ApprovalCriteria, receipts_folder: str, send: bool) -> ApprovalResult:
    """Read the events, decide, and send the approvals; only decide if ``send`` is False.

    One document may lack a VM that the approval would release. Therefore an approval is sent only if a second document
    confirms it: the VMs of both count. The name that the session finds replaces ``criteria.own_name``.

    Returns:
        The plan and its outcome.

    Raises:
        ImdsError: the events could not be read.
    """
    tracker = Tracker()
    document = session.read_events(name_required=criteria.selection.needs_own_name or not criteria.release_others)
    criteria = criteria._replace(own_name=session.resource_name)
    receipts = Receipts(receipts_folder, session.imds.endpoint)
    seen = tracker.observe(document)
    plan = plan_approvals(seen, criteria, receipts)
    if send and any(item.outcome == APPROVE for item in plan):
        session.pacer.sleep(_CONFIRMED_AFTER)
        seen = tracker.observe(session.call_with_retries(session.imds.events))
        plan = _confirmed(plan, plan_approvals(seen, criteria, receipts))
    items = plan
    warnings = list(criteria.policy.warnings) if criteria.policy is not None else []
    if send:
        items, problems = send_approvals(session, plan, receipts)
        warnings += problems
    return ApprovalResult(seen.document, session.resource_name, plan, items, warnings)


def _confirmed(first: Sequence[ApprovalOutcome], second: Sequence[ApprovalOutcome]) -> list[ApprovalOutcome]:
    """Return the plan after the second document, without approvals that the first one did not permit."""
    permitted = {item.event_id.casefold() for item in first if item.outcome == APPROVE}
    return [
        item
        if item.outcome != APPROVE or item.event_id.casefold() in permitted
        else item._replace(outcome=NOT_DUE, reason=release.ONE_DOCUMENT.text)
        for item in second
    ]


def send_approvals(
    session: ImdsSession, plan: Sequence[ApprovalOutcome], receipts: Receipts
) -> tuple[list[ApprovalOutcome], list[str]]:
    """Send the planned approvals, and note each accepted one in ``receipts`` before the next is sent.

    Only decisions with outcome "approve" are sent. After an error the events are read before the next approval, and an
    event is sent only if it is still Scheduled and unchanged.

    Returns:
        The plan with "approved", "failed", "not_found" or "started" in place of "approve", and warnings about receipts.
    """
    done: dict[str, ApprovalOutcome] = {}
    warnings: dict[str, None] = {}
    for item in _results(session, [item for item in plan if item.outcome == APPROVE]):
        done[item.event_id] = item
        warning = _write_receipt(receipts, item) if item.outcome == APPROVED else None
        if warning is not None:
            warnings[warning] = None
    return [done.get(item.event_id, item) for item in plan], list(warnings)


def _write_receipt(receipts: Receipts, item: ApprovalOutcome) -> str | None:
    """Note an accepted approval; return a warning or None."""
    not_before = item.event.not_before if item.event is not None else None
    try:
        damaged = receipts.write(item.event_id, as_utc_text(datetime.now(timezone.utc)), not_before)
    except OSError as error:
        return (
            f"receipts: the approval cannot be noted ({error}), and will be sent again next time;"
            " name a folder that this user or root owns and that no other user can write to"
        )
    if damaged:
        return f"receipts: {receipts.path} was damaged; it is replaced, and approvals that it had are sent again"
    return None


def _results(session: ImdsSession, items: Sequence[ApprovalOutcome]) -> Iterator[ApprovalOutcome]:
    """Yield each item with its outcome as soon as it is known.

    An event whose approval fails is sent again after the others; once only if IMDS refuses it.
    """
    waiting = collections.deque(items)
    errors: dict[str, ImdsError] = {}
    refused: set[str] = set()
    document: EventDocument | None = None
    while waiting:
        item = waiting.popleft()
        final = None if document is None else _final(item, document, errors.get(item.event_id))
        if final is None and session.time_left() <= 0:
            final = _failed(item, "the timeout passed before it could be sent")
        if final is not None:
            yield final
            continue
        try:
            session.pacer.call(session.imds.approve, item.event_id, within=session.time_left())
        except ImdsError as error:
            errors[item.event_id] = error
            if error.retryable or (_concerns_event(error) and item.event_id not in refused):
                waiting.append(item)
            else:
                yield _failed(item, str(error))
            if _concerns_event(error):
                refused.add(item.event_id)
            document = _events_after(session, error) if waiting else None
            if document is None:
                yield from (_failed(each, str(errors.get(each.event_id, error))) for each in waiting)
                return
        else:
            yield item._replace(outcome=APPROVED)


def _events_after(session: ImdsSession, error: ImdsError) -> EventDocument | None:
    """Return the events as soon as the next approval may follow the error; None if none may."""
    may_follow = session.pause() if error.retryable else _concerns_event(error)
    while may_follow:
        try:
            document = session.pacer.call(session.imds.events, within=session.time_left())
        except ImdsError as failure:
            may_follow = failure.retryable and session.pause()
        else:
            # the pause after a refusal
            return document if error.retryable or session.pause() else None
    return None


def _concerns_event(error: ImdsError) -> bool:
    """Return True if IMDS has refused the event, and not the request itself."""
    return error.status == 400 and not error.supported_versions


def _final(item: ApprovalOutcome, document: EventDocument, error: ImdsError | None) -> ApprovalOutcome | None:
    """Return the item's outcome by later events; None if its approval is to be sent.

    ``error`` is that of the last attempt to approve the event, or None.
    """
    event = document.find(item.event_id)
    unclear = "" if error is None else f"IMDS gave no clear answer ({error}), and "
    if event is not None and event.status == "Started":
        if error is None:
            return item._replace(outcome=release.STARTED.code, reason=release.STARTED.text)
        return item._replace(outcome=APPROVED, reason=f"{unclear}the event has started")
    if event is None and document.complete:
        return item._replace(outcome=NOT_FOUND, reason=f"{unclear}the event is gone")
    if event is None or item.event is None or not holds_unchanged(item.event, event):
        return _failed(item, f"{unclear}the event has changed")
    return None


def _failed(item: ApprovalOutcome, reason: str) -> ApprovalOutcome:
    return item._replace(outcome=FAILED, reason=reason)
