# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""What the answer of a minion changes in the state. It counts for that minion alone."""

from __future__ import annotations

import math
from typing import Any

from . import looking
from .answers import (
    MOST_EVENTS,
    PREPARED,
    PREPARING,
    RECOVER_FAILED,
    RECOVERING,
    STARTED,
    Done,
    Listed,
    OddAnswer,
    Record,
    Status,
    event_key,
    read_done,
    read_status,
)
from .mapping import vm_key
from .messages import SaveName
from .state import Job, Maintenance
from .turn import Turn

OLD_BOOT = "old_boot"
ODD = "odd_answer"
# further questions after a failure, and seconds before them: first, longest, and longest where the
# minion's IMDS gives no answer, which may end at any moment
PREPARE_TRIES = 3
_FIRST_RETRY = 5.0
_LONGEST_RETRY = 60.0
_UNAVAILABLE_RETRY = 5.0
# seconds after which a second document that does not list an event is asked for
_SECOND_LOOK = 2.0
# seconds after which a return counts as lost when the minion says that it was interrupted
_INTERRUPTED = 3.0
# answers in a row without an event, after which it is over for its minion; twice as many after each
# of so many returns
_ABSENCES_NEEDED = 2
_MOST_RETURNS = 3
# seconds between two starts of a minion
_START_AGAIN = 30.0
# maintenances that are remembered in all
MOST_MAINTENANCES = 20000


def take(turn: Turn, token: int, minion: str, answer: Any) -> None:
    """Take an answer that belongs to a question of the engine; others are ignored."""
    job = turn.job(token)
    if job is None or minion not in job.minions:
        return
    turn.close_job(token, minion)
    if minion not in turn.names.accepted:
        return
    try:
        if job.function == "status":
            _take_status(turn, minion, token, read_status(answer))
        else:
            event_id = turn.maintenances[job.key].event_id if job.key in turn.maintenances else job.key
            done = read_done(job.function, answer, event_id)
            turn.set_minion(minion, complaint="")
            _take_done(turn, minion, token, job, done)
    except OddAnswer as error:
        _refuse(turn, minion, token, job, str(error))


def doubt(turn: Turn, minion: str) -> None:
    """The minion has started anew, perhaps after a reboot: what was prepared counts when it says so again. Bounded, as anybody can claim a start."""
    known = turn.minion(minion)
    if minion not in turn.names.accepted or turn.now - known.started_at < _START_AGAIN:
        return
    turn.set_minion(minion, started_at=turn.now, answered_job=turn.last_job)
    for key, maintenance in turn.maintenances.items():
        member = maintenance.members.get(minion)
        if member is not None and (member.record or member.job):
            record = OLD_BOOT if member.record == PREPARED else member.record
            turn.set_member(key, minion, record=record, job=0, doing="", next_at=math.inf)


def give_up(turn: Turn, token: int, reason: str) -> None:
    """A question was not published."""
    job = turn.job(token)
    if job is None:
        return
    turn.close_job(token)
    for minion in job.minions:
        if job.function == "status":
            turn.set_minion(minion, look_job=0, look_wanted=True, look_at=turn.now + _FIRST_RETRY)
        else:
            _take_done(turn, minion, token, job, Done("unavailable", f"the job could not be published: {reason}"))


def _refuse(turn: Turn, minion: str, token: int, job: Job, reason: str) -> None:
    if job.function == "status":
        looking.answered(turn, minion, token, news=False)
    else:
        _take_done(turn, minion, token, job, Done(ODD, reason))
    turn.set_minion(minion, complaint=reason)


