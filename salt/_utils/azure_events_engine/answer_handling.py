# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Applies the answers of minions to the state. An answer changes the state of its minion alone."""

from __future__ import annotations

import itertools
import math
from typing import Any

from azure_scheduled_events.document import EventDocument
from azure_scheduled_events.event_types import advises
from azure_scheduled_events.identity import vm_key
from azure_scheduled_events.tracking import GONE_AFTER, Sighting, Tracker

from . import polling
from .answers import (
    MAX_EVENTS,
    PREPARED,
    PREPARING,
    RECOVER_FAILED,
    RECOVERING,
    STARTED,
    InvalidAnswer,
    JobResult,
    ListedEvent,
    Record,
    Status,
    event_key,
    parse_result,
    parse_status,
)
from .messages import SaveName
from .state import Job, Maintenance
from .state_update import StateUpdate

OLD_BOOT = "old_boot"
ODD = "odd_answer"
# Attempts of a preparation that fails, and seconds before the next attempt: the first delay, the
# longest one, and the longest one while the minion's IMDS does not answer.
PREPARE_TRIES = 3
_FIRST_RETRY_DELAY = 5.0
_MAX_RETRY_DELAY = 60.0
_UNAVAILABLE_RETRY_DELAY = 5.0
# seconds after which a return counts as lost if the record says that the job was interrupted
_INTERRUPTED_TIMEOUT = 3.0
# seconds between two starts of one minion that are handled
_MIN_START_INTERVAL = 30.0
# maintenances in all, and those that one minion takes part in
MAX_MAINTENANCES = 20000
_MAX_OF_MINION = 2 * MAX_EVENTS


def handle(update: StateUpdate, token: int, minion: str, answer: Any) -> None:
    """Apply an answer to a job of the engine, and ignore other answers."""
    job = update.job(token)
    if job is None or minion not in job.minions:
        return
    update.close_job(token, minion)
    if minion not in update.names.accepted:
        return
    try:
        if job.function == "status":
            _apply_status(update, minion, token, job, parse_status(answer))
        else:
            event_id = update.maintenances[job.key].event_id if job.key in update.maintenances else job.key
            done = parse_result(job.function, answer, event_id)
            update.set_minion(minion, complaint="")
            _apply_result(update, minion, token, job, done)
    except InvalidAnswer as error:
        _refuse(update, minion, token, job, str(error))


def handle_start(update: StateUpdate, minion: str) -> None:
    """Distrust the preparations of a minion that has started, until it reports them again.

    It may have rebooted. Any minion can send this event; therefore it is handled at most once in
    _MIN_START_INTERVAL.
    """
    known = update.minion(minion)
    if minion not in update.names.accepted or update.now - known.started_at < _MIN_START_INTERVAL:
        return
    update.set_minion(minion, started_at=update.now, answered_job=update.last_job)
    for key, maintenance in update.maintenances.items():
        member = maintenance.members.get(minion)
        if member is not None and (member.record or member.job):
            record = OLD_BOOT if member.record == PREPARED else member.record
            update.set_member(key, minion, record=record, job=0, doing="", next_at=math.inf)


def handle_unpublished(update: StateUpdate, token: int, reason: str) -> None:
    """Handle a job that could not be published."""
    job = update.job(token)
    if job is None:
        return
    update.close_job(token)
    for minion in job.minions:
        if job.function == "status":
            update.set_minion(minion, poll_job=0, poll_wanted=True, poll_at=update.now + _FIRST_RETRY_DELAY)
        else:
            _apply_result(
                update, minion, token, job, JobResult("unavailable", f"the job could not be published: {reason}")
            )


def _refuse(update: StateUpdate, minion: str, token: int, job: Job, reason: str) -> None:
    if job.function == "status":
        polling.record_answer(update, minion, token, news=False)
    else:
        _apply_result(update, minion, token, job, JobResult(ODD, reason))
    update.set_minion(minion, complaint=reason)


def _apply_status(update: StateUpdate, minion: str, token: int, job: Job, status: Status) -> None:
    known = update.minion(minion)
    if token <= known.answered_job:
        return
    changed = _apply_name(update, minion, status)
    # an approval may wait for a recent answer, or for the second one
    is_awaited = known.documents < 2 or update.now - known.answered_at >= update.settings.answer
    for key in update.maintenances_of(minion):
        maintenance = update.maintenances[key]
        update.set_maintenance(
            key, last_answer_at=update.now, examine=maintenance.examine or is_awaited, changed=maintenance.changed
        )
    if status.available:
        changed = _apply_events(update, minion, status, job.asked_at) or changed
    changed = _apply_records(update, minion, status, job.asked_at) or changed
    state = {
        "complaint": update.names.complaint(minion),
        "left_out": status.left_out,
        "unavailable": "" if status.available else status.reason or "its IMDS gives no document, without a reason",
        "working": status.working or "",
        "interrupted": any(
            # by its own type: any member sets that of the maintenance
            sighting is not None and sighting.event.status == STARTED and not advises(sighting.event.event_type)
            for sighting in (update.member(key, minion).sighting for key in update.maintenances_of(minion))
        ),
    }
    if state != {name: getattr(known, name) for name in state} or known.silent:
        for key in update.maintenances_of(minion):
            update.set_maintenance(key, examine=True)
    update.set_minion(minion, **state, answered_at=update.now)
    polling.record_answer(update, minion, token, changed)
    if not status.available and update.maintenances_of(minion):
        polling.request_poll(update, minion, update.now + _UNAVAILABLE_RETRY_DELAY)


