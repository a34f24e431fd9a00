# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Approves an event for which this minion has prepared according to its own record."""

from __future__ import annotations

import logging
from typing import Any, Sequence

from azure_scheduled_events import approval_plan
from azure_scheduled_events.approval_rules import BlockCode, blocked_by_state
from azure_scheduled_events.approval_sending import send_approvals
from azure_scheduled_events.changes import ABSENCES_NEEDED
from azure_scheduled_events.document import escape_surrogates
from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.receipts import Receipts
from azure_scheduled_events.selection import ANY, Selection
from azure_scheduled_events.session import ImdsSession

from . import answers, lock
from .answers import Job
from .imds_observation import POLL_INTERVAL, Observation, observe
from .minion import Minion
from .record import Record
from .selection import AFFECTS, evaluate, not_released

log = logging.getLogger(__name__)


def approve_prepared(minion: Minion, job: Job, resources: Sequence[str], receipts: str) -> dict[str, Any]:
    """Approve the event if this minion has prepared for it in this boot; return the answer of the job.

    ``resources`` are the names of the VMs that are ready; the event and the record must not name
    others. ``receipts`` is the folder with the receipts of approvals.
    """
    try:
        with minion.locked(lock.APPROVAL, job) as held:
            if held is None:
                return job.answer(answers.FAILED, "another approval of this minion has not ended yet")
            return _approved(minion, job, resources, receipts)
    except ImdsError as error:
        return job.answer(answers.UNAVAILABLE, str(error))
    except (ValueError, OSError) as error:
        return job.answer(answers.FAILED, str(error))


def _approved(minion: Minion, job: Job, resources: Sequence[str], receipts: str) -> dict[str, Any]:
    session = minion.session()
    seen, outcome, reason = _observed(minion, job, session, resources)
    if outcome is not None:
        return job.answer(outcome, reason)
    notes = Receipts(receipts, session.imds.endpoint)
    criteria = approval_plan.ApprovalCriteria(
        Selection.of(event_ids=[job.event_id], affects=ANY), seen.name, release_others=True
    )
    plan = approval_plan.plan_approvals(seen.document, criteria, notes)
    items, warnings = send_approvals(session.pacer, plan, notes, session.time_left())
    for text in warnings:
        log.warning("azure_events: %s", text)
    (item,) = items
    return job.answer(answers.NOT_LISTED if item.outcome == approval_plan.NOT_FOUND else item.outcome, item.reason)


def _observed(
    minion: Minion, job: Job, session: ImdsSession, resources: Sequence[str]
) -> tuple[Observation, str | None, str]:
    """Return the latest document, and why this minion must not approve the event, as outcome and reason.

    A VM of the record counts as gone from the event after ABSENCES_NEEDED documents in a row without
    it. The outcome is None if the minion may approve.

    Raises:
        ImdsError: IMDS gave no good document.
        ValueError, OSError: the record cannot be read.
    """
    recorded = minion.file.read()
    reason = recorded.find(job.event_id) if recorded is not None else None
    missing = not_released(reason.resources, resources) if reason is not None else []
    for number in range(ABSENCES_NEEDED if missing else 1):
        if number:
            session.pacer.sleep(POLL_INTERVAL)
        seen = job.record_observation(observe(session))
        outcome, why = _blocked_by(minion, job, seen, recorded, resources)
        if outcome is not None:
            break
    return seen, outcome, why


def _blocked_by(
    minion: Minion, job: Job, seen: Observation, recorded: Record | None, resources: Sequence[str]
) -> tuple[str | None, str]:
    """Return why this minion must not approve the event, as outcome and reason, or (None, "")."""
    event = job.event
    if event is None:
        return (answers.NOT_LISTED if seen.document.complete else answers.UNAVAILABLE), "Azure does not list the event"
    chosen = evaluate(event, seen.name, minion.configuration, seen.now, notice=False)
    if chosen.code == AFFECTS:
        return answers.NOT_AFFECTED, chosen.reason
    blocked = blocked_by_state(event)
    if blocked is not None:
        outcome = answers.STARTED if blocked.code is BlockCode.STARTED else answers.NOT_SELECTED
        return outcome, blocked.text
    if not chosen.selected:
        return answers.NOT_SELECTED, chosen.reason
    if recorded is None or not recorded.is_prepared(minion.boot) or recorded.find(event.event_id) is None:
        return answers.NOT_PREPARED, "this minion's record has no preparation for it in this boot"
    others = not_released(event.resources, resources)
    if others or event.key in seen.document.doubtful:
        names = escape_surrogates(", ".join(others)) or "VMs whose names cannot be read"
        return answers.OTHERS_AFFECTED, f"an approval would release VMs that are not ready: {names}"
    return None, ""