def _take_status(turn: Turn, minion: str, token: int, status: Status) -> None:
    known = turn.minion(minion)
    if token <= known.answered_job:
        return
    changed = _take_name(turn, minion, status)
    own = {turn.names.vm_of(minion), turn.names.claims.get(minion)} - {None}
    complaint = turn.names.complaint(minion)
    if status.left_out and not complaint:
        complaint = f"events with IDs that are too long or not printable are left out: {status.left_out}"
    asked_at = known.look_asked_at if token == known.look_job else turn.now
    # an approval may wait for a newer answer
    was_late = turn.now - known.answered_at >= turn.settings.answer
    for key in [key for key, maintenance in turn.maintenances.items() if minion in maintenance.members]:
        maintenance = turn.maintenances[key]
        turn.set_maintenance(
            key, last_word=turn.now, examine=maintenance.examine or was_late, changed=maintenance.changed
        )
    listed = {event.key: event for event in status.events if not own.isdisjoint(map(vm_key, event.resources))}
    records = {event_key(record.event_id): record for record in status.records if record.event_id}
    for event in listed.values():
        changed = _take_listed(turn, minion, event) or changed
    for key, maintenance in turn.maintenances.items():
        if minion in maintenance.members:
            if key not in listed and status.available and status.complete:
                changed = _take_absent(turn, minion, key) or changed
            changed = _take_record(turn, minion, key, records.pop(key, None), status.working, asked_at) or changed
    for key, record in records.items():
        _add(turn, key, Maintenance(record.event_id, record.event_type))
        if key in turn.maintenances:
            changed = _take_record(turn, minion, key, record, status.working, asked_at) or changed
    state = {
        "complaint": complaint,
        "unavailable": "" if status.available else status.reason or "no reason given",
        "working": status.working or "",
        "interrupted": any(
            event.status == STARTED and event.event_type.casefold() != "freeze" for event in listed.values()
        ),
    }
    if state != {name: getattr(known, name) for name in state} or known.silent:
        for key, maintenance in turn.maintenances.items():
            if minion in maintenance.members:
                turn.set_maintenance(key, examine=True)
    turn.set_minion(minion, **state, answered_at=turn.now)
    looking.answered(turn, minion, token, changed)
    if not status.available and any(minion in maintenance.members for maintenance in turn.maintenances.values()):
        looking.want(turn, minion, turn.now + _UNAVAILABLE_RETRY)


def _take_name(turn: Turn, minion: str, status: Status) -> bool:
    if not status.resource_name:
        return False
    names = turn.names.claim(minion, status.resource_name)
    if names is turn.names:
        return False
    if names.observed is not turn.names.observed:
        turn.act(SaveName(minion, names.observed[minion]))
    turn.names = names
    for key, maintenance in turn.maintenances.items():
        if not maintenance.examine:
            turn.set_maintenance(key, examine=True)
    return True


def _add(turn: Turn, key: str, maintenance: Maintenance) -> None:
    if key in turn.maintenances or len(turn.maintenances) >= MOST_MAINTENANCES:
        return
    turn.put_maintenance(key, maintenance._replace(last_word=turn.now))
    if key in turn.over:
        # Azure uses the ID again, or a minion that was silent still has its record
        turn.set_maintenance(key, hold=turn.over[key].hold)
        turn.forget_over(key, for_ever=False)


def _take_listed(turn: Turn, minion: str, event: Listed) -> bool:
    mine = sum(1 for maintenance in turn.maintenances.values() if minion in maintenance.members)
    known = turn.maintenances.get(event.key)
    if (known is None or minion not in known.members) and mine >= 2 * MOST_EVENTS:
        return False
    _add(turn, event.key, Maintenance(event.event_id))
    maintenance = turn.maintenances.get(event.key)
    if maintenance is None:
        return False
    if maintenance.event_type != event.event_type or maintenance.not_before != event.not_before:
        turn.set_maintenance(event.key, event_type=event.event_type, not_before=event.not_before, last_word=turn.now)
    member = turn.member(event.key, minion)
    not_selected = "" if event.selected else event.not_selected or "not_selected"
    now = member._replace(
        listed=True,
        absent=0,
        returns=min(_MOST_RETURNS, member.returns + bool(member.absent)),
        status=event.status,
        resources=event.resources,
        not_selected=not_selected,
    )
    if now == member:
        return False
    if member.listed and (member.resources != now.resources or member.not_selected != now.not_selected):
        # what failed before may succeed for the event as it is now
        now = now._replace(tries=0, next_at=turn.now, outcome="", reason="")
    turn.set_member(event.key, minion, **now._asdict())
    return True


