# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Approves an event for which this minion has prepared according to its own record."""

from __future__ import annotations

import logging
from typing import Any, Sequence

from azure_scheduled_events import approval_plan
from azure_scheduled_events.approval_sending import send_approvals
from azure_scheduled_events.document import escape_surrogates
from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.identity import affects_only
from azure_scheduled_events.receipts import Receipts
from azure_scheduled_events.release import STARTED, UNKNOWN_STATUS, unknown_value
from azure_scheduled_events.selection import ANY, Selection

from . import answers, lock
from .answers import Job
from .imds_observation import VmObservation, observe
from .minion import Minion
from .record import Record
from .selection import AFFECTS, evaluate, not_released

log = logging.getLogger(__name__)

# documents that a job reads before it approves for other VMs
_DOCUMENTS_FOR_OTHERS = 2


def approve_prepared(minion: Minion, job: Job, resources: Sequence[str], receipts: str) -> dict[str, Any]:
    """Approve the event if this minion has prepared for it in this boot; return the answer of the job.

    ``resources`` are the names of the VMs that are ready; no other may be affected by the event.
    ``receipts`` is the folder with the receipts of approvals.
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
    session, recorded = minion.session(), minion.file.read()

    def is_undecided(seen: VmObservation) -> bool:
        outcome, _reason = _blocked_by(minion, job, job.record_observation(seen), recorded, resources)
        if outcome is not None:
            return outcome == answers.OTHERS_AFFECTED and seen.tracked.doubt
        event = seen.tracked.events[job.key].event
        return seen.tracked.documents < _DOCUMENTS_FOR_OTHERS and not affects_only(event, seen.name)

    seen = observe(session, recorded.events if recorded is not None else (), is_undecided)
    outcome, reason = _blocked_by(minion, job, seen, recorded, resources)
    if outcome is None and is_undecided(seen):
        outcome, reason = answers.UNAVAILABLE, "IMDS gave one document in time; an approval for other VMs needs two"
    if outcome is not None:
        return job.answer(outcome, reason)
    notes = Receipts(receipts, session.imds.endpoint)
    criteria = approval_plan.ApprovalCriteria(
        Selection.of(event_ids=[job.event_id], affects=ANY), seen.name, release_others=True
    )
    plan = approval_plan.plan_approvals(seen.tracked, criteria, notes)
    items, warnings = send_approvals(session.pacer, plan, notes, session.time_left())
    for text in warnings:
        log.warning("azure_events: %s", text)
    (item,) = items
    return job.answer(answers.NOT_LISTED if item.outcome == approval_plan.NOT_FOUND else item.outcome, item.reason)


def _blocked_by(
    minion: Minion, job: Job, seen: VmObservation, recorded: Record | None, resources: Sequence[str]
) -> tuple[str | None, str]:
    """Return why this minion must not approve the event, as outcome and reason, or (None, "").

    The last document must list the event for this VM. An approval releases all its VMs that are not gone.
    """
    event = job.event
    if event is None:
        return (
            answers.NOT_LISTED if seen.tracked.document.complete else answers.UNAVAILABLE
        ), "Azure does not list the event"
    chosen = evaluate(event, seen.name, minion.configuration, seen.now, notice=False)
    if chosen.code == AFFECTS:
        return answers.NOT_AFFECTED, chosen.reason
    sighting = seen.tracked.events[event.key]
    if sighting.event.status == "Started":
        return answers.STARTED, STARTED.text
    unknown = unknown_value(sighting.event)
    if unknown is not None and unknown.code == UNKNOWN_STATUS:
        return answers.NOT_SELECTED, unknown.text
    if not chosen.selected:
        return answers.NOT_SELECTED, chosen.reason
    if recorded is None or not recorded.is_prepared(minion.boot) or recorded.find(event.event_id) is None:
        return answers.NOT_PREPARED, "this minion's record has no preparation for it in this boot"
    others = not_released(sighting.event.resources, resources)
    if others or not sighting.readable:
        names = escape_surrogates(", ".join(others)) or "VMs whose names cannot be read"
        return answers.OTHERS_AFFECTED, f"an approval would release VMs that are not ready: {names}"
    return None, ""
