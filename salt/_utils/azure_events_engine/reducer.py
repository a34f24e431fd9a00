# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The engine's logic: ``reduce(state, input, now) -> (state, actions)``. Pure; the clock is an argument."""

from __future__ import annotations

from . import approving, ending, looking, preparing, requests, taking
from .answers import printable
from .messages import Action, Hint, Input, Known, Request, Returned, Saved, Tick, Unpublished, Unsaved
from .state import Maintenance, State
from .turn import Turn

# seconds after which the answer to a question is no longer taken: to one about the status, which is
# repeated soon, and to others
_STATUS_LASTS = 300.0
_JOB_LASTS = 7200.0


def reduce(state: State, given: Input, now: float) -> tuple[State, list[Action]]:
    """The state after an input, and what is to be done.

    Args:
        state: what is known; stays as it is.
        given: what has happened.
        now: monotonic seconds.
    """
    turn = Turn(state, now)
    if isinstance(given, Tick):
        _decide(turn)
    elif isinstance(given, Returned):
        taking.take(turn, given.job, given.minion, given.answer)
    elif isinstance(given, Hint):
        if given.started:
            taking.doubt(turn, given.minion)
            looking.want_started(turn, given.minion)
        else:
            looking.want_hinted(turn, given.minion)
    elif isinstance(given, Known):
        _learn(turn, given)
    elif isinstance(given, Unpublished):
        taking.give_up(turn, given.job, given.reason)
    elif isinstance(given, Saved):
        turn.disk_error = ""
        approving.send(turn, given.key)
    elif isinstance(given, Unsaved):
        _note_unsaved(turn, given)
    elif isinstance(given, Request):
        requests.serve(turn, given)
    return turn.finish()


def restored(state: State, maintenances: dict[str, Maintenance], observed: dict[str, str]) -> State:
    """The state with what was written before. What is known already is newer; an operator's hold is kept in any case."""
    lasting = {key: written for key, written in maintenances.items() if not written.is_over}
    over = {key: written for key, written in maintenances.items() if written.is_over and key not in state.maintenances}
    merged = {**lasting, **state.maintenances}
    for key, written in lasting.items():
        if written.hold is not None and merged[key].hold is None:
            merged[key] = merged[key]._replace(hold=written.hold)
    known = {**observed, **state.names.observed}
    accepted = state.names.accepted or frozenset(known)
    names = state.names._replace(observed=known).learn(state.names.table, state.names.pillar, accepted)
    return state._replace(maintenances=merged, over=over, names=names._replace(accepted=state.names.accepted))


def _decide(turn: Turn) -> None:
    looking.sweep(turn)
    looking.poll_members(turn)
    preparing.ask(turn)
    approving.approve(turn)
    ending.announce(turn)
    ending.forget(turn)
    looking.ask_due(turn)
    turn.close_old_jobs(turn.now - _STATUS_LASTS, turn.now - _JOB_LASTS)


def _learn(turn: Turn, given: Known) -> None:
    new = given.accepted - turn.names.accepted
    gone = turn.names.accepted - given.accepted
    turn.names = turn.names.learn(turn.settings.mapping, given.pillar, given.accepted)
    for minion in gone:
        turn.drop_minion(minion)
    for key, maintenance in turn.maintenances.items():
        for minion in gone & set(maintenance.members):
            turn.drop_member(key, minion)
        turn.set_maintenance(key, examine=True)
    for minion in new:
        looking.want(turn, minion)


def _note_unsaved(turn: Turn, given: Unsaved) -> None:
    reason = printable(given.reason)
    turn.disk_error = reason
    maintenance = turn.maintenances.get(given.key)
    if maintenance is None or maintenance.approval is None or maintenance.approval.job:
        return
    for minion in maintenance.members:
        taking.refuse_approval(turn, given.key, minion, f"the approval cannot be recorded: {reason}")
    turn.set_maintenance(given.key, unrecorded=reason)
