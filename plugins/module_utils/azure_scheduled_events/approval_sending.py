# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Sends planned approvals, one event in a request, and determines the outcome of each."""

from __future__ import annotations

import collections
from datetime import datetime, timezone
from typing import Iterator, Sequence

from . import release
from .approval_plan import APPROVE, APPROVED, FAILED, NOT_FOUND, STARTED, ApprovalOutcome
from .changes import holds_unchanged
from .document import EventDocument
from .errors import ImdsError
from .receipts import Receipts
from .session import ImdsSession
from .timestamps import as_utc_text


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
        if final is None and session.is_over():
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
            return item._replace(outcome=STARTED, reason=release.STARTED.text)
        return item._replace(outcome=APPROVED, reason=f"{unclear}the event has started")
    if event is None and document.complete:
        return item._replace(outcome=NOT_FOUND, reason=f"{unclear}the event is gone")
    if event is None or item.event is None or not holds_unchanged(item.event, event):
        return _failed(item, f"{unclear}the event has changed")
    return None


def _failed(item: ApprovalOutcome, reason: str) -> ApprovalOutcome:
    return item._replace(outcome=FAILED, reason=reason)
