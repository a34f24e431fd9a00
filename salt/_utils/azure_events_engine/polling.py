# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Decides which minions are polled for their status, and when.

A hint only marks its minion. A minion has at most one unanswered poll, and the pauses between polls
grow while its answers bring no change, however many hints come. One job polls all minions that are
due.
"""

from __future__ import annotations

from .state_update import StateUpdate

# seconds between two polls of a minion because of hints: the first and the longest pause
_FIRST_PAUSE = 0.5
_MAX_PAUSE = 2.0
# seconds between two polls of a minion that only other minions name: the first and the longest pause
_FIRST_REFERRED_PAUSE = 2.0
_MAX_REFERRED_PAUSE = 60.0
# seconds between two polls of a minion whose return is late
_LATE_RETURN_PAUSE = 5.0
# seconds to wait for an answer before the poll is repeated: first, and longest, doubled each time
_FIRST_ANSWER_TIMEOUT = 3.0
_MAX_ANSWER_TIMEOUT = 60.0
# repetitions after which only hints, polls of members and sweeps cause another poll
_MAX_REPETITIONS = 5
# seconds after which an unanswered poll may be lost if its minion sends a hint
_LOST = 1.0


def request_poll(update: StateUpdate, minion: str, at: float | None = None) -> None:
    """Have a minion polled as soon as its pause allows, but not before ``at``."""
    if minion not in update.names.accepted:
        return
    known = update.minion(minion)
    if not known.poll_wanted:
        update.set_minion(minion, poll_wanted=True, poll_at=max(known.poll_at, at if at is not None else update.now))
    elif at is None and known.poll_at > update.now:
        update.set_minion(minion, poll_at=max(update.now, min(known.poll_at, known.poll_sent_at + known.poll_pause)))


def poll_after_hint(update: StateUpdate, minion: str) -> None:
    """Have a minion polled that has sent a hint.

    An unanswered poll may have been published before the minion was connected.
    """
    known = update.minion(minion)
    if known.poll_job and update.now - known.poll_sent_at >= _LOST:
        update.set_minion(minion, poll_job=0)
    request_poll(update, minion)


def poll_after_start(update: StateUpdate, minion: str) -> None:
    """Have a minion polled after its start; an unanswered poll is lost."""
    if minion in update.names.accepted:
        known = update.minion(minion)
        at = max(update.now, known.poll_sent_at + max(_FIRST_PAUSE, known.poll_pause))
        update.set_minion(minion, poll_wanted=True, poll_at=at, silent=0, poll_job=0)


def poll_now(update: StateUpdate, minion: str) -> None:
    """Have a minion polled at once, for an operator."""
    if minion in update.names.accepted:
        update.set_minion(minion, poll_wanted=True, poll_at=update.now, poll_pause=0.0, silent=0, poll_job=0)


def poll_referred(update: StateUpdate, minion: str) -> None:
    """Have a minion polled that does not list an event though another minion names its VM."""
    known = update.minion(minion)
    if update.now >= known.refer_at and known.poll_job == 0:
        pause = min(_MAX_REFERRED_PAUSE, max(_FIRST_REFERRED_PAUSE, known.refer_pause * 2))
        update.set_minion(minion, refer_at=update.now + pause, refer_pause=pause)
        request_poll(update, minion)


def record_answer(update: StateUpdate, minion: str, token: int, news: bool) -> None:
    """Note an answer of the minion, valid or not; ``news``: it changed something."""
    known = update.minion(minion)
    pause = _FIRST_PAUSE if news else min(_MAX_PAUSE, max(_FIRST_PAUSE, known.poll_pause * 2))
    at = max(known.poll_at, known.poll_sent_at + pause) if known.poll_wanted else known.poll_sent_at + pause
    job = 0 if token >= known.poll_job else known.poll_job
    update.set_minion(
        minion, poll_job=job, poll_pause=pause, poll_at=at, silent=0, answered_job=max(token, known.answered_job)
    )
    if news:
        update.set_minion(minion, refer_at=update.now, refer_pause=0.0)


def poll_members(update: StateUpdate) -> None:
    """Have the members of all maintenances polled every ``poll`` seconds, without a hint."""
    if update.now - update.polled_at >= update.settings.poll:
        update.polled_at = update.now
        for minion in {minion for maintenance in update.maintenances.values() for minion in maintenance.members}:
            request_poll(update, minion)


def poll_late(update: StateUpdate, minion: str) -> None:
    """Have a minion polled whose return is late: it still works, or the return is lost."""
    if not update.minion(minion).poll_wanted:
        request_poll(update, minion, update.minion(minion).poll_sent_at + _LATE_RETURN_PAUSE)


def sweep(update: StateUpdate) -> None:
    """Have all minions polled every ``sweep`` seconds; hints may be lost."""
    if update.now - update.swept_at >= update.settings.sweep and update.names.accepted:
        update.swept_at = update.now
        for minion in update.names.accepted:
            known = update.minion(minion)
            if known.poll_sent_at <= update.now - update.settings.sweep / 2:
                request_poll(update, minion)


def _may_be_polled(update: StateUpdate, minion: str) -> bool:
    """Return True if a poll leaves a job to a preparation or an approval."""
    return update.credit(minion) >= 2.0


def publish_due(update: StateUpdate) -> None:
    """Publish one job that polls all minions that are due."""
    due = []
    for minion, known in update.minions.items():
        if known.poll_job and update.now - known.poll_sent_at >= min(
            _MAX_ANSWER_TIMEOUT, _FIRST_ANSWER_TIMEOUT * 2.0 ** min(known.silent, 10)
        ):
            silent = known.silent + 1
            update.set_minion(
                minion,
                poll_job=0,
                silent=silent,
                poll_wanted=known.poll_wanted or silent <= _MAX_REPETITIONS,
                poll_at=update.now,
            )
        elif (
            known.poll_wanted and not known.poll_job and known.poll_at <= update.now and _may_be_polled(update, minion)
        ):
            due.append(minion)
    if due:
        token = update.publish("status", due)
        for minion in due:
            update.set_minion(minion, poll_wanted=False, poll_job=token, poll_sent_at=update.now)
