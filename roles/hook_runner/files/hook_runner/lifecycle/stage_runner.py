# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Runs the hooks of an event's stage one after the other, within their time, and records the results."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Callable, Iterator, Sequence

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.hook_input import LATE_BUDGET
from azure_scheduled_events.urgency import counts_for
from hook_runner.clock import ServerClock
from hook_runner.hooks.discovery import Hook
from hook_runner.hooks.inputs import input_of
from hook_runner.hooks.lost_runs import usable
from hook_runner.hooks.one_run import RunResult
from hook_runner.hooks.runs import HookRuns
from hook_runner.hooks.systemd import Stopping
from hook_runner.lifecycle.active_run import ActiveRun, Ending
from hook_runner.lifecycle.claims import Claim, end_of_claim
from hook_runner.lifecycle.deadlines import Deadlines
from hook_runner.lifecycle.hook_pairs import partner
from hook_runner.lifecycle.runtime import Runtime
from hook_runner.lifecycle.stage_plan import (
    blocking_event,
    hooks_for,
    is_done,
    is_finished,
    is_late,
    next_hook,
    served_by_same_run,
)
from hook_runner.lifecycle.timeline import Timeline
from hook_runner.permissions import permission_problem, trusted_owners
from hook_runner.record_store import RecordStore
from hook_runner.records import (
    FAILED,
    INTERRUPTED,
    OK,
    PREPARE,
    RECOVER,
    RUNNING,
    SKIPPED,
    STAGES,
    STOPPED,
    TIMEOUT,
    Cause,
    EventRecord,
    HookRun,
)

# seconds after its timeout at which systemd ends a hook if no daemon does
UNIT_MARGIN = 5.0

# the state of a run that neither ended by itself nor was ended by this daemon
STATE_OF = {
    Cause.NOT_STARTED: FAILED,
    Cause.TIME_LIMIT: TIMEOUT,
    Cause.UNIT_STOPPED: INTERRUPTED,
}
AGAIN = "; NotBefore has moved, and the hook runs again"


