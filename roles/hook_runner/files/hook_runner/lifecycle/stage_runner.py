# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Runs the hooks of one event's stage one after the other, within their time, and notes how each ended."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Callable, Sequence

from azure_scheduled_events.document import ScheduledEvent
from hook_runner.clock import ServerClock
from hook_runner.config.settings import Settings
from hook_runner.hooks.discovery import Hook
from hook_runner.hooks.inputs import event_environment, event_json
from hook_runner.hooks.run_identity import RunIdentity, usable
from hook_runner.hooks.runs import HookRuns, RunResult
from hook_runner.hooks.spawning import HostEnds
from hook_runner.lifecycle.claims import Claim, Claims, end_of_claim
from hook_runner.lifecycle.deadlines import hook_ends
from hook_runner.lifecycle.stage_plan import (
    Hooks,
    Times,
    blocking_event,
    hooks_for,
    is_done,
    is_finished,
    is_late,
    next_hook,
    prepare_budget,
    prepare_deadline,
    served_by_same_run,
    undone_by,
    urgency,
)
from hook_runner.permissions import permission_problem, trusted_owners
from hook_runner.records import (
    FAILED,
    INTERRUPTED,
    OK,
    PREPARE,
    RECOVER,
    RUNNING,
    SKIPPED,
    STOPPED,
    TIMEOUT,
    Cause,
    EventRecord,
    HookRun,
)

# the keeper's own limit counts only where no daemon lives to keep the time
SUPERVISOR_MARGIN = 5.0

# the state of a run that did not come to its own end, unless this daemon ended it
STATE_OF = {
    Cause.NOT_STARTED: FAILED,
    Cause.TIME_LIMIT: TIMEOUT,
    Cause.HOST_SHUTDOWN: INTERRUPTED,
    Cause.ENDED_EARLY: INTERRUPTED,
    Cause.SUPERVISOR_LOST: INTERRUPTED,
}
AGAIN = "; NotBefore has moved, so that it is run again"