def _apply_events(update: StateUpdate, minion: str, status: Status, asked_at: float) -> bool:
    """Apply the events of the document that the minion has read; return True for a change."""
    members = update.maintenances_of(minion)
    tracker = _tracker(update, minion, members)
    listed = _own_events(update, minion, status, members)
    document = EventDocument(
        None,
        tuple(item.event for item in listed.values()),
        complete=status.complete,
        doubtful=tuple(key for key, item in listed.items() if not item.readable),
        # the minion read it between these times
        sent_at=asked_at,
        sent_by=update.now,
    )
    seen = tracker.observe(document)
    update.set_minion(minion, tracker=tracker, documents=update.minion(minion).documents + 1)
    if seen.doubt:
        polling.request_poll(update, minion, update.now + GONE_AFTER)
    changed, returned = False, tracker.returned
    for key in dict.fromkeys([*members, *listed]):
        sighting = seen.events.get(key)
        changed = _apply_sighting(update, minion, key, sighting, key in returned, listed.get(key)) or changed
    return changed


def _tracker(update: StateUpdate, minion: str, members: list[str]) -> Tracker:
    """Return a copy of the minion's tracker, or one that knows what is stored."""
    tracker = update.minion(minion).tracker
    if tracker is not None:
        return tracker.copy()
    known = {key: update.member(key, minion) for key in members}
    return Tracker(
        [member.sighting.event for member in known.values() if member.sighting is not None],
        returned=[key for key, member in known.items() if member.returned],
        gone=[
            *(key for key, over in update.over.items() if minion in over.members),
            *(key for key, member in known.items() if not member.present),
        ],
    )


def _apply_records(update: StateUpdate, minion: str, status: Status, asked_at: float) -> bool:
    changed = False
    records = {event_key(record.event_id): record for record in status.records if record.event_id}
    members = update.maintenances_of(minion)
    for key in members:
        changed = _apply_record(update, minion, key, records.pop(key, None), status.working, asked_at) or changed
    for key, record in itertools.islice(records.items(), max(0, _MAX_OF_MINION - len(members))):
        _add(update, key, Maintenance(record.event_id, record.event_type))
        if key in update.maintenances:
            changed = _apply_record(update, minion, key, record, status.working, asked_at) or changed
    return changed


def _apply_name(update: StateUpdate, minion: str, status: Status) -> bool:
    if not status.resource_name:
        return False
    names = update.names.claim(minion, status.resource_name)
    if names is update.names:
        return False
    if names.observed is not update.names.observed:
        update.add_action(SaveName(minion, names.observed[minion]))
    update.names = names
    for key, maintenance in update.maintenances.items():
        if not maintenance.examine:
            update.set_maintenance(key, examine=True)
    return True


def _add(update: StateUpdate, key: str, maintenance: Maintenance) -> None:
    if key not in update.maintenances and len(update.maintenances) < MAX_MAINTENANCES:
        update.begin_maintenance(key, maintenance)


def _own_events(update: StateUpdate, minion: str, status: Status, members: list[str]) -> dict[str, ListedEvent]:
    """Return the listed events of the minion's own VM by key, and begin their maintenances.

    ``members`` are the keys of the maintenances of which it is a member. Their events may have unreadable Resources.
    """
    own = {update.names.vm_of(minion), update.names.claims.get(minion)} - {None}
    keys = set(members)
    found: dict[str, ListedEvent] = {}
    for item in status.events:
        key, event_type = item.event.key, item.event.event_type
        affects = not own.isdisjoint(map(vm_key, item.event.resources))
        if affects and key not in keys and len(keys) < _MAX_OF_MINION:
            _add(update, key, Maintenance(item.event.event_id))
            if key in update.maintenances:
                keys.add(key)
        if key in keys and (affects or not item.readable):
            known = update.maintenances[key]
            if known.event_type != event_type or known.not_before != item.not_before:
                update.set_maintenance(
                    key, event_type=event_type, not_before=item.not_before, last_answer_at=update.now
                )
            found[key] = item
    return found


