# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Recovers this minion once all events are over for which its record has a preparation."""

from __future__ import annotations

from typing import Any, Sequence

from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.tracking import GONE_AFTER_A_RETURN, Tracker
from azure_scheduled_events.urgency import most_severe

from . import answers, lock, record
from .answers import Job
from .configuration import Step, digest
from .execution.results import WOULD_RUN, not_run
from .imds_observation import IMDS_TIMEOUT, observe
from .minion import MAX_AGE, Minion, failure_of, no_steps
from .record import BY_HAND, Reason, Record

_UNKNOWN = "the record has no preparation for it"


def recover(minion: Minion, job: Job, test: bool = False) -> dict[str, Any]:
    """Run the steps of the recovery if all events that the minion was prepared for are over.

    Return the answer of the job. A recovery by hand also ends a preparation by hand. With
    ``test`` it only reports what would run.
    """
    return _recover(minion, [job], test)[0]


def sweep(minion: Minion, test: bool = False) -> list[dict[str, Any]]:
    """Recover from every event in the record that is over; return one answer for each event in the record.

    With ``test`` it only reports what would run. The function raises ValueError or OSError if the
    record cannot be read.
    """
    found = minion.file.read()
    jobs = [Job(answers.RECOVER, event.event_id) for event in found.events] if found is not None else []
    return _recover(minion, jobs, test, is_sweep=True) if jobs else []


def _recover(minion: Minion, jobs: Sequence[Job], test: bool, is_sweep: bool = False) -> list[dict[str, Any]]:
    """Recover for these jobs, and return their answers in the same order."""
    try:
        found = minion.readable_record()
        if found is None or not any(job.by_hand or found.find(job.key) for job in jobs):
            return [job.answer(answers.NOT_PREPARED, _UNKNOWN) for job in jobs]
        over = _over(minion, found, jobs, is_sweep)
        if test:
            return _concluded(minion, jobs, found, over, None)
        with minion.locked(lock.PREPARATION, jobs[0]) as held:
            if held is None:
                return [minion.busy(job) for job in jobs]
            before, found = found, minion.readable_record(quarantine=True)
            if found is None:
                return [job.answer(answers.NOT_PREPARED, "another job has recovered it") for job in jobs]
            if held.waited > MAX_AGE or found != before:
                over &= _over(minion, found, jobs)
            return _concluded(minion, jobs, found, over, held)
    except ImdsError as error:
        return [job.answer(answers.UNAVAILABLE, str(error)) for job in jobs]
    except OSError as error:
        return [job.answer(answers.FAILED, f"the record cannot be kept: {error}") for job in jobs]


def _over(minion: Minion, found: Record, jobs: Sequence[Job], is_sweep: bool = False) -> frozenset[str]:
    """Return the keys of the record's events that are over; read IMDS only if there are any.

    An event that came back has to be gone for a minute. A caller who names the event, or a person, has waited for
    that; a sweep itself does.
    """
    keys = [event.key for event in found.events]
    if not keys:
        return frozenset()
    asked = frozenset(job.key for job in jobs)
    returned = found.returned
    if not is_sweep:
        returned = frozenset() if BY_HAND in asked else returned - asked
    session = minion.session(IMDS_TIMEOUT + (GONE_AFTER_A_RETURN if is_sweep and returned else 0.0))
    tracker = Tracker(found.events, returned)
    seen = observe(session, tracker, lambda seen: seen.tracked.doubt and not all(map(seen.is_over, keys)))
    for job in jobs:
        job.record_observation(seen)
    return frozenset(filter(seen.is_over, keys))


def _concluded(
    minion: Minion, jobs: Sequence[Job], found: Record, over: frozenset[str], held: lock.Lock | None
) -> list[dict[str, Any]]:
    """Recover if all events are over; without the lock only report what would happen."""
    by_hand = any(job.by_hand for job in jobs)
    listed = [reason for reason in found.reasons if reason.key not in over and reason.key != BY_HAND]
    if listed:
        reasons = tuple(
            reason.seen(over=reason.key in over) for reason in found.reasons if not (by_hand and reason.key == BY_HAND)
        )
        if held is not None and reasons != found.reasons:
            minion.file.write(found._replace(reasons=reasons))
        return [_kept(job, found, reasons, listed) for job in jobs]
    if not by_hand and found.find(BY_HAND) is not None:
        if held is not None:
            minion.note_gone(found.events)
            minion.file.write(
                found._replace(reasons=tuple(reason for reason in found.reasons if reason.key == BY_HAND))
            )
        text = (
            "nothing has to run: this minion was also prepared by hand, "
            "which azure_events.recover without an event undoes"
        )
        return [
            job.answer(answers.WOULD_RECOVER if held is None else answers.RECOVERED, text, changed=True) for job in jobs
        ]
    steps = minion.configuration.recover
    if steps is None:
        return [no_steps(job) for job in jobs]
    if held is None:
        planned = [not_run(step, WOULD_RUN) for step in steps]
        return [
            job.answer(answers.WOULD_RECOVER, f"{len(steps)} steps would run", planned, changed=True) for job in jobs
        ]
    return _run(minion, jobs, found, steps, held)


def _kept(job: Job, found: Record, reasons: tuple[Reason, ...], listed: Sequence[Reason]) -> dict[str, Any]:
    """Return the answer while an event is listed that the minion is prepared for."""
    if not job.by_hand and found.find(job.key) is None:
        return job.answer(answers.NOT_PREPARED, _UNKNOWN)
    names = ", ".join(reason.event_id for reason in listed)
    changed = found.find(job.key) != next((reason for reason in reasons if reason.key == job.key), None)
    return job.answer(
        answers.STILL_LISTED, f"events that this minion is prepared for are not over: {names}", changed=changed
    )


def _run(
    minion: Minion, jobs: Sequence[Job], found: Record, steps: tuple[Step, ...], held: lock.Lock
) -> list[dict[str, Any]]:
    """Run the steps, after an interruption in this boot only those that have not succeeded."""
    identity = digest(steps)
    begun = found.phase in (record.RECOVERING, record.RECOVER_FAILED) and found.can_resume_in(minion.boot, identity)
    done = min(found.steps_done, len(steps)) if begun else 0
    reasons = tuple(reason._replace(over=True) for reason in found.reasons)
    now = found._replace(
        phase=record.RECOVERING,
        boot=minion.boot,
        steps_done=done,
        digest=identity,
        why_not="",
        reasons=reasons,
        kinds=(),
    )
    # a full disk must not prevent the recovery, after which the preparation must not count
    minion.write_or_distrust(now)
    results, now = minion.run(_about(jobs[0], found), steps, now, held)
    why = failure_of(results)
    if why is not None:
        minion.write_if_possible(now._replace(phase=record.RECOVER_FAILED, why_not=why))
        return [job.answer(answers.FAILED, why, results, changed=True) for job in jobs]
    minion.note_gone(found.events)
    minion.file.remove()
    reason = answers.steps_have_run(len(steps) - done)
    return [job.answer(answers.RECOVERED, reason, results, changed=True) for job in jobs]


def _about(job: Job, found: Record) -> Job:
    """Return the job with which the steps run: for the most severe event of the record, unless a person recovers."""
    worst = most_severe(found.events, lambda event: event.event_type)
    if job.by_hand or worst is None:
        return job
    about = Job(answers.RECOVER, worst.event_id)
    about.name = job.name
    return about
