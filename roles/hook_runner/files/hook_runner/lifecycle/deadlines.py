# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""When a hook has to end: after its timeout, before NotBefore, and when a more urgent event needs the time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from azure_scheduled_events.hook_input import LATE_BUDGET
from hook_runner.clock import ServerClock
from hook_runner.hooks.discovery import Hook
from hook_runner.lifecycle.active_run import ActiveRun, Ending
from hook_runner.lifecycle.runtime import Runtime
from hook_runner.lifecycle.stage_plan import is_late, prepare_budget, prepare_deadline
from hook_runner.records import PREPARE, STOPPED, TIMEOUT, Cause, EventRecord, HookRun


def hook_ends(limit: float | None, end: datetime | None, now: datetime, monotonic: float) -> float | None:
    """Return the monotonic seconds at which a hook has to be ended; None if neither bound is known.

    Its timeout is over at `limit`, in monotonic seconds; its stage has to be over at `end`, an aware time by
    the server's clock. `now` and `monotonic` are the present by the two clocks.
    """
    bounds = [] if limit is None else [limit]
    if end is not None:
        bounds.append(monotonic + (end - now).total_seconds())
    return min(bounds, default=None)


class DueEnding(NamedTuple):
    """A reason to end a run now, with how the run is recorded and the seconds between TERM and KILL."""

    ending: Ending
    kill_after: float


class Deadlines:
    """The time limits of hooks, evaluated for each call: settings, NotBefore and claims change."""

    def __init__(self, runtime: Runtime, clock: ServerClock) -> None:
        self._runtime = runtime
        self._clock = clock

    def budget(self, record: EventRecord, hook: Hook, now: datetime) -> float:
        """Return the seconds that a hook may take: its timeout, and for preparation what NotBefore leaves at most."""
        budget = prepare_budget(record, self._runtime.settings.margin, now) if hook.stage == PREPARE else None
        return hook.settings.timeout if budget is None else min(hook.settings.timeout, budget)

    def timeout(self, record: EventRecord, step: HookRun) -> float:
        """Return the timeout of a run in seconds; less if it began after NotBefore."""
        timeout = self._runtime.settings.hook(step.stage, step.hook).timeout
        late = step.stage == PREPARE and step.started_at is not None and is_late(record, step.started_at)
        return min(timeout, LATE_BUDGET) if late else timeout

    def end_for_own_event(self, record: EventRecord, step: HookRun) -> datetime:
        """Return when a running hook has to end for its own event."""
        began = step.started_at or self._clock.now()
        end = began + timedelta(seconds=self.timeout(record, step))
        stage_end = self._stage_end(record, step)
        return end if stage_end is None else min(stage_end, end)

    def next_deadline(self, run: ActiveRun) -> float | None:
        """Return the monotonic seconds at which the run has to end; None if that is unknown."""
        ends = [self._stage_end(run.record, run.step), *(claim.end for claim in run.claims.values())]
        end = min((at for at in ends if at is not None), default=None)
        return hook_ends(run.limit, end, self._clock.now(), self._clock.monotonic())

    def due_ending(self, run: ActiveRun) -> DueEnding | None:
        """Return the first reason to end the run now, or None. Sets the limit of a run that was taken over.

        1. The limit of a run that was taken over is counted from the start of the hook. Until the server's
           clock is known, such a run is not ended.
        2. The run is over its limit.
        3. The run's own event is about to start.
        4. The run is over the earliest end among the claims of more urgent events.
        """
        if run.limit is None:
            if not self._clock.is_synchronised():
                return None
            began = run.step.started_at
            passed = (self._clock.now() - began).total_seconds() if began else 0.0
            run.limit = self._clock.monotonic() + max(0.0, self.timeout(run.record, run.step) - max(0.0, passed))
        return self._due_by_timeout(run.limit, run) or self._due_by_not_before(run) or self._due_by_claim(run)

    def _due_by_timeout(self, limit: float, run: ActiveRun) -> DueEnding | None:
        if self._clock.monotonic() < limit:
            return None
        reason = f"it took longer than its {self.timeout(run.record, run.step):g} s"
        return DueEnding(Ending(TIMEOUT, Cause.TIME_LIMIT, reason), self._runtime.settings.kill_after)

    def _due_by_not_before(self, run: ActiveRun) -> DueEnding | None:
        now, end = self._clock.now(), self._stage_end(run.record, run.step)
        if end is None or now < end:
            return None
        left = run.record.event.seconds_left(now)
        ending = Ending(TIMEOUT, Cause.DEADLINE, f"the event may start in {left:.0f} s")
        return DueEnding(ending, min(self._runtime.settings.kill_after, left / 2))

    def _due_by_claim(self, run: ActiveRun) -> DueEnding | None:
        now = self._clock.now()
        claim = min(run.claims.values(), key=lambda claim: claim.end, default=None)
        if claim is None or now < claim.end:
            return None
        event = claim.record.event
        left = event.seconds_left(now)
        reason = f"event {event.event_id} ({event.event_type}) needs the time that is left"
        ending = Ending(STOPPED, Cause.MORE_URGENT, reason)
        return DueEnding(ending, min(self._runtime.settings.kill_after, left / 2))

    def _stage_end(self, record: EventRecord, step: HookRun) -> datetime | None:
        """Return when a hook has to end because its own event may start; None if that does not limit it.

        It limits prepare hooks only, until the event has started or is over, and no hook that began after
        NotBefore.
        """
        is_over = record.gone_at is not None or (step.started_at is not None and is_late(record, step.started_at))
        if step.stage != PREPARE or is_over:
            return None
        return prepare_deadline(record, self._runtime.settings.margin)
