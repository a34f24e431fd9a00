# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Approves an event for which this minion has prepared according to its own record."""

from __future__ import annotations

import logging
from typing import Any, Mapping, NamedTuple, Sequence

from azure_scheduled_events.approval import send_approvals
from azure_scheduled_events.approval_plan import APPROVE, NOT_FOUND, ApprovalOutcome
from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.identity import vm_key
from azure_scheduled_events.receipts import Receipts
from azure_scheduled_events.release import (
    ALREADY_APPROVED,
    ONE_DOCUMENT,
    UNKNOWN_VALUES,
    UNKNOWN_VM,
    UNREADABLE,
    Obstacle,
    Report,
    all_vms,
    obstacles,
)
from azure_scheduled_events.tracking import Tracker

from . import answers, lock
from .answers import Job
from .imds_observation import VmObservation, observe
from .minion import Minion
from .selection import AFFECTS, evaluate

log = logging.getLogger(__name__)

# documents that an approval needs, because one may lack a VM that it would release
_DOCUMENTS = 2
# outcomes of obstacles; that of any other one is its code
_OUTCOMES: Mapping[str, str] = {
    UNKNOWN_VM: answers.OTHERS_AFFECTED,
    UNREADABLE.code: answers.OTHERS_AFFECTED,
    ONE_DOCUMENT.code: answers.UNAVAILABLE,
}


class Ready(NamedTuple):
    """The VMs that are ready, names by VM key, and the type of event for which they are; None for any."""

    vms: Mapping[str, str]
    event_type: str | None


def approve_prepared(
    minion: Minion,
    job: Job,
    resources: Sequence[str],
    receipts: str,
    forced: bool = False,
    event_type: str | None = None,
) -> dict[str, Any]:
    """Approve the event if this minion has prepared for it in this boot; return the answer of the job.

    ``resources`` are the names of the VMs that are ready; no other may be affected by the event.
    ``receipts`` is the folder with the receipts of approvals. ``forced`` says whether a person ordered
    the approval, which then also releases an event with unknown values. ``event_type`` is the type for which the
    VMs are ready, or None for any.
    """
    ready = Ready(all_vms([resources]), event_type)
    try:
        with minion.locked(lock.APPROVAL, job) as held:
            if held is None:
                return job.answer(answers.FAILED, "another approval of this minion has not ended yet")
            return _approved(minion, job, ready, receipts, forced)
    except ImdsError as error:
        return job.answer(answers.UNAVAILABLE, str(error))
    except (ValueError, OSError) as error:
        return job.answer(answers.FAILED, str(error))


def _approved(minion: Minion, job: Job, ready: Ready, receipts: str, forced: bool) -> dict[str, Any]:
    session, recorded = minion.session(), minion.file.read()

    def obstacles_in(seen: VmObservation) -> list[Obstacle]:
        found = _obstacles(minion, job, job.record_observation(seen), ready)
        left = [obstacle for obstacle in found if not (forced and obstacle.code in UNKNOWN_VALUES)]
        return left or _unconfirmed(job, seen, Receipts(receipts, session.imds.endpoint))

    def is_undecided(seen: VmObservation) -> bool:
        codes = {obstacle.code for obstacle in obstacles_in(seen)}
        return codes == {ONE_DOCUMENT.code} or (codes == {UNKNOWN_VM} and seen.tracked.doubt)

    seen = observe(session, Tracker(recorded.events if recorded is not None else ()), is_undecided)
    found, event = obstacles_in(seen), job.event
    if found or event is None:
        code = found[0].code
        return job.answer(_OUTCOMES.get(code, code), "; ".join(map(str, found)))
    notes = Receipts(receipts, session.imds.endpoint)
    planned = ApprovalOutcome(event.event_id, APPROVE, "a person ordered it" if forced else "its VMs are ready", event)
    (item,), warnings = send_approvals(session, [planned], notes)
    for text in warnings:
        log.warning("azure_events: %s", text)
    return job.answer(answers.NOT_LISTED if item.outcome == NOT_FOUND else item.outcome, item.reason)


def _obstacles(minion: Minion, job: Job, seen: VmObservation, ready: Ready) -> list[Obstacle]:
    """Return why this minion must not approve the event.

    The last document must list the event for this VM. The engine answers for the other VMs in ``ready``.
    """
    event = job.event
    if event is None:
        code = answers.NOT_LISTED if seen.tracked.document.complete else answers.UNAVAILABLE
        return [Obstacle(code, "Azure does not list the event")]
    chosen = evaluate(event, seen.name, minion.configuration, seen.now, notice=False)
    if chosen.code == AFFECTS:
        return [Obstacle(answers.NOT_AFFECTED, chosen.reason)]
    if ready.event_type not in (None, event.event_type):
        text = f"its VMs are ready for {ready.event_type}, and it is of the type {event.event_type!r} now"
        return [Obstacle(answers.NOT_PREPARED, text)]
    sighting = seen.tracked.events[event.key]
    # again for each document: another job may recover while IMDS is read
    recorded = minion.file.read()
    is_prepared = (
        recorded is not None
        and recorded.find(event.event_id) is not None
        and recorded.is_prepared(job.reason(), minion.boot)
    )
    not_selected = None if chosen.selected else Obstacle(answers.NOT_SELECTED, chosen.reason)
    own = {vm_key(seen.name): Report(sighting, is_prepared, not_selected)}
    return [
        obstacle
        for obstacle in obstacles(own, "the engine does not name it as ready")
        if not (obstacle.code == UNKNOWN_VM and vm_key(obstacle.vm) in ready.vms)
    ]


def _unconfirmed(job: Job, seen: VmObservation, notes: Receipts) -> list[Obstacle]:
    """Return why an approval that nothing else prevents is not sent: it was, or one document was read."""
    event = job.event
    approved_at = None if event is None else notes.find(event.event_id, event.not_before)
    if approved_at is not None:
        return [ALREADY_APPROVED._replace(text=f"{ALREADY_APPROVED.text} (approved at {approved_at})")]
    return [] if seen.tracked.documents >= _DOCUMENTS else [ONE_DOCUMENT]