class StageRunner:
    """The hook runs of all events.

    Args:
        settings, hooks: as configured; replace the attributes to change them.
        runs: starts and ends the processes.
        clock: the server's clock.
        next_id: numbers for steps.
        keep: notes (record, word, sentence, level) in the timeline and saves the record.
        ended: called with each step that has ended.
        boot: identifies this boot of the host.
    """

    def __init__(
        self,
        settings: Settings,
        hooks: Hooks,
        runs: HookRuns,
        clock: ServerClock,
        next_id: Callable[[], int],
        keep: Callable[[EventRecord, str, str, str], bool],
        ended: Callable[[EventRecord, HookRun], None],
        boot: str,
    ) -> None:
        self.settings = settings
        self.hooks = hooks
        self.own_name = ""
        self._runs = runs
        self._clock = clock
        self._next_id = next_id
        self._keep = keep
        self._ended = ended
        self._boot = boot
        self._active: dict[int, tuple[EventRecord, HookRun, float | None]] = {}
        self._stopping: dict[int, tuple[str, Cause, str]] = {}
        self._claims = Claims()
        self._collected: set[int] = set()
        self.blocked: dict[int, str] = {}
        # whether all that was saved is on disk: until then a run's result has to stay where the
        # next daemon finds it
        self.is_durable: Callable[[], bool] = lambda: True

    def is_busy(self) -> bool:
        """Whether any hook runs."""
        return bool(self._active) or self._runs.has_orphans()

    def is_recovering(self) -> bool:
        """Whether a recover hook runs that may undo any preparation: those with a namesake undo that one only."""
        partners = {hook.name for hook in self.hooks.get(PREPARE, ())}
        return any(
            step.stage == RECOVER and step.hook not in partners for _owner, step, _limit in self._active.values()
        )

    def is_being_undone(self, record: EventRecord) -> bool:
        """Return True if a recover hook runs that undoes what was prepared for this event, which has come back since it began."""
        running = (step for _owner, step, _limit in self._active.values() if step.stage == RECOVER)
        return any(list(undone_by(step, self.hooks, [record])) for step in running)

    def has_running(self, record: EventRecord, *stages: str) -> bool:
        """Whether a hook of one of these stages runs for the event."""
        return any(owner is record and step.stage in stages for owner, step, _limit in self._active.values())

    def adopt_runs(self, record: EventRecord) -> None:
        """After a start of the daemon: go on with the runs that outlived it, and note those that did not."""
        for step in record.steps:
            if step.state == RUNNING:
                if self._runs.adopt(step.id):
                    # how long it has run is known when the server's time is; the host's own clock
                    # may be wrong
                    self._active[step.id] = (record, step, None)
                    self._keep(
                        record,
                        "hook-adopted",
                        f"{step.stage}/{step.hook} runs on from before the daemon's start",
                        "notice",
                    )
                else:
                    self._close(
                        record,
                        step,
                        INTERRUPTED,
                        Cause.HOST_SHUTDOWN,
                        "the host went down while it ran, or it had not begun",
                    )
        if record.gone_at is None and not record.seen_started:
            self._void_after_reboot(record)

    def take_in(self, record: EventRecord) -> None:
        """Go on with the event's runs that a journal had lost, once a document has shown what has become of the event."""
        for step_id, found in usable(self._runs.lost(record.key), record.occurrence, record.gone_at is not None):
            if record.affects_this_vm and self._runs.claim(step_id):
                latest = record.latest_run(found.stage, found.hook)
                step = HookRun(
                    step_id, found.stage, found.hook, latest.attempt + 1 if latest else 1, RUNNING, found.started_at
                )
                step.boot = self._boot
                record.steps.append(step)
                self._active[step_id] = (record, step, None)
                self._keep(
                    record,
                    "hook-adopted",
                    f"{step.stage}/{step.hook} ran before the daemon's start; the journal had lost it",
                    "warning",
                )

    def next_deadline(self) -> float | None:
        """Return the monotonic seconds at which `enforce_deadline` or `collect_finished` has something to do though nothing happens; None for never."""
        found = [self._runs.next_check_in()]
        for record, step, limit in self._active.values():
            if step.id not in self._stopping:
                ends = [self._own_end(record, step), *(claim.end for claim in self._claims.of(step.id))]
                end = min((at for at in ends if at is not None), default=None)
                found.append(hook_ends(limit, end, self._clock.now(), self._clock.monotonic()))
        return min((at for at in found if at is not None), default=None)

    def collect_finished(self, others: Sequence[EventRecord]) -> None:
        """Note the runs that have ended since, also for the other events that they serve.

        A recover hook's end counts for all events that were over when it began, the success of a
        prepare hook for the more urgent events that wait for it.
        """
        for step_id, result in self._runs.collect_finished():
            if step_id in self._active:
                record, step, _limit = self._active.pop(step_id)
                claims = self._claims.take(step_id)
                self._finish(record, step, result)
                if step.stage == RECOVER:
                    served = served_by_same_run(record, step, self.hooks, others) if step.state != INTERRUPTED else ()
                    undone = (other for other in undone_by(step, self.hooks, others) if other is not record)
                    for other in (*served, *undone):
                        self._record_shared_run(record, step, other)
                elif step.stage == PREPARE and step.state == OK:
                    for claim in claims:
                        if claim.inherits and claim.record.gone_at is None:
                            self._record_shared_run(record, step, claim.record)
            self._collected.add(step_id)
        while self._collected and self.is_durable():
            self._runs.remove(self._collected.pop())

    def advance_stage(self, record: EventRecord, stage: str, others: Sequence[EventRecord]) -> bool:
        """Begin the stage's next hook if none runs; True when the stage is finished. others: the events that may hold a hook back."""
        self.blocked.pop(record.id, None)
        if self.has_running(record, stage):
            self.enforce_deadline(record, stage)
            return False
        while True:
            hook = next_hook(self.hooks, record, stage, self._clock.now())
            if hook is None:
                return is_finished(self.hooks, record, stage)
            if not self._start_or_skip(record, hook, others):
                return False

    def forget(self, record: EventRecord) -> None:
        """Drop what is only needed while the event is open."""
        self.blocked.pop(record.id, None)
        self._claims.drop(record)

    def is_claimed(self, record: EventRecord) -> bool:
        """Return True if another event inherits from a prepare hook that runs for this one, so that the hook has to go on."""
        steps = (step for owner, step, _limit in self._active.values() if owner is record and step.stage == PREPARE)
        return any(claim.inherits for step in steps for claim in self._claims.of(step.id))

    def void(self, record: EventRecord, stages: Sequence[str], reason: str) -> None:
        """Let the hooks of these stages count as not run for the event, because what they did does not hold any more."""
        steps = [step for stage in stages for step in record.runs_in_stage(stage) if step.state != RUNNING]
        for step in steps:
            step.void = reason
        if steps:
            self._keep(
                record,
                "void",
                f"{', '.join(dict.fromkeys(f'{step.stage}/{step.hook}' for step in steps))}: {reason}",
                "notice",
            )

    def give_up(self, record: EventRecord, who: str) -> None:
        """Let the recover hooks that have not succeeded count as left out."""
        for hook in hooks_for(self.hooks, record, RECOVER):
            if not is_done(hook, record.latest_run(RECOVER, hook.name)):
                self._record_without_run(record, hook, SKIPPED, Cause.GIVEN_UP, f"given up by {who}", self._clock.now())

    def reopen_late(self, record: EventRecord) -> None:
        """NotBefore has passed and the event is still Scheduled: hooks that were left out for lack of time get their minimum."""
        not_before = record.event.not_before
        for hook in self.hooks.get(PREPARE, ()):
            step = record.latest_run(PREPARE, hook.name)
            too_early = (
                step is not None
                and step.started_at is not None
                and not_before is not None
                and step.started_at < not_before
            )
            if (
                step is not None
                and too_early
                and step.state == SKIPPED
                and hook.settings.needs <= self.settings.minimum_budget
            ):
                step.void = "NotBefore has passed and the event has not started; the hook runs after all"

    def put_off(self, record: EventRecord, reason: str) -> None:
        """Begin no prepare hook of the event now; one that runs keeps its time."""
        self.blocked.pop(record.id, None)
        if self.has_running(record, PREPARE):
            self.enforce_deadline(record, PREPARE)
        elif next_hook(self.hooks, record, PREPARE, self._clock.now()) is not None:
            self.blocked[record.id] = f"no prepare hook begins: {reason}"

    def stop(self, record: EventRecord, cause: Cause, reason: str, *stages: str) -> None:
        """End the event's hooks of these stages."""
        for owner, step, _limit in list(self._active.values()):
            if owner is record and step.stage in stages:
                self._stop(step, STOPPED, cause, reason, self.settings.kill_after)

    def not_before_changed(self, record: EventRecord, before: ScheduledEvent) -> None:
        """NotBefore has moved: what only lacked time may have it now; what runs may have less."""
        earlier, later = _as_timestamp(before.not_before), _as_timestamp(record.event.not_before)
        if later > earlier:
            for step in record.runs_in_stage(PREPARE):
                _state, stopped_for, why = self._stopping.get(step.id, ("", Cause.NONE, ""))
                if (
                    step.cause in (Cause.NO_TIME, Cause.DEADLINE)
                    and step.state != STOPPED
                    and step is record.latest_run(PREPARE, step.hook)
                ):
                    step.state, step.reason = STOPPED, step.reason + AGAIN
                elif stopped_for is Cause.DEADLINE:
                    self._stopping[step.id] = (STOPPED, stopped_for, why + AGAIN)
        elif self.has_running(record, PREPARE):
            for owner, step, limit in list(self._active.values()):
                if (
                    owner is record
                    and limit is not None
                    and step.started_at is not None
                    and is_late(record, step.started_at)
                ):
                    self._active[step.id] = (
                        owner,
                        step,
                        min(limit, self._clock.monotonic() + self.settings.minimum_budget),
                    )
            left = record.event.seconds_left(self._clock.now())
            self._keep(record, "shortened", f"NotBefore has come nearer: {left:.0f} s are left", "warning")

    def _start_or_skip(self, record: EventRecord, hook: Hook, others: Sequence[EventRecord]) -> bool:
        """Deal with one hook: True when the next one may follow at once, False when something runs or must be waited for."""
        awaited = self._blocked_by(record, hook, others)
        if awaited is not None:
            self.blocked[record.id] = f"{hook.stage}/{hook.name} waits for {awaited}"
            return False
        self._claims.drop(record)
        now = self._clock.now()
        budget = self._time_limit(record, hook, now)
        if hook.stage == PREPARE and budget < max(hook.settings.needs, min(1.0, hook.settings.timeout)):
            reason = f"too little time is left ({max(0.0, budget):.0f} s)"
            if hook.settings.needs:
                reason += f", and it needs {hook.settings.needs:g} s"
            self._record_without_run(record, hook, SKIPPED, Cause.NO_TIME, reason, now)
            return True
        # looked at again: hours may have passed since the hooks were found
        refusal = hook.problem or permission_problem(hook.path, self.settings.hooks_directory, trusted_owners())
        if refusal is not None:
            self._record_without_run(record, hook, FAILED, Cause.REFUSED, refusal, now)
            return True
        return self._start(record, hook, budget, now)

    def _blocked_by(self, record: EventRecord, hook: Hook, others: Sequence[EventRecord]) -> str | None:
        """What a hook has to wait for, so that no two undo each other's work; None where it may run."""
        if self._runs.is_held():
            return "the host, which goes down"
        if self._runs.has_orphans():
            return "the end of hooks that the journal does not know"
        same = [(owner, step) for owner, step, _limit in self._active.values() if step.hook == hook.name]
        self._claim(record, hook, same)
        if same or self._runs.is_lost(hook.name):
            return "the hook of the same name that runs for another event"
        if hook.stage == PREPARE and self.is_recovering():
            self._claim(
                record, hook, [(owner, step) for owner, step, _limit in self._active.values() if step.stage == RECOVER]
            )
            return "the end of what recovers from another event"
        if hook.stage != RECOVER:
            return None
        if any(step.stage != RECOVER and owner.gone_at is not None for owner, step, _limit in self._active.values()):
            return "the hooks of another event that is over, which are being ended"
        holder = blocking_event(hook, record, self.hooks, others)
        return (
            None
            if holder is None
            else f"the end of event {holder.event.event_id}, for which this VM is prepared as well"
        )

    def _claim(self, record: EventRecord, hook: Hook, running: Sequence[tuple[EventRecord, HookRun]]) -> None:
        """Limit hooks that run for less urgent events, or for ones that are over, to what this event leaves them."""
        now = self._clock.now()
        for owner, step in running:
            if hook.stage != PREPARE or (owner.gone_at is None and urgency(record) >= urgency(owner)):
                continue
            before = self._claims.earlier(step.id, record)
            inherits = step.stage == PREPARE
            end = end_of_claim(record, hook, self._times(), now, inherits, before)
            own_end = self._end_of(owner, step)
            if inherits or end < own_end:
                self._claims.put(step.id, Claim(record, end, inherits))
            if before is None and end < own_end:
                who = f"event {record.event.event_id} ({record.event.event_type}), which is more urgent,"
                left = max(0.0, (end - now).total_seconds())
                self._keep(
                    owner,
                    "shortened",
                    f"{who} waits for {step.stage}/{step.hook}: {left:.0f} s are left for it",
                    "warning",
                )

    def _end_of(self, owner: EventRecord, step: HookRun) -> datetime:
        """When a hook that runs has to have ended for its own event."""
        began = step.started_at or self._clock.now()
        end = began + timedelta(seconds=self._timeout(owner, step))
        own = self._own_end(owner, step)
        return end if own is None else min(own, end)

    def _own_end(self, record: EventRecord, step: HookRun) -> datetime | None:
        """When a hook has to have ended because its own event may start; None where that does not limit it."""
        is_over = record.gone_at is not None or (step.started_at is not None and is_late(record, step.started_at))
        return None if step.stage != PREPARE or is_over else prepare_deadline(record, self.settings.margin)

    def _times(self) -> Times:
        return Times(self.settings.margin, self.settings.minimum_budget)

    def _timeout(self, record: EventRecord, step: HookRun) -> float:
        """Seconds that a run may take; less where it began after NotBefore had passed."""
        timeout = self.settings.hook(step.stage, step.hook).timeout
        late = step.stage == PREPARE and step.started_at is not None and is_late(record, step.started_at)
        return min(timeout, self.settings.minimum_budget) if late else timeout

    def _void_after_reboot(self, record: EventRecord) -> None:
        """A reboot undoes what was prepared, unless the configuration says that the effect persists."""
        lost = [
            step
            for step in record.runs_in_stage(PREPARE)
            if step.state == OK
            and step.boot not in ("", self._boot)
            and not self.settings.hook(PREPARE, step.hook).persists
        ]
        for step in lost:
            step.void = "the host was started anew after it ran"
        if lost:
            names = ", ".join(dict.fromkeys(f"{step.stage}/{step.hook}" for step in lost))
            self._keep(record, "void", f"{names}: the host was started anew after it ran; it runs again", "notice")

    def _start(self, record: EventRecord, hook: Hook, budget: float, now: datetime) -> bool:
        """Run a hook; True when it could not be started, so that the next one may follow."""
        step = self._new_run(record, hook, RUNNING, now)
        limit = max(1, math.floor(budget))
        self._keep(record, "hook-started", f"{hook.stage}/{hook.name}, for at most {int(limit)} s", "info")
        told = (record, hook.stage, self.own_name, now, limit)
        try:
            identity = RunIdentity(record.key, record.occurrence, hook.stage, hook.name, now)
            self._runs.start(
                step.id,
                hook.path,
                event_json(*told),
                event_environment(*told),
                hook.settings.timeout + SUPERVISOR_MARGIN,
                identity,
                hook.settings.unit,
            )
        except HostEnds as error:
            step.attempt -= 1  # it has not run, and may after the boot
            self._close(record, step, STOPPED, Cause.HOST_SHUTDOWN, str(error))
            return False
        except OSError as error:
            self._close(record, step, FAILED, Cause.NOT_STARTED, f"it could not be started: {error}")
            return True
        self._active[step.id] = (record, step, self._clock.monotonic() + self._timeout(record, step))
        return False

    def _time_limit(self, record: EventRecord, hook: Hook, now: datetime) -> float:
        """Seconds that a hook may take: its time-out, and for preparation no more than NotBefore leaves."""
        budget = prepare_budget(record, self._times(), now) if hook.stage == PREPARE else None
        return hook.settings.timeout if budget is None else min(hook.settings.timeout, budget)

    def enforce_deadline(self, record: EventRecord, stage: str) -> None:
        """End the event's hook whose time is up, evaluated anew each time since NotBefore and other events may change."""
        for owner, step, limit in list(self._active.values()):
            if owner is not record or step.stage != stage:
                continue
            timeout = self._timeout(record, step)
            if limit is None:
                if not self._clock.is_synchronised():
                    continue
                passed = (self._clock.now() - step.started_at).total_seconds() if step.started_at else 0.0
                limit = self._clock.monotonic() + max(0.0, timeout - max(0.0, passed))
                self._active[step.id] = (owner, step, limit)
            if self._clock.monotonic() >= limit:
                self._stop(
                    step, TIMEOUT, Cause.TIME_LIMIT, f"it took longer than its {timeout:g} s", self.settings.kill_after
                )
            now = self._clock.now()
            end = self._own_end(record, step)
            if end is not None and now >= end:
                left = record.event.seconds_left(now)
                self._stop(
                    step,
                    TIMEOUT,
                    Cause.DEADLINE,
                    f"the event may start in {left:.0f} s",
                    min(self.settings.kill_after, left / 2),
                )
            claim = min(self._claims.of(step.id), key=lambda claim: claim.end, default=None)
            if claim is not None and now >= claim.end:
                left = claim.record.event.seconds_left(now)
                why = (
                    f"event {claim.record.event.event_id} ({claim.record.event.event_type}) needs the time that is left"
                )
                self._stop(step, STOPPED, Cause.MORE_URGENT, why, min(self.settings.kill_after, left / 2))

    def _stop(self, step: HookRun, state: str, cause: Cause, reason: str, kill_after: float) -> None:
        if step.id not in self._stopping:
            self._stopping[step.id] = (state, cause, reason)
            self._runs.stop(step.id, kill_after)

    def _finish(self, record: EventRecord, step: HookRun, result: RunResult) -> None:
        state, cause, reason = self._stopping.pop(step.id, ("", Cause.NONE, ""))
        step.exit_status, step.output = result.exit_status, result.output
        if result.exit_status == 0:
            state, cause, reason = OK, Cause.NONE, ""
        elif not state:
            state, cause, reason = _classify(result)
        record.forget_outputs(step.stage, step.hook)
        self._close(record, step, state, cause, reason)

    def _record_shared_run(self, record: EventRecord, step: HookRun, other: EventRecord) -> None:
        """Note for another event what one run of a hook did for both."""
        shared = HookRun(self._next_id(), step.stage, step.hook, step.attempt, step.state, step.started_at)
        shared.exit_status, shared.boot = step.exit_status, self._boot
        other.steps.append(shared)
        state = SKIPPED if step.state == OK and step.stage == RECOVER else step.state
        self._close(other, shared, state, Cause.SHARED, f"one run served this event and {record.event.event_id}")

    def _record_without_run(
        self, record: EventRecord, hook: Hook, state: str, cause: Cause, reason: str, now: datetime
    ) -> None:
        self._close(record, self._new_run(record, hook, state, now), state, cause, reason)

    def _new_run(self, record: EventRecord, hook: Hook, state: str, now: datetime) -> HookRun:
        latest = record.latest_run(hook.stage, hook.name)
        attempts = latest.attempt if latest is not None else 0
        if state != SKIPPED:
            attempts += 1  # what is only left out is no attempt: it may be left out as often as NotBefore moves
        step = HookRun(self._next_id(), hook.stage, hook.name, attempts, state, now)
        step.boot = self._boot
        record.steps.append(step)
        return step

    def _close(self, record: EventRecord, step: HookRun, state: str, cause: Cause, reason: str) -> None:
        step.state, step.cause, step.reason, step.ended_at = state, cause, reason, self._clock.now()
        text = f"{step.stage}/{step.hook}: {state}{', ' + reason if reason else ''}"
        self._keep(record, "hook-ended", text, "info" if state == OK else "warning")
        self._ended(record, step)


def _as_timestamp(not_before: datetime | None) -> float:
    return 0.0 if not_before is None else not_before.timestamp()


def _classify(result: RunResult) -> tuple[str, Cause, str]:
    """State, cause and reason of a run that failed, or that something else than this daemon ended."""
    if result.cause is not Cause.NONE:
        return STATE_OF[result.cause], result.cause, result.error
    status = result.exit_status or 0
    return (
        (FAILED, Cause.SIGNAL, "signal %d ended it" % -status)
        if status < 0
        else (FAILED, Cause.EXIT, f"exit status {status}")
    )
