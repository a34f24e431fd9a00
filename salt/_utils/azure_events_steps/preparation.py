# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Prepares this minion for an event that its own IMDS lists and its selection includes.

It prepares once in a boot, and again for an event that is more severe.
"""

from __future__ import annotations

import logging
from datetime import datetime, timezone
from typing import Any

from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.timestamps import as_utc_text

from . import answers, lock, record
from .answers import Job
from .configuration import Step, digest
from .execution.results import WOULD_RUN, not_run
from .imds_observation import observe
from .minion import MAX_AGE, Minion, failure_of, no_steps
from .record import Reason, Record
from .selection import AFFECTS, evaluate

log = logging.getLogger(__name__)


def prepare(minion: Minion, job: Job, test: bool = False) -> dict[str, Any]:
    """Run the steps of the preparation, unless a success in this boot counts for the event.

    Return the answer of the job. A preparation by hand does not read IMDS. With ``test`` it only
    reports what would run.
    """
    try:
        answer = _checked(minion, job)
        if answer is not None or test:
            return answer or _planned(minion, job)
        with minion.locked(lock.PREPARATION, job) as held:
            if held is None:
                return minion.busy(job)
            if held.waited > MAX_AGE:
                answer = _checked(minion, job)
            return answer or _prepared(minion, job, held)
    except OSError as error:
        return job.answer(answers.FAILED, f"the record cannot be kept, so nothing was done: {error}")


def _checked(minion: Minion, job: Job) -> dict[str, Any] | None:
    """Read IMDS; return the answer if the minion need not or must not prepare, else None."""
    if job.by_hand:
        return None
    try:
        seen = job.record_observation(observe(minion.session()))
    except ImdsError as error:
        return job.answer(answers.UNAVAILABLE, str(error))
    event = job.event
    if event is None:
        if not seen.tracked.document.complete:
            return job.answer(answers.UNAVAILABLE, "Azure does not list the event among those that can be read")
        return job.answer(answers.NOT_LISTED, "Azure does not list the event: it is over, was cancelled, or never was")
    chosen = evaluate(event, seen.name, minion.configuration, seen.now)
    if chosen.code == AFFECTS:
        return job.answer(answers.NOT_AFFECTED, chosen.reason)
    found = minion.readable_record()
    if found is not None and found.covers(job.reason(), minion.boot):
        return _already(job, found)
    if event.status == "Started":
        return job.answer(answers.STARTED, "the event has started; it is too late to prepare")
    if event.status != "Scheduled":
        return job.answer(answers.NOT_SELECTED, f"the status {event.status!r} is not known")
    return None if chosen.selected else job.answer(answers.NOT_SELECTED, chosen.reason)


def _planned(minion: Minion, job: Job) -> dict[str, Any]:
    found = minion.readable_record()
    if found is not None and found.is_prepared(job.reason(), minion.boot):
        if found.covers(job.reason(), minion.boot):
            return _already(job, found)
        return job.answer(answers.WOULD_PREPARE, f"nothing would run: {_prepared_for(found)}", changed=True)
    steps = minion.configuration.prepare
    if steps is None:
        return no_steps(job)
    planned = [not_run(step, WOULD_RUN) for step in steps]
    return job.answer(answers.WOULD_PREPARE, f"{len(steps)} steps would run", planned, changed=True)


def _prepared(minion: Minion, job: Job, held: lock.Lock) -> dict[str, Any]:
    """Prepare while the lock is held; raise OSError if the record cannot be written before."""
    found = minion.readable_record(quarantine=True)
    if found is not None and found.is_prepared(job.reason(), minion.boot):
        if found.covers(job.reason(), minion.boot):
            return _already(job, found)
        minion.file.write(found.with_reason(_reason(minion, job)))
        return job.answer(answers.PREPARED, f"nothing had to run: {_prepared_for(found)}", changed=True)
    steps = minion.configuration.prepare
    if steps is None:
        return no_steps(job)
    now = _begun(minion, found, steps, _reason(minion, job))
    minion.file.write(now)
    before = now.steps_done
    results, now = minion.run(job, steps, now, held)
    why = failure_of(results)
    if why is not None:
        minion.write_if_possible(now._replace(phase=record.PREPARE_FAILED, why_not=why))
        return job.answer(answers.FAILED, why, results, changed=True)
    try:
        minion.file.write(now.with_success(job.reason().kind, as_utc_text(datetime.now(timezone.utc))))
    except OSError as error:
        return job.answer(
            answers.FAILED, f"the steps have succeeded, but the record cannot be kept: {error}", results, changed=True
        )
    return job.answer(answers.PREPARED, answers.steps_have_run(len(steps) - before), results, changed=True)


def _reason(minion: Minion, job: Job) -> Reason:
    """Return the reason to record, with whether the minion has recovered from the event before, or may have."""
    try:
        returned = job.key in minion.file.gone()
    except OSError as error:
        log.error("azure_events: %s; the event counts as one that came back", error)
        returned = True
    return job.reason()._replace(returned=returned)


def _begun(minion: Minion, found: Record | None, steps: tuple[Step, ...], reason: Reason) -> Record:
    """Return the record at the start of a preparation.

    A preparation for the same type of event that was interrupted in this boot resumes with the step that did not
    succeed.
    """
    identity = digest(steps, reason.kind)
    begun = Record(record.PREPARING, minion.boot, 0, identity, None, "", ())
    if found is not None:
        begun = begun._replace(reasons=found.reasons)
        if found.boot == minion.boot:
            begun = begun._replace(kinds=found.kinds, prepared_at=found.prepared_at)
        if found.phase in (record.PREPARING, record.PREPARE_FAILED) and found.can_resume_in(minion.boot, identity):
            begun = begun._replace(steps_done=min(found.steps_done, len(steps)))
    return begun.with_reason(reason)


def _already(job: Job, found: Record) -> dict[str, Any]:
    return job.answer(answers.ALREADY_PREPARED, f"prepared at {found.prepared_at}")


def _prepared_for(found: Record) -> str:
    prepared = [reason for reason in found.reasons if found.state_of(reason) == record.PREPARED]
    names = ", ".join(reason.event_id or "by hand" for reason in prepared)
    return f"this minion is prepared already ({names}) since {found.prepared_at}"
