# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The engine's logic: ``reduce(state, input, now) -> (state, actions)``. Pure; the clock is an argument."""

from __future__ import annotations

from . import answer_handling, approvals, maintenance_jobs, polling, progress, requests
from .messages import Action, Hint, Input, Known, PublishFailed, Request, Returned, Tick
from .state import Maintenance, State
from .state_update import StateUpdate

# seconds after which the answer to a job is ignored: to a poll, which is repeated soon, and to others
_STATUS_TIMEOUT = 300.0
_JOB_TIMEOUT = 7200.0


def reduce(state: State, given: Input, now: float) -> tuple[State, list[Action]]:
    """Return the state after an input, and the actions to execute.

    ``now`` is in monotonic seconds.
    """
    update = StateUpdate(state, now)
    if isinstance(given, Tick):
        _decide(update, given.at)
    elif isinstance(given, Returned):
        answer_handling.handle(update, given.job, given.minion, given.answer)
    elif isinstance(given, Hint):
        if given.started:
            answer_handling.handle_start(update, given.minion)
            polling.poll_after_start(update, given.minion)
        else:
            polling.poll_after_hint(update, given.minion)
    elif isinstance(given, Known):
        _learn(update, given)
    elif isinstance(given, PublishFailed):
        answer_handling.handle_unpublished(update, given.job, given.reason)
    elif isinstance(given, Request):
        requests.serve(update, given)
    return update.finish()


def restored(state: State, maintenances: dict[str, Maintenance], observed: dict[str, str]) -> State:
    """Return the state with the stored state of an earlier engine.

    Present knowledge is newer and takes precedence, except that an operator's hold is kept.
    """
    unfinished = {key: written for key, written in maintenances.items() if not written.is_over}
    over = {key: written for key, written in maintenances.items() if written.is_over and key not in state.maintenances}
    merged = {**unfinished, **state.maintenances}
    for key, written in unfinished.items():
        if written.hold is not None and merged[key].hold is None:
            merged[key] = merged[key]._replace(hold=written.hold)
    known = {**observed, **state.names.observed}
    accepted = state.names.accepted or frozenset(known)
    names = state.names._replace(observed=known).learn(state.names.table, state.names.pillar, accepted)
    return state._replace(
        maintenances=merged,
        over=over,
        names=names._replace(accepted=state.names.accepted),
        minions={minion: known._replace(tracker=None, documents=0) for minion, known in state.minions.items()},
    )


def _decide(update: StateUpdate, at: float) -> None:
    polling.sweep(update)
    polling.poll_members(update)
    maintenance_jobs.request_due(update, at)
    approvals.start_due(update)
    progress.announce(update, at)
    progress.forget(update)
    polling.publish_due(update)
    update.close_old_jobs(update.now - _STATUS_TIMEOUT, update.now - _JOB_TIMEOUT)


def _learn(update: StateUpdate, given: Known) -> None:
    new = given.accepted - update.names.accepted
    gone = update.names.accepted - given.accepted
    update.names = update.names.learn(update.settings.mapping, given.pillar, given.accepted)
    for minion in gone:
        update.drop_minion(minion)
    for key, maintenance in update.maintenances.items():
        for minion in gone & set(maintenance.members):
            update.drop_member(key, minion)
        update.set_maintenance(key, examine=True)
    for minion in new:
        polling.request_poll(update, minion)