class StageRunner:
    """The hook runs of all events.

    Until the store has everything on disk, systemd keeps the result of a run for the next daemon. `ended` is called
    with each run that has ended, and `boot` identifies this boot of the host.
    """

    def __init__(
        self,
        runtime: Runtime,
        runs: HookRuns,
        clock: ServerClock,
        store: RecordStore,
        timeline: Timeline,
        ended: Callable[[EventRecord, HookRun], None],
        boot: str,
    ) -> None:
        self._runtime = runtime
        self._runs = runs
        self._clock = clock
        self._store = store
        self._timeline = timeline
        self._ended = ended
        self._boot = boot
        self._deadlines = Deadlines(runtime, clock)
        self._active: dict[int, ActiveRun] = {}
        self._collected: set[int] = set()

    def is_busy(self) -> bool:
        """Return True if any hook runs."""
        return bool(self._active)

    def is_recovering(self) -> bool:
        """Return True if a recover hook runs that may undo any preparation: it has no pair."""
        running = (run.step for run in self._active.values() if run.step.stage == RECOVER)
        return any(partner(self._runtime.hooks, RECOVER, step.hook) is None for step in running)

    def has_running(self, record: EventRecord, *stages: str) -> bool:
        """Return True if a hook of one of these stages runs for the event."""
        return bool(self._runs_of(record, *stages))

    def is_stopping(self, step_id: int) -> bool:
        """Return True if the end of this run has been requested."""
        run = self._active.get(step_id)
        return run is not None and run.ending is not None

    def adopt_runs(self, record: EventRecord) -> None:
        """Take over the runs that outlived an earlier daemon, and record those that did not.

        The latter are interrupted, or had not begun if the daemon ended while it started them. If the event is to
        be prepared, hooks that a reboot has undone count as not run.
        """
        for step in record.steps:
            if step.state == RUNNING:
                if self._runs.adopt(step.id, step.stage, step.hook):
                    step.cause = Cause.NONE
                    # its running time is known once the server's time is; the host's own clock may
                    # be wrong
                    self._active[step.id] = ActiveRun(record, step, None)
                    self._timeline.add(
                        record,
                        "hook-adopted",
                        f"{step.stage}/{step.hook} runs on from before the daemon's start",
                        "notice",
                    )
                elif step.cause is Cause.STARTING and step.boot == self._boot:
                    self._close_unstarted(record, step, "the daemon ended before it had begun")
                else:
                    reason = "the host went down, or its unit was stopped, while no daemon ran"
                    self._close(record, step, Ending(INTERRUPTED, Cause.HOST_SHUTDOWN, reason))
        if record.phase == PREPARE:
            self.void_after_reboot(record)

    def adopt_lost_runs(self, record: EventRecord) -> None:
        """Take over the event's runs that its record lacks, once a document has shown the event's state."""
        of_event = [found for found in self._runs.lost.values() if found.key == record.key]
        for found in usable(of_event, record.occurrence, record.gone_at is not None):
            if record.affects_this_vm and self._runs.adopt(found.number, found.stage, found.hook):
                latest = record.latest_run(found.stage, found.hook)
                attempt, began = latest.attempt + 1 if latest else 1, self._clock.at(found.began)
                step = HookRun(found.number, found.stage, found.hook, attempt, RUNNING, began)
                step.boot, step.event_type = self._boot, record.event.event_type
                record.steps.append(step)
                self._active[step.id] = ActiveRun(record, step, None)
                self._timeline.add(
                    record,
                    "hook-adopted",
                    f"{step.stage}/{step.hook} ran before the daemon's start; the record of its event lacks it",
                    "warning",
                )

    def next_deadline(self) -> float | None:
        """Return the monotonic seconds at which the passing of time requires `tick`; None for never."""
        found = [self._runs.next_check_in()]
        for run in self._active.values():
            if run.ending is None:
                found.append(self._deadlines.next_deadline(run))
        return min((at for at in found if at is not None), default=None)

    def collect_finished(self, others: Sequence[EventRecord]) -> None:
        """Record the runs that have ended, also for the other events that they serve.

        The end of a recover hook counts for all events that were over when it began, the success of a prepare
        hook for the more urgent events that wait for it. systemd forgets a run when everything is on disk.
        """
        for step_id, result in self._runs.collect_finished():
            run = self._active.pop(step_id, None)
            if run is not None:
                self._finish(run, result)
                for other in list(self._events_that_share(run, others)):
                    self._record_shared_run(run, other)
            self._collected.add(step_id)
        while self._collected and self._store.write():
            self._runs.remove(self._collected.pop())

    def _events_that_share(self, run: ActiveRun, others: Sequence[EventRecord]) -> Iterator[EventRecord]:
        """Yield the other events for which a run that has ended counts as well.

        1. A recover hook counts for the events that were over when it began, unless it was interrupted.
        2. The success of a prepare hook counts for the listed events whose claim inherits it.
        """
        step = run.step
        if step.stage == RECOVER and step.state != INTERRUPTED:
            yield from served_by_same_run(run.record, step, self._runtime.hooks, others)
        elif step.stage == PREPARE and step.state == OK:
            yield from (
                claim.record for claim in run.claims.values() if claim.inherits and claim.record.gone_at is None
            )

    def advance_stage(self, record: EventRecord, stage: str, others: Sequence[EventRecord]) -> bool:
        """Begin the stage's next hook if none runs; return True when the stage is finished.

        `others` are the events of this VM that are not over, the most urgent first.

        1. While a hook of the stage runs for the event, only its deadline is enforced.
        2. Otherwise the next hook starts, or waits. After one that is skipped, refused or cannot be started,
           the next one is tried at once.
        3. If no hook is left to run now, the stage may still not be finished: a recover hook waits for its next
           attempt.
        """
        record.waiting_for = ""
        if self.has_running(record, stage):
            self.enforce_deadline(record, stage)
            return False
        while True:
            hook = next_hook(self._runtime.hooks, record, stage, self._clock.now())
            if hook is None:
                return is_finished(self._runtime.hooks, record, stage)
            if not self._start_or_skip(record, hook, others):
                return False

    def withdraw_claims(self, record: EventRecord) -> None:
        """Let the hooks of other events go on, because this event does not wait for them any more."""
        for run in self._active.values():
            run.claims.pop(record.id, None)

    def is_claimed(self, record: EventRecord) -> bool:
        """Return True if a prepare hook has to go on because its success counts for another event."""
        return any(claim.inherits for run in self._runs_of(record, PREPARE) for claim in run.claims.values())

    def give_up(self, record: EventRecord, who: str) -> None:
        """Let the recover hooks that have not succeeded count as skipped."""
        for hook in hooks_for(self._runtime.hooks, record, RECOVER):
            if not is_done(hook, record.latest_run(RECOVER, hook.name)):
                self._record_without_run(record, hook, Ending(SKIPPED, Cause.GIVEN_UP, f"given up by {who}"))

    def reopen_late(self, record: EventRecord) -> None:
        """Run prepare hooks that were skipped because time was short: the event is still Scheduled after NotBefore.

        Those that were skipped after NotBefore, or that need more than LATE_BUDGET seconds, stay skipped.
        """
        not_before = record.event.not_before
        for hook in self._runtime.hooks.get(PREPARE, ()):
            step = record.latest_run(PREPARE, hook.name)
            too_early = (
                step is not None
                and step.started_at is not None
                and not_before is not None
                and step.started_at < not_before
            )
            if step is not None and too_early and step.state == SKIPPED and hook.settings.needs <= LATE_BUDGET:
                step.void = "NotBefore has passed and the event has not started; the hook runs after all"

    def put_off(self, record: EventRecord, reason: str) -> None:
        """Begin no prepare hook of the event now; one that runs keeps its deadline."""
        record.waiting_for = ""
        if self.has_running(record, PREPARE):
            self.enforce_deadline(record, PREPARE)
        elif next_hook(self._runtime.hooks, record, PREPARE, self._clock.now()) is not None:
            record.waiting_for = f"no prepare hook begins: {reason}"

    def stop(self, record: EventRecord, cause: Cause, reason: str, *stages: str) -> None:
        """End the event's hooks of these stages."""
        for run in self._runs_of(record, *stages):
            self._stop(run, Ending(STOPPED, cause, reason), self._runtime.settings.kill_after)

    def not_before_changed(self, record: EventRecord, before: ScheduledEvent) -> None:
        """Give prepare hooks that lacked time another run, or less time to one that runs, as NotBefore has moved.

        1. If it is later now, each prepare hook whose latest run was skipped or ended for lack of time may run
           again.
        2. Otherwise the deadlines follow from the new NotBefore. A run that began after it has at most
           LATE_BUDGET seconds from now.
        """
        earlier, later = _as_timestamp(before.not_before), _as_timestamp(record.event.not_before)
        if later > earlier:
            for step in record.runs_in_stage(PREPARE):
                self._grant_again(step, record)
        elif self.has_running(record, PREPARE):
            for run in self._runs_of(record, *STAGES):
                if run.limit is not None and run.step.started_at is not None and is_late(record, run.step.started_at):
                    run.limit = min(run.limit, self._clock.monotonic() + LATE_BUDGET)
            left = record.event.seconds_left(self._clock.now())
            self._timeline.add(record, "shortened", f"NotBefore has come nearer: {left:.0f} s are left", "warning")

    def _grant_again(self, step: HookRun, record: EventRecord) -> None:
        """Let a prepare hook run again that was skipped or ended only because time was short.

        A run that has ended counts as stopped from now on. One that the daemon is ending for that reason will
        be recorded so.
        """
        run = self._active.get(step.id)
        if (
            step.cause in (Cause.NO_TIME, Cause.DEADLINE)
            and step.state != STOPPED
            and step is record.latest_run(PREPARE, step.hook)
        ):
            step.state, step.reason = STOPPED, step.reason + AGAIN
        elif run is not None and run.ending is not None and run.ending.cause is Cause.DEADLINE:
            run.ending = run.ending._replace(state=STOPPED, reason=run.ending.reason + AGAIN)

    def _runs_of(self, record: EventRecord, *stages: str) -> list[ActiveRun]:
        """Return the event's runs of these stages that have not ended."""
        return [run for run in self._active.values() if run.record is record and run.step.stage in stages]

    def _start_or_skip(self, record: EventRecord, hook: Hook, others: Sequence[EventRecord]) -> bool:
        """Start a hook, skip it or wait; return True if the next hook may follow at once.

        1. A hook that has to wait for another one (`_blocked_by`) waits.
        2. Otherwise the event's claims on hooks of other events are withdrawn.
        3. A prepare hook is skipped if less time is left than it needs, or less than 1 s (its timeout, if that
           is shorter).
        4. A hook that other users could change is refused, and counts as failed.
        5. Otherwise it is started.
        """
        now = self._clock.now()
        budget = self._deadlines.budget(record, hook, now)
        awaited = self._blocked_by(record, hook, budget, others)
        if awaited is not None:
            record.waiting_for = f"{hook.stage}/{hook.name} waits for {awaited}"
            return False
        self.withdraw_claims(record)
        if hook.stage == PREPARE and budget < max(hook.settings.needs, min(1.0, hook.settings.timeout)):
            reason = f"too little time is left ({max(0.0, budget):.0f} s)"
            if hook.settings.needs:
                reason += f", and it needs {hook.settings.needs:g} s"
            self._record_without_run(record, hook, Ending(SKIPPED, Cause.NO_TIME, reason))
            return True
        # checked again: hours may have passed since the hooks were discovered
        refusal = hook.problem or permission_problem(
            hook.path, self._runtime.settings.hooks_directory, trusted_owners()
        )
        if refusal is not None:
            self._record_without_run(record, hook, Ending(FAILED, Cause.REFUSED, refusal))
            return True
        return self._start(record, hook, budget, now)

    def _blocked_by(self, record: EventRecord, hook: Hook, budget: float, others: Sequence[EventRecord]) -> str | None:
        """Return what a hook has to wait for, to complete a clause with "waits for"; None if it may run.

        1. No hook may start now (`HookRuns.obstacle`).
        2. The hook itself, or its partner, runs for any event. A more urgent event limits its time (`_claim`).
        3. A prepare hook waits for a recover hook without a pair, and limits the time of all recover hooks.
        4. A hook of another stage than recover waits for nothing else.
        5. A recover hook waits while hooks of other stages run for an event that is over.
        6. A recover hook waits for the events whose preparation it would undo.
        """
        obstacle = self._runs.obstacle(budget)
        if obstacle is not None:
            return obstacle
        pair = (hook.name, partner(self._runtime.hooks, hook.stage, hook.name) or hook.name)
        same = [run for run in self._active.values() if run.step.hook in pair]
        self._claim(record, hook, same, others)
        if same or any(lost.hook in pair for lost in self._runs.lost.values()):
            return "the hook of the same name that runs for another event"
        if hook.stage == PREPARE and self.is_recovering():
            self._claim(record, hook, [run for run in self._active.values() if run.step.stage == RECOVER], others)
            return "the end of a recover hook of another event"
        if hook.stage != RECOVER:
            return None
        if any(run.step.stage != RECOVER and run.record.gone_at is not None for run in self._active.values()):
            return "the end of the hooks of another event, which is over"
        holder = blocking_event(hook, record, self._runtime.hooks, others)
        return None if holder is None else f"the end of event {holder.event.event_id}"

    def _claim(
        self, record: EventRecord, hook: Hook, running: Sequence[ActiveRun], others: Sequence[EventRecord]
    ) -> None:
        """Limit hooks of less urgent events, and of events that are over, to the time that this event leaves.

        1. Only a prepare hook claims time, and not from a listed event that is more urgent.
        2. A prepare hook that runs gets the claim in any case if its success counts for this event too. Another
           hook gets it only if it would end later for its own event.
        3. The first claim of this event that shortens the run is noted in the timeline of the other event.
        """
        if hook.stage != PREPARE:
            return
        now, less_urgent = self._clock.now(), others[others.index(record) + 1 :]
        for run in running:
            owner, step = run.record, run.step
            if owner.gone_at is None and owner not in less_urgent:
                continue
            before = run.claims.get(record.id)
            inherits = step.stage == PREPARE and counts_for(step.event_type, record.event.event_type)
            end = end_of_claim(record, hook, self._runtime.settings.margin, now, inherits, before)
            own_end = self._deadlines.end_for_own_event(owner, step)
            if inherits or end < own_end:
                run.claims[record.id] = Claim(record, end, inherits)
            if before is None and end < own_end:
                who = f"event {record.event.event_id} ({record.event.event_type}), which is more urgent,"
                left = max(0.0, (end - now).total_seconds())
                self._timeline.add(
                    owner,
                    "shortened",
                    f"{who} waits for {step.stage}/{step.hook}: {left:.0f} s are left for it",
                    "warning",
                )

    def void_after_reboot(self, record: EventRecord) -> None:
        """Let prepare hooks count as not run after a reboot, except those with `persists`."""
        lost = [
            step
            for step in record.runs_in_stage(PREPARE)
            if step.state == OK
            and step.boot not in ("", self._boot)
            and not self._runtime.settings.hook(PREPARE, step.hook).persists
        ]
        for step in lost:
            step.void = "the host was rebooted after it ran"
        if lost:
            names = ", ".join(dict.fromkeys(f"{step.stage}/{step.hook}" for step in lost))
            self._timeline.add(record, "void", f"{names}: the host was rebooted after it ran; it runs again", "notice")

    def _start(self, record: EventRecord, hook: Hook, budget: float, now: datetime) -> bool:
        """Start a hook; return True if that failed, and the next one may follow.

        If systemd ends the daemon or the host, the hook has not run: this is not an attempt, and no other hook
        follows.
        """
        step = self._new_run(record, hook, RUNNING, now)
        step.cause = Cause.STARTING
        limit = max(1, math.floor(budget))
        self._timeline.add(record, "hook-started", f"{hook.stage}/{hook.name}, for at most {int(limit)} s", "info")
        self._store.write()  # the hook runs also if it is not
        given = input_of(record, hook.stage, self._runtime.own_name or "", now, limit)
        try:
            self._runs.start(step.id, hook, *given, hook.settings.timeout + UNIT_MARGIN)
        except Stopping as error:
            self._close_unstarted(record, step, str(error))
            return False
        except OSError as error:
            self._close(record, step, Ending(FAILED, Cause.NOT_STARTED, f"it could not be started: {error}"))
            return True
        step.cause = Cause.NONE
        self._timeline.save(record)
        self._active[step.id] = ActiveRun(record, step, self._clock.monotonic() + self._deadlines.timeout(record, step))
        return False

    def enforce_deadline(self, record: EventRecord, stage: str) -> None:
        """End the event's hook if its time is over; NotBefore and other events may have changed it since."""
        for run in self._runs_of(record, stage):
            due = self._deadlines.due_ending(run)
            if due is not None:
                self._stop(run, due.ending, due.kill_after)

    def _stop(self, run: ActiveRun, ending: Ending, kill_after: float) -> None:
        if run.ending is None:
            run.ending = ending
            self._runs.stop(run.step.id, kill_after)

    def _finish(self, run: ActiveRun, result: RunResult) -> None:
        """Record the result of a run; exit status 0 is a success, even if the daemon was about to end the hook."""
        record, step = run.record, run.step
        step.exit_status, step.output = result.exit_status, result.output
        succeeded = result.exit_status == 0
        ending = Ending(OK, Cause.NONE, "") if succeeded else run.ending or _classify(result)
        record.forget_outputs(step.stage, step.hook)
        self._close(record, step, ending)

    def _record_shared_run(self, run: ActiveRun, other: EventRecord) -> None:
        """Record for another event what one run of a hook did for both."""
        step = run.step
        shared = HookRun(self._store.next_id(), step.stage, step.hook, step.attempt, step.state, step.started_at)
        shared.exit_status, shared.boot, shared.event_type = step.exit_status, self._boot, step.event_type
        other.steps.append(shared)
        state = SKIPPED if step.state == OK and step.stage == RECOVER else step.state
        reason = f"one run served this event and {run.record.event.event_id}"
        self._close(other, shared, Ending(state, Cause.SHARED, reason))

    def _record_without_run(self, record: EventRecord, hook: Hook, ending: Ending) -> None:
        self._close(record, self._new_run(record, hook, ending.state, self._clock.now()), ending)

    def _new_run(self, record: EventRecord, hook: Hook, state: str, now: datetime) -> HookRun:
        latest = record.latest_run(hook.stage, hook.name)
        attempts = latest.attempt if latest is not None else 0
        if state != SKIPPED:
            attempts += 1  # skipping is not an attempt; a hook may be skipped each time NotBefore moves
        step = HookRun(self._store.next_id(), hook.stage, hook.name, attempts, state, now)
        step.boot, step.event_type = self._boot, record.event.event_type
        record.steps.append(step)
        return step

    def _close_unstarted(self, record: EventRecord, step: HookRun, reason: str) -> None:
        """Record a run that has not begun: this is not an attempt."""
        step.attempt -= 1
        self._close(record, step, Ending(STOPPED, Cause.HOST_SHUTDOWN, reason))

    def _close(self, record: EventRecord, step: HookRun, ending: Ending) -> None:
        state, _cause, reason = step.state, step.cause, step.reason = ending
        step.ended_at = self._clock.now()
        text = f"{step.stage}/{step.hook}: {state}{', ' + reason if reason else ''}"
        self._timeline.add(record, "hook-ended", text, "info" if state == OK else "warning")
        self._ended(record, step)


def _as_timestamp(not_before: datetime | None) -> float:
    return 0.0 if not_before is None else not_before.timestamp()


def _classify(result: RunResult) -> Ending:
    """Return how a run is recorded that failed, or that something other than this daemon ended."""
    if result.cause is not Cause.NONE:
        return Ending(STATE_OF[result.cause], result.cause, result.error)
    status = result.exit_status or 0
    if status < 0:
        return Ending(FAILED, Cause.SIGNAL, f"signal {-status} ended it")
    return Ending(FAILED, Cause.EXIT, f"exit status {status}")