def _apply_sighting(
    update: StateUpdate, minion: str, key: str, sighting: Sighting | None, returned: bool, listed: ListedEvent | None
) -> bool:
    """Apply what the minion's tracker has of an event, and its answer; return True for a change."""
    member = update.member(key, minion)
    now = member._replace(sighting=sighting, returned=returned)
    if listed is not None:
        now = now._replace(not_selected="" if listed.selected else listed.not_selected or "not_selected")
    if now == member:
        return False
    if member.present and not now.present:
        now = now._replace(tries=0, next_at=update.now)
    elif member.present and (member.resources != now.resources or member.not_selected != now.not_selected):
        # a step that failed may succeed for the changed event
        now = now._replace(tries=0, next_at=update.now, outcome="", reason="")
    update.set_member(key, minion, **now._asdict())
    if now.returned != member.returned or (member.present and not now.present):
        # the next engine must know what was gone, and what came back
        update.save(key)
    return True


def _apply_record(
    update: StateUpdate, minion: str, key: str, record: Record | None, working: str | None, asked_at: float
) -> bool:
    member = update.member(key, minion)
    interrupted = record is not None and record.state in (PREPARING, RECOVERING) and working is None
    timeout = min(update.settings.answer, _INTERRUPTED_TIMEOUT) if interrupted else update.settings.answer
    lost = member.job != 0 and asked_at - member.asked_at >= timeout and working != key
    if asked_at < member.done_at:
        # the return of the job is newer than this answer
        return False
    state, event_type = ("", "") if record is None else (record.state, record.event_type)
    if record is not None and state == PREPARED and not record.this_boot:
        state = OLD_BOOT
    changes: dict[str, Any] = {}
    if member.seen_at < member.done_at or member.next_at == math.inf:
        changes = {"seen_at": asked_at, "next_at": update.now if member.next_at == math.inf else member.next_at}
    if lost:
        update.close_job(member.job, minion)
        changes.update({"job": 0, "doing": "", "next_at": update.now})
    elif interrupted and member.job:
        polling.request_poll(update, minion, member.asked_at + timeout)
    if working == key:
        changes["next_at"] = update.now + _FIRST_RETRY_DELAY
        polling.request_poll(update, minion, update.now + _FIRST_RETRY_DELAY)
    if (state, event_type) == (member.record, member.record_type) and not changes:
        return False
    update.set_member(key, minion, record=state, record_type=event_type, **changes)
    return state != member.record or lost


def _apply_result(update: StateUpdate, minion: str, token: int, job: Job, done: JobResult) -> None:
    if job.function == "approve_prepared":
        _apply_approval(update, minion, token, job.key, done)
        return
    if job.key not in update.maintenances:
        return
    member = update.member(job.key, minion)
    if member.job != token:
        return
    update.set_maintenance(job.key, last_answer_at=update.now)
    changes: dict[str, Any] = {
        "job": 0,
        "doing": "",
        "outcome": done.outcome,
        "reason": done.reason,
        "done_at": update.now,
    }
    if done.outcome in ("prepared", "already_prepared"):
        changes.update(record=PREPARED, record_type=done.event_type, tries=0)
        update.set_minion(minion, documents=update.minion(minion).documents + 1)
        if member.present and not member._replace(record=PREPARED, record_type=done.event_type).is_prepared:
            # it read another type than for its last status
            changes.update(next_at=update.now + _FIRST_RETRY_DELAY)
            polling.request_poll(update, minion)
    elif done.outcome in ("recovered", "not_prepared"):
        changes.update(record="", tries=0)
    else:
        tries = member.tries + 1
        longest = _UNAVAILABLE_RETRY_DELAY if done.outcome == "unavailable" else _MAX_RETRY_DELAY
        changes.update(tries=tries, next_at=update.now + min(longest, _FIRST_RETRY_DELAY * 2.0 ** min(tries - 1, 10)))
        if job.function == "recover" and done.outcome == "failed":
            changes.update(record=RECOVER_FAILED)
        polling.request_poll(update, minion)
    update.set_member(job.key, minion, **changes)


def _apply_approval(update: StateUpdate, minion: str, token: int, key: str, done: JobResult) -> None:
    maintenance = update.maintenances.get(key)
    if maintenance is None or maintenance.approval is None or maintenance.approval.job != token:
        return
    if done.outcome in ("approved", "already_approved", "started"):
        update.set_maintenance(
            key, approval=maintenance.approval._replace(outcome=done.outcome), last_answer_at=update.now, examine=True
        )
    else:
        refuse_approval(update, key, minion, f"{done.outcome}: {done.reason}" if done.reason else done.outcome)
    polling.request_poll(update, minion)
    update.save(key)


def refuse_approval(update: StateUpdate, key: str, minion: str, reason: str) -> None:
    """Note that the minion did not approve: try others, and this one again later."""
    maintenance = update.maintenances[key]
    refusals = {**maintenance.refusals, minion: (update.now + _FIRST_RETRY_DELAY, reason)}
    update.set_maintenance(key, approval=None, refusals=refusals, examine=True)


def may_retry(outcome: str, tries: int) -> bool:
    """Return True if a preparation with that outcome is retried although nothing has changed."""
    return outcome != "started" and (outcome not in ("failed", ODD) or tries < PREPARE_TRIES)
