# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Which minions are asked for their status, and when.

A hint only marks its minion. However many hints come, a minion is asked once at a time, and less
and less often while its answers bring nothing new; minions whose turn comes together are asked by
one job.
"""

from __future__ import annotations

from .state_update import StateUpdate

# seconds between two questions to one minion that hints cause
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 2.0
# seconds between two questions to a minion of which only another minion says that the event hits it
_FIRST_REFERRED = 2.0
_LONGEST_REFERRED = 60.0
# seconds between two questions to a minion that works
_WORKING = 5.0
# seconds to wait for an answer before the question is repeated, which double each time: first,
# longest; and repetitions before only hints, polls and sweeps cause further ones
_FIRST_ANSWER = 3.0
# seconds after which a question without an answer may be lost if its minion sends a hint
_LOST = 1.0
_LONGEST_ANSWER = 60.0
_REPETITIONS = 5


def request_poll(update: StateUpdate, minion: str, at: float | None = None) -> None:
    """Ask a minion as soon as its pace allows, or not before a time."""
    if minion not in update.names.accepted:
        return
    known = update.minion(minion)
    if not known.poll_wanted:
        update.set_minion(minion, poll_wanted=True, poll_at=max(known.poll_at, at if at is not None else update.now))
    elif at is None and known.poll_at > update.now:
        update.set_minion(minion, poll_at=max(update.now, min(known.poll_at, known.poll_sent_at + known.poll_pause)))


def poll_after_hint(update: StateUpdate, minion: str) -> None:
    """Ask a minion that has sent a hint: a question that it has not answered may have been lost before it was connected."""
    known = update.minion(minion)
    if known.poll_job and update.now - known.poll_sent_at >= _LOST:
        update.set_minion(minion, poll_job=0)
    request_poll(update, minion)


def poll_after_start(update: StateUpdate, minion: str) -> None:
    """Ask a minion that has just started: a question that it has not answered is lost."""
    if minion in update.names.accepted:
        known = update.minion(minion)
        at = max(update.now, known.poll_sent_at + max(_FIRST_PAUSE, known.poll_pause))
        update.set_minion(minion, poll_wanted=True, poll_at=at, silent=0, poll_job=0)


def poll_now(update: StateUpdate, minion: str) -> None:
    """Ask a minion at once, for an operator."""
    if minion in update.names.accepted:
        update.set_minion(minion, poll_wanted=True, poll_at=update.now, poll_pause=0.0, silent=0, poll_job=0)


def poll_referred(update: StateUpdate, minion: str) -> None:
    """Another minion says that an event hits the VM of this one, which does not list it."""
    next_at, pause = update.referred.get(minion, (update.now, 0.0))
    if update.now >= next_at and update.minion(minion).poll_job == 0:
        pause = min(_LONGEST_REFERRED, pause * 2) if pause else _FIRST_REFERRED
        update.set_referred(minion, update.now + pause, pause)
        request_poll(update, minion)


def record_answer(update: StateUpdate, minion: str, token: int, news: bool) -> None:
    """The minion gave an answer, good or not."""
    known = update.minion(minion)
    pause = _FIRST_PAUSE if news else min(_LONGEST_PAUSE, max(_FIRST_PAUSE, known.poll_pause * 2))
    at = max(known.poll_at, known.poll_sent_at + pause) if known.poll_wanted else known.poll_sent_at + pause
    job = 0 if token >= known.poll_job else known.poll_job
    update.set_minion(
        minion, poll_job=job, poll_pause=pause, poll_at=at, silent=0, answered_job=max(token, known.answered_job)
    )
    if news and minion in update.referred:
        update.set_referred(minion, update.now, 0.0)


def poll_members(update: StateUpdate) -> None:
    """The members of all maintenances are asked from time to time without a hint, together."""
    if update.now - update.polled_at >= update.settings.poll:
        update.polled_at = update.now
        for minion in {minion for maintenance in update.maintenances.values() for minion in maintenance.members}:
            request_poll(update, minion)


def poll_late(update: StateUpdate, minion: str) -> None:
    """Ask a minion whose return is late: it may still work, or the return is lost."""
    if not update.minion(minion).poll_wanted:
        request_poll(update, minion, update.minion(minion).poll_sent_at + _WORKING)


def sweep(update: StateUpdate) -> None:
    """All minions are asked from time to time, so that nothing depends on a hint."""
    if update.now - update.swept_at >= update.settings.sweep and update.names.accepted:
        update.swept_at = update.now
        for minion in update.names.accepted:
            known = update.minion(minion)
            if known.poll_sent_at <= update.now - update.settings.sweep / 2:
                request_poll(update, minion)


def publish_due(update: StateUpdate) -> None:
    """Publish one question to all minions whose turn it is."""
    due = []
    for minion, known in update.minions.items():
        if known.poll_job and update.now - known.poll_sent_at >= min(
            _LONGEST_ANSWER, _FIRST_ANSWER * 2.0 ** min(known.silent, 10)
        ):
            silent = known.silent + 1
            update.set_minion(
                minion,
                poll_job=0,
                silent=silent,
                poll_wanted=known.poll_wanted or silent <= _REPETITIONS,
                poll_at=update.now,
            )
        elif known.poll_wanted and not known.poll_job and known.poll_at <= update.now and update.credit(minion) >= 1.0:
            due.append(minion)
    if due:
        token = update.publish("status", due)
        for minion in due:
            update.set_minion(minion, poll_wanted=False, poll_job=token, poll_sent_at=update.now)
