# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Which minions are asked for their status, and when.

A hint only marks its minion. However many hints come, a minion is asked once at a time, and less
and less often while its answers bring nothing new; minions whose turn comes together are asked by
one job.
"""

from __future__ import annotations

from .turn import Turn

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


def want(turn: Turn, minion: str, at: float | None = None) -> None:
    """Ask a minion as soon as its pace allows, or not before a time."""
    if minion not in turn.names.accepted:
        return
    known = turn.minion(minion)
    if not known.look_wanted:
        turn.set_minion(minion, look_wanted=True, look_at=max(known.look_at, at if at is not None else turn.now))
    elif at is None and known.look_at > turn.now:
        turn.set_minion(minion, look_at=max(turn.now, min(known.look_at, known.look_asked_at + known.look_pause)))


def want_hinted(turn: Turn, minion: str) -> None:
    """Ask a minion that has sent a hint: a question that it has not answered may have been lost before it was connected."""
    known = turn.minion(minion)
    if known.look_job and turn.now - known.look_asked_at >= _LOST:
        turn.set_minion(minion, look_job=0)
    want(turn, minion)


def want_started(turn: Turn, minion: str) -> None:
    """Ask a minion that has just started: a question that it has not answered is lost."""
    if minion in turn.names.accepted:
        known = turn.minion(minion)
        at = max(turn.now, known.look_asked_at + max(_FIRST_PAUSE, known.look_pause))
        turn.set_minion(minion, look_wanted=True, look_at=at, silent=0, look_job=0)


def want_soon(turn: Turn, minion: str) -> None:
    """Ask a minion at once, for an operator."""
    if minion in turn.names.accepted:
        turn.set_minion(minion, look_wanted=True, look_at=turn.now, look_pause=0.0, silent=0, look_job=0)


def refer(turn: Turn, minion: str) -> None:
    """Another minion says that an event hits the VM of this one, which does not list it."""
    next_at, pause = turn.referred.get(minion, (turn.now, 0.0))
    if turn.now >= next_at and turn.minion(minion).look_job == 0:
        pause = min(_LONGEST_REFERRED, pause * 2) if pause else _FIRST_REFERRED
        turn.set_referred(minion, turn.now + pause, pause)
        want(turn, minion)


def answered(turn: Turn, minion: str, token: int, news: bool) -> None:
    """The minion gave an answer, good or not."""
    known = turn.minion(minion)
    pause = _FIRST_PAUSE if news else min(_LONGEST_PAUSE, max(_FIRST_PAUSE, known.look_pause * 2))
    at = max(known.look_at, known.look_asked_at + pause) if known.look_wanted else known.look_asked_at + pause
    job = 0 if token >= known.look_job else known.look_job
    turn.set_minion(
        minion, look_job=job, look_pause=pause, look_at=at, silent=0, answered_job=max(token, known.answered_job)
    )
    if news and minion in turn.referred:
        turn.set_referred(minion, turn.now, 0.0)


def poll_members(turn: Turn) -> None:
    """The members of all maintenances are asked from time to time without a hint, together."""
    if turn.now - turn.polled_at >= turn.settings.poll:
        turn.polled_at = turn.now
        for minion in {minion for maintenance in turn.maintenances.values() for minion in maintenance.members}:
            want(turn, minion)


def want_working(turn: Turn, minion: str) -> None:
    """Ask a minion whose return is late: it may still work, or the return is lost."""
    if not turn.minion(minion).look_wanted:
        want(turn, minion, turn.minion(minion).look_asked_at + _WORKING)


def sweep(turn: Turn) -> None:
    """All minions are asked from time to time, so that nothing depends on a hint."""
    if turn.now - turn.swept_at >= turn.settings.sweep and turn.names.accepted:
        turn.swept_at = turn.now
        for minion in turn.names.accepted:
            known = turn.minion(minion)
            if known.look_asked_at <= turn.now - turn.settings.sweep / 2:
                want(turn, minion)


def ask_due(turn: Turn) -> None:
    """Publish one question to all minions whose turn it is."""
    due = []
    for minion, known in turn.minions.items():
        if known.look_job and turn.now - known.look_asked_at >= min(
            _LONGEST_ANSWER, _FIRST_ANSWER * 2.0 ** min(known.silent, 10)
        ):
            silent = known.silent + 1
            turn.set_minion(
                minion,
                look_job=0,
                silent=silent,
                look_wanted=known.look_wanted or silent <= _REPETITIONS,
                look_at=turn.now,
            )
        elif known.look_wanted and not known.look_job and known.look_at <= turn.now and turn.credit(minion) >= 1.0:
            due.append(minion)
    if due:
        token = turn.ask("status", due)
        for minion in due:
            turn.set_minion(minion, look_wanted=False, look_job=token, look_asked_at=turn.now)