def _take_absent(turn: Turn, minion: str, key: str) -> bool:
    member = turn.member(key, minion)
    if not member.listed:
        return False
    absent = member.absent + 1
    # the more often it came back, the longer it has to stay away: backends of IMDS may disagree
    if absent < _ABSENCES_NEEDED << member.returns:
        turn.set_member(key, minion, absent=absent)
        looking.want(turn, minion, turn.now + _SECOND_LOOK)
    else:
        turn.set_member(key, minion, listed=False, absent=absent, tries=0, next_at=turn.now)
    return True


def _take_record(
    turn: Turn, minion: str, key: str, record: Record | None, working: str | None, asked_at: float
) -> bool:
    member = turn.member(key, minion)
    interrupted = record is not None and record.state in (PREPARING, RECOVERING) and working is None
    patience = min(turn.settings.answer, _INTERRUPTED) if interrupted else turn.settings.answer
    lost = member.job != 0 and asked_at - member.asked_at >= patience and working != key
    if asked_at < member.done_at:
        # the return that came meanwhile is newer
        return False
    state = "" if record is None else OLD_BOOT if record.state == PREPARED and not record.this_boot else record.state
    changes: dict[str, Any] = {}
    if member.seen_at < member.done_at or member.next_at == math.inf:
        changes = {"seen_at": asked_at, "next_at": turn.now if member.next_at == math.inf else member.next_at}
    if lost:
        turn.close_job(member.job, minion)
        changes.update({"job": 0, "doing": "", "next_at": turn.now})
    elif interrupted and member.job:
        looking.want(turn, minion, member.asked_at + patience)
    if working == key:
        changes["next_at"] = turn.now + _FIRST_RETRY
        looking.want(turn, minion, turn.now + _FIRST_RETRY)
    if state == member.record and not changes:
        return False
    turn.set_member(key, minion, record=state, **changes)
    return state != member.record or lost


def _take_done(turn: Turn, minion: str, token: int, job: Job, done: Done) -> None:
    if job.function == "approve_prepared":
        _take_approval(turn, minion, token, job.key, done)
        return
    if job.key not in turn.maintenances:
        return
    member = turn.member(job.key, minion)
    if member.job != token:
        return
    turn.set_maintenance(job.key, last_word=turn.now)
    changes: dict[str, Any] = {
        "job": 0,
        "doing": "",
        "outcome": done.outcome,
        "reason": done.reason,
        "done_at": turn.now,
    }
    if done.outcome in ("prepared", "already_prepared"):
        changes.update(record=PREPARED, tries=0)
    elif done.outcome in ("recovered", "not_prepared"):
        changes.update(record="", tries=0)
        if member.absent:
            # the minion has looked twice itself
            changes.update(listed=False)
    else:
        tries = member.tries + 1
        longest = _UNAVAILABLE_RETRY if done.outcome == "unavailable" else _LONGEST_RETRY
        changes.update(tries=tries, next_at=turn.now + min(longest, _FIRST_RETRY * 2.0 ** min(tries - 1, 10)))
        if job.function == "recover" and done.outcome == "failed":
            changes.update(record=RECOVER_FAILED)
        looking.want(turn, minion)
    turn.set_member(job.key, minion, **changes)


def _take_approval(turn: Turn, minion: str, token: int, key: str, done: Done) -> None:
    maintenance = turn.maintenances.get(key)
    if maintenance is None or maintenance.approval is None or maintenance.approval.job != token:
        return
    if done.outcome in ("approved", "already_approved", "started"):
        turn.set_maintenance(
            key, approval=maintenance.approval._replace(outcome=done.outcome), last_word=turn.now, examine=True
        )
    else:
        refuse_approval(turn, key, minion, f"{done.outcome}: {done.reason}" if done.reason else done.outcome)
    looking.want(turn, minion)
    turn.save(key)


def refuse_approval(turn: Turn, key: str, minion: str, reason: str) -> None:
    """The minion did not approve; others may, and this one again later."""
    maintenance = turn.maintenances[key]
    refusals = {**maintenance.refusals, minion: (turn.now + _FIRST_RETRY, reason)}
    turn.set_maintenance(key, approval=None, refusals=refusals, examine=True)


def may_be_tried(outcome: str, tries: int) -> bool:
    """Return True if a preparation that ended so is tried again without anything new."""
    return outcome != "started" and (outcome not in ("failed", ODD) or tries < PREPARE_TRIES)
