# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Observe the states of a maintenance in the reducer of Salt's engine, by a search through all its situations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from azure_events_engine.messages import (
    Announce,
    Hint,
    Input,
    Known,
    PublishJob,
    Request,
    Returned,
    Save,
    Saved,
    Tick,
)
from azure_events_engine.reducer import reduce
from azure_events_engine.settings import Settings
from azure_events_engine.state import State
from azure_events_engine.status_rows import event_rows
from support.salt_simulation.driver import EVENT, done, event, record, status
from tools.pictures.states.transitions import Transitions

MINION = "web1"
# the value of waiting_for before the engine knows the event
NOT_LISTED = "not listed"
# how the return of a job may end while the event is Scheduled, or not listed any more
# -> the outcome, and the state of the minion's record after it
RETURNS: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ("prepare", "Scheduled"): (("prepared", "prepared"), ("failed", "prepare_failed")),
    ("approve_prepared", "Scheduled"): (("approved", "prepared"), ("refused", "prepared")),
    ("recover", ""): (("recovered", ""), ("failed", "recover_failed")),
}
# other returns, which change no record: status -> outcome
OTHERWISE = {"Scheduled": "still_listed", "Started": "started", "": "not_listed"}
# status in the minion's IMDS -> those that may follow; an EventId is not listed again
NEXT_STATUS: dict[str | None, tuple[str, ...]] = {
    None: ("Scheduled", "Started"),
    "Scheduled": ("Started", ""),
    "Started": ("",),
    "": (),
}
OPERATORS = ("hold", "release")
# seconds: more than the interval between two polls, and more than the longest pause between two attempts
POLL_PAUSE, LONG_PAUSE = 40.0, 700.0


class Situation(NamedTuple):
    """The engine, and what it reads of the one minion.

    Attributes:
        state: of the engine.
        now: monotonic seconds.
        listed: status of the event in the minion's IMDS; None before it was listed, "" after that.
        record: state of the minion's record, or "".
        this_boot: whether the record is of the minion's present boot.
        jobs: function -> token of the job that the minion has not returned.
    """

    state: State
    now: float
    listed: str | None = None
    record: str = ""
    this_boot: bool = True
    jobs: tuple[tuple[str, int], ...] = ()

    @property
    def waiting_for(self) -> str:
        """Return the value of waiting_for that the runner's status shows."""
        rows = event_rows(self.state, EVENT.casefold())
        return str(rows[0]["waiting_for"]) if rows else NOT_LISTED

    @property
    def kind(self) -> tuple[object, ...]:
        """Return a value that distinguishes situations, without times and tokens."""
        found = [*self.state.maintenances.values()]
        of_engine = [
            (each.announced, each.hold is not None, each.approval and (each.approval.outcome, each.approval.forced))
            for each in found
        ]
        functions = tuple(sorted(function for function, _job in self.jobs))
        return self.waiting_for, self.listed, self.record, self.this_boot, functions, repr(of_engine)


def engine_states() -> Transitions:
    """Return the transitions between the values of waiting_for."""
    found = Transitions()
    state, _actions = reduce(State(Settings()), Known(frozenset([MINION])), 0.0)
    begin = Situation(state, 0.0)
    known, waiting = {begin.kind}, [begin]
    while waiting:
        situation = waiting.pop(0)
        for after, announced in _successors(situation):
            if after.waiting_for != situation.waiting_for:
                for step in announced or ("",):
                    found.add(situation.waiting_for, after.waiting_for, step)
            if after.kind not in known:
                known.add(after.kind)
                waiting.append(after)
    return found


def _successors(before: Situation) -> Iterator[tuple[Situation, tuple[str, ...]]]:
    """Yield each next situation, and the bus events that the engine announces on the way."""
    yield _settled(before, POLL_PAUSE)
    yield _settled(before, LONG_PAUSE)
    for listed in NEXT_STATUS[before.listed]:
        yield _settled(before._replace(listed=listed), 0.0)
    if before.listed == "Started" and before.record and before.this_boot:
        yield _settled(before._replace(this_boot=False), 0.0, Hint(MINION, started=True))
    for function, job in before.jobs:
        rest = tuple(each for each in before.jobs if each != (function, job))
        otherwise = ((OTHERWISE[before.listed or ""], before.record),)
        for outcome, kept in RETURNS.get((function, before.listed or ""), otherwise):
            changed = before._replace(jobs=rest, record=kept)
            yield _settled(changed, 0.0, Returned(job, MINION, done(outcome)))
    for order in OPERATORS if before.listed == "Scheduled" else ():
        yield _settled(before, 0.0, Request("r", order, EVENT, "alice", "2026-11-22T10:00:00Z"))


def _settled(situation: Situation, seconds: float, given: Input | None = None) -> tuple[Situation, tuple[str, ...]]:
    """Give an input, let time pass, and let the minion answer polls until the engine has read its status."""
    announced: list[str] = []
    if given is not None:
        situation = _given(situation, given, announced)
    situation = _given(situation._replace(now=situation.now + seconds), Hint(MINION), announced)
    for _tick in range(8):
        situation = _given(situation._replace(now=situation.now + 0.5), Tick(), announced)
    return situation, tuple(announced)


def _given(situation: Situation, given: Input, announced: list[str]) -> Situation:
    inputs = [given]
    while inputs:
        state, actions = reduce(situation.state, inputs.pop(0), situation.now)
        situation = situation._replace(state=state)
        for action in actions:
            if isinstance(action, Announce):
                announced.append(action.step)
            elif isinstance(action, Save) and action.needed:
                inputs.append(Saved(action.key))
            elif isinstance(action, PublishJob) and action.function == "status":
                inputs.append(Returned(action.job, MINION, _status(situation)))
            elif isinstance(action, PublishJob):
                kept = tuple(each for each in situation.jobs if each[0] != action.function)
                situation = situation._replace(jobs=(*kept, (action.function, action.job)))
    return situation


def _status(situation: Situation) -> dict[str, object]:
    listed = [event(MINION, status=situation.listed)] if situation.listed else []
    records = [record(state=situation.record, this_boot=situation.this_boot)] if situation.record else []
    return status(MINION, *listed, records=records)
