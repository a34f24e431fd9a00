# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Which hook runs next, which one has to end, and whether this VM is prepared for an event. Pure.

Everything follows from the order of the hook runs of the maintenance: a success of a prepare hook counts until a
recover hook begins, and a success of a recover hook until another hook begins.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import chain
from typing import Iterator, Mapping, NamedTuple

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.event_types import is_chosen
from azure_scheduled_events.identity import affects, vm_key
from azure_scheduled_events.tracking import Sighting
from azure_scheduled_events.urgency import Urgency, counts_for, most_severe, most_urgent_first
from hook_runner.config.settings import HookSettings, Settings
from hook_runner.hooks.discovery import Hook, Hooks
from hook_runner.maintenance import reasons
from hook_runner.maintenance.deadlines import deadline, others_end_at, seconds_to_kill, seconds_to_prepare
from hook_runner.maintenance.record import NO_EVENT, EventRecord, HookRun, Maintenance
from hook_runner.records import (
    CUT,
    EMERGENCY,
    FAILED,
    INTERRUPTED,
    LOST,
    OK,
    PREPARE,
    RECOVER,
    STARTED,
    STOPPED,
    TIMEOUT,
    Cause,
)

# runs of a hook for one event, and of a recover hook without a pause
MAX_ATTEMPTS = 3
# seconds before a recover hook that failed is run again: doubled each time, up to the second value
FIRST_RECOVER_PAUSE, LONGEST_RECOVER_PAUSE = 10.0, 600.0
# seconds that may be left when a run was cut: each answer of IMDS may set the clock back by up to 5
_LEFT_AFTER_CUT = 6.0
# time for systemd to end a run at its limit, before the daemon does it
_FOR_SYSTEMD = timedelta(seconds=1)


class Host(NamedTuple):
    """The configuration of the daemon on this host.

    Attributes:
        settings: content of config.yml.
        hooks: by stage, in the order of their names.
        own_name: this VM's resource name; "" while it is unknown.
        boot: identifies this boot.
    """

    settings: Settings
    hooks: Hooks
    own_name: str
    boot: str

    def matching(self, stage: str, event_type: str) -> list[Hook]:
        """Return the hooks of a stage for a type of event; those without `types` are not for one that only advises."""
        return [hook for hook in self.hooks.get(stage, ()) if is_chosen(event_type, hook.settings.types or None)]

    def is_affected_by(self, event: ScheduledEvent) -> bool:
        """Return True if an event affects this VM; False while its name is unknown."""
        return bool(self.own_name) and affects(event, self.own_name)

    def has_hook_for(self, event_type: str) -> bool:
        """Return True if a hook runs for this type before or at the start of an event."""
        return any(self.matching(stage, event_type) for stage in (PREPARE, EMERGENCY, STARTED))

    def hook_settings(self, run: HookRun) -> HookSettings:
        """Return the settings of the hook of a run."""
        return self.settings.hook(run.stage, run.name)


class Next(NamedTuple):
    """The hook to begin now, and the event for which it runs; None if the events are not known."""

    hook: Hook
    record: EventRecord | None


class HookPlan:
    """The decisions about the hooks of one maintenance at one moment.

    Args:
        sightings: the events that are not gone, by key.
        now: aware time by the server's clock.
        is_paused: whether no prepare hook may begin.
    """

    def __init__(
        self,
        host: Host,
        maintenance: Maintenance,
        sightings: Mapping[str, Sighting],
        now: datetime,
        is_paused: bool = False,
    ) -> None:
        self._host = host
        self._maintenance = maintenance
        self._sightings = sightings
        self._now = now
        self._is_paused = is_paused
        self._in_force = {stage: self._runs_in_force(stage) for stage in (PREPARE, RECOVER)}
        # numbers of the events whose preparation had begun in this boot
        self._begun = {run.event for run in self._in_force[PREPARE] if run.boot == host.boot}

    # -- the next hook

    def next_hook(self) -> Next | None:
        """Return the hook that begins now if none runs, or None.

        1. Without an own event: the first recover hook that has not succeeded, and need not wait for its next attempt.
        2. With `when_started: finish`: the rest of a preparation that had begun in this boot when its event started.
        3. The hooks of an event that has started.
        4. The first prepare hook that is to run for the most urgent Scheduled event that has one.
        """
        if not self._maintenance.present:
            return self._next_recovery()
        started = [each for each in self._maintenance.present if each.is_started and self.is_listed(each)]
        finishes = self._host.settings.when_started == "finish" and not self._is_paused
        to_finish = (each for each in started if finishes and each.number in self._begun)
        to_prepare = [] if self._is_paused else self.by_urgency()
        found = chain(
            (Next(hook, record) for record in to_finish for hook in self._to_prepare(record)),
            (Next(hook, record) for record in started for hook in self._at_start(record)),
            (Next(hook, record) for record in to_prepare for hook in self._to_prepare(record)),
        )
        return next(found, None)

    def begin(self, found: Next, number: int) -> HookRun:
        """Return the record of a hook run that begins now."""
        hook, record = found
        earlier = self._runs_of(hook, record)
        timeout = hook.settings.timeout
        left = None if record is None or hook.stage != PREPARE else self._seconds_left(record)
        seconds = timeout if left is None else min(timeout, left)
        return HookRun(
            number=number,
            stage=hook.stage,
            name=hook.name,
            event=NO_EVENT if record is None else record.number,
            event_type="" if record is None else record.event.event_type,
            attempt=earlier[-1].attempt + 1 if earlier else 1,
            began=self._now,
            limit=self._now + timedelta(seconds=seconds),
            is_cut_short=seconds < timeout,
            boot=self._host.boot,
        )

    def by_urgency(self) -> list[EventRecord]:
        """Return the own events for which prepare hooks may begin, the most urgent one first."""
        scheduled = [each for each in self._maintenance.present if each.event.status == "Scheduled"]
        return self._in_order([record for record in scheduled if self.is_listed(record)])

    def is_listed(self, record: EventRecord) -> bool:
        """Return True if the last document lists the event, and this VM in it if its VMs are readable."""
        sighting = self._sightings.get(record.key)
        if sighting is None or not sighting.listed:
            return False
        return vm_key(self._host.own_name) in sighting.named or not sighting.readable

    def _to_prepare(self, record: EventRecord) -> Iterator[Hook]:
        """Yield the prepare hooks that are to run for an event now; none after one that stops the stage."""
        for hook in self._matching(record):
            if self._is_needed(hook, record):
                yield hook
            if hook.settings.on_failure == "stop" and not self._has_succeeded(hook, record):
                return

    def _is_needed(self, hook: Hook, record: EventRecord) -> bool:
        """Return True if a prepare hook is to run for an event: it can, and has not had its run."""
        if self._has_succeeded(hook, record) or self._lacks_time(hook, record):
            return False
        runs = self._runs_of(hook, record)
        if not runs:
            return True
        if record.is_started or runs[-1].is_open or self._had_last_run(hook, record):
            return False
        if runs[-1].state == CUT:  # by a NotBefore that may have moved or passed, or the clock was wrong
            return (self._seconds_left(record) or 0.0) > _LEFT_AFTER_CUT
        return True  # another event ended it, or it succeeded for a type that was less severe

    def _had_last_run(self, hook: Hook, record: EventRecord) -> bool:
        """Return True if a prepare hook has ended for an event, and will not be repeated for it."""
        runs = self._runs_of(hook, record)
        if not runs or runs[-1].is_open:
            return False
        is_final = (FAILED, TIMEOUT) if hook.settings.rerun else (FAILED, TIMEOUT, INTERRUPTED)
        return runs[-1].state in is_final or len(runs) >= MAX_ATTEMPTS

    def _at_start(self, record: EventRecord) -> Iterator[Hook]:
        """Yield the hooks that are to run because the event has started: each once, or again if it was interrupted."""
        if not record.stage_at_start:
            return
        for hook in self._host.matching(record.stage_at_start, record.event.event_type):
            runs = self._runs_of(hook, record)
            if not runs or (runs[-1].state == INTERRUPTED and len(runs) < MAX_ATTEMPTS):
                yield hook
            elif hook.settings.on_failure == "stop" and runs[-1].state != OK:
                return

    # -- the end of the hook that runs

    def ending(self, run: HookRun) -> Cause:
        """Return why the hook that runs has to end now; Cause.NONE if it goes on. systemd ends it at its own limit.

        1. Its event is gone, and its success would not count for another own event.
        2. An event has started: its hooks are next.
        3. A more urgent event waits for a hook, and the limit of the run lies behind its deadline, or half of its
           time has passed, or less than its hooks need is left otherwise.
        4. The event is about to start, because NotBefore has moved.
        """
        if run.stage != RECOVER and not self._has_use(run):
            return Cause.EVENT_OVER
        if run.stage in (PREPARE, RECOVER) and self._gives_way_to_start(run):
            return Cause.EVENT_STARTED
        own = self._event_of(run)
        if any(self._gives_way(run, other) for other in self._more_urgent(run, own)):
            return Cause.MORE_URGENT
        not_before = None if own is None or own.is_started else own.event.not_before
        # a run that began after NotBefore has its own limit
        if run.stage == PREPARE and own is not None and not_before is not None and run.began < not_before:
            end = deadline(own, self._now, self._host.settings.margin) or not_before
            # at its limit systemd ends the run, unless the clocks differ
            if self._now >= (end if end < run.limit else max(end, run.limit + _FOR_SYSTEMD)):
                return Cause.DEADLINE
        return Cause.NONE

    def kill_after(self, run: HookRun) -> float:
        """Return the seconds between TERM and KILL of a run that has to end now."""
        own, most = self._event_of(run), self._host.settings.kill_after
        records = [*self.by_urgency(), *([] if own is None else [own])]
        return min([seconds_to_kill(record, self._now, most) for record in records], default=most)

    def _has_use(self, run: HookRun) -> bool:
        """Return True if the event of the run is present, or a success of the run would count for another one."""
        present = self._maintenance.present
        if any(record.number == run.event for record in present):
            return True
        if run.stage != PREPARE:
            return False
        others = [(hook, other) for other in present if not other.is_started for hook in self._matching(other)]
        return any(self._would_count(run, hook, other) for hook, other in others)

    def _gives_way_to_start(self, run: HookRun) -> bool:
        if run.stage == PREPARE and self._host.settings.when_started == "finish":
            return False
        own = self._event_of(run)
        if run.stage == PREPARE and own is not None and own.is_started:
            return True
        return any(self.is_listed(each) and any(self._at_start(each)) for each in self._maintenance.present)

    def _more_urgent(self, run: HookRun, own: EventRecord | None) -> list[EventRecord]:
        """Return the events that come before the event of a run, the most urgent one first; all for another stage."""
        if self._is_paused:
            return []
        waiting = self.by_urgency()
        if run.stage != PREPARE or own is None:
            return waiting
        order = self._in_order(waiting if own in waiting else [*waiting, own])
        return order[: order.index(own)]

    def _gives_way(self, run: HookRun, other: EventRecord) -> bool:
        hooks = (
            self._matching(other)
            if run.stage == RECOVER  # it undoes those that have succeeded
            else list(self._to_prepare(other))
        )
        if not hooks:
            return False
        end = deadline(other, self._now, self._host.settings.margin)
        if end is None or run.limit > end:
            return True
        if all(self._would_count(run, hook, other) for hook in hooks):
            return False  # it does the same job, and may use all of the time
        needs = max(hook.settings.needs for hook in hooks)
        return self._now >= others_end_at(other, end, self._host.settings.kill_after, needs)

    # -- the state of the preparation

    def prepared(self, record: EventRecord) -> str:
        """Return whether this VM is prepared for an event: "none", "running", "ok" or "failed"."""
        run = self._maintenance.open_run
        about = (PREPARE, record.number, record.event.event_type)
        # a recover hook may undo the preparation
        if run is not None and (run.stage == RECOVER or (run.stage, run.event, run.event_type) == about):
            return "running"
        hooks = self._matching(record)
        missing = [hook for hook in hooks if not self._has_succeeded(hook, record)]
        if not missing:
            return "failed" if self._failed_without_hook(record) else "ok"
        if run is not None and run.stage == PREPARE and run.name in {hook.name for hook in missing}:
            return "running"
        if next(self._to_prepare(record), None) is None:
            return "failed"
        begun = any(each.event == record.number for each in self._in_force[PREPARE])
        if not begun and len(missing) == len(hooks):
            return "none"
        finishes = self._host.settings.when_started == "finish" and record.number in self._begun
        is_too_late = record.is_started and not finishes
        return "failed" if is_too_late else "running"

    def failures(self, record: EventRecord) -> list[str]:
        """Return why each prepare hook of an event has not succeeded, and does not run; one clause each."""
        found = [f"{run.title}: {run.reason or run.state}" for run in self._failed_without_hook(record)]
        for hook in self._matching(record):
            if self._has_succeeded(hook, record):
                continue
            runs = self._runs_of(hook, record)
            if runs:
                found.append(f"{runs[-1].title}: {runs[-1].reason or runs[-1].state}")
            elif self._lacks_time(hook, record):
                left = self._seconds_left(record) or 0.0
                found.append(reasons.not_prepared(f"{PREPARE}/{hook.name}", left, hook.settings.needs))
        return found

    def is_prepared_before(self) -> bool:
        """Return True if a prepare hook of this maintenance has begun, and nothing has undone it."""
        return any(run.cause not in (Cause.REFUSED, Cause.NOT_STARTED) for run in self._in_force[PREPARE])

    def _has_succeeded(self, hook: Hook, record: EventRecord) -> bool:
        """Return True if a success of a prepare hook counts for an event, or its failure is ignored."""
        if any(run.state == OK and self._would_count(run, hook, record) for run in self._in_force[PREPARE]):
            return True
        return hook.settings.on_failure == "ignore" and self._had_last_run(hook, record)

    def _failed_without_hook(self, record: EventRecord) -> list[HookRun]:
        """Return the runs that have failed for an event of this type whose hooks are not in force any more."""
        hooks = {hook.name for hook in self._matching(record)}
        about = (record.number, record.event.event_type)
        runs = [run for run in self._in_force[PREPARE] if (run.event, run.event_type) == about]
        return [
            run
            for run in runs
            if run.state in (FAILED, TIMEOUT)
            and run.name not in hooks
            and self._host.hook_settings(run).on_failure != "ignore"
        ]

    def _would_count(self, run: HookRun, hook: Hook, record: EventRecord) -> bool:
        same = (run.stage, run.name) == (hook.stage, hook.name)
        return same and counts_for(run.event_type, record.event.event_type)

    # -- recovery

    def is_recovered(self) -> bool:
        """Return True if no recover hook is left to run, now or later."""
        return bool(self._maintenance.given_up_by) or not self.not_recovered()

    def not_recovered(self) -> list[Hook]:
        """Return the recover hooks that have not succeeded, in the order of their names."""
        return [hook for hook in self._recover_hooks() if not self._is_undone(hook)]

    def retry_at(self, hook: Hook) -> datetime | None:
        """Return when a recover hook runs again; None if it need not wait."""
        runs = self._runs_of(hook, None)
        last = runs[-1] if runs else None
        if last is None or last.ended is None or last.number <= self._maintenance.retried_after:
            return None
        if last.state in (INTERRUPTED, STOPPED) and last.attempt < MAX_ATTEMPTS:
            return None
        seconds = min(FIRST_RECOVER_PAUSE * 2.0 ** min(last.attempt - 1, 20), LONGEST_RECOVER_PAUSE)
        pause = timedelta(seconds=seconds)
        # a clock that was set back must not prolong the pause by much
        return last.ended + pause if abs(self._now - last.ended) < pause else None

    def _next_recovery(self) -> Next | None:
        if self._maintenance.given_up_by:
            return None
        for hook in self.not_recovered():
            if self.retry_at(hook) is None:
                events = self._maintenance.events
                chosen = [each for each in events if hook in self._host.matching(RECOVER, each.event.event_type)]
                return Next(hook, most_severe(chosen or events, lambda each: each.event.event_type))
            if hook.settings.on_failure == "stop":
                return None
        return None

    def _recover_hooks(self) -> list[Hook]:
        """Return the recover hooks for the types of this maintenance: of its events, now and when their hooks ran."""
        maintenance, hooks = self._maintenance, self._host.hooks.get(RECOVER, ())
        if maintenance.may_lack_events:
            return list(hooks)
        types = {run.event_type for run in maintenance.runs if run.event_type}
        types |= {record.event.event_type for record in maintenance.events}
        chosen = [hook for event_type in types for hook in self._host.matching(RECOVER, event_type)]
        # a hook without types undoes also what was done for events that only advise
        is_prepared = any(run.stage != RECOVER for run in maintenance.runs)
        return [hook for hook in hooks if hook in chosen or (is_prepared and not hook.settings.types)]

    def _is_undone(self, hook: Hook) -> bool:
        states = {run.state for run in self._runs_of(hook, None)}
        return OK in states or (hook.settings.on_failure == "ignore" and not states.isdisjoint((FAILED, TIMEOUT)))

    # -- runs and time

    def _runs_in_force(self, stage: str) -> list[HookRun]:
        """Return the runs of a stage that still count: a recover hook undoes what was prepared, and the reverse."""
        found: list[HookRun] = []
        for run in self._maintenance.runs:
            if (run.stage == RECOVER) != (stage == RECOVER):
                found.clear()
            elif run.stage == stage and run.state != LOST:
                found.append(run)
        return [run for run in found if stage == RECOVER or self._outlives_reboot(run)]

    def _outlives_reboot(self, run: HookRun) -> bool:
        if run.boot == self._host.boot or run.state == INTERRUPTED:
            return True
        return run.state == OK and self._host.hook_settings(run).persists

    def _runs_of(self, hook: Hook, record: EventRecord | None) -> list[HookRun]:
        """Return the runs of a hook that count, those of another stage than recover for this event only."""
        runs = self._in_force.get(hook.stage)
        if runs is None:
            runs = [run for run in self._maintenance.runs if run.stage == hook.stage]
        return [
            run
            for run in runs
            if run.name == hook.name and (hook.stage == RECOVER or record is None or run.event == record.number)
        ]

    def _event_of(self, run: HookRun) -> EventRecord | None:
        return next((record for record in self._maintenance.present if record.number == run.event), None)

    def _in_order(self, records: list[EventRecord]) -> list[EventRecord]:
        now = self._now
        return most_urgent_first(
            records, lambda each: Urgency(each.event.event_type, each.event.seconds_left(now), each.key)
        )

    def _matching(self, record: EventRecord) -> list[Hook]:
        return self._host.matching(PREPARE, record.event.event_type)

    def _seconds_left(self, record: EventRecord) -> float | None:
        return seconds_to_prepare(record, self._now, self._host.settings.margin)

    def _lacks_time(self, hook: Hook, record: EventRecord) -> bool:
        left = self._seconds_left(record)
        return left is not None and left < max(hook.settings.needs, min(1.0, hook.settings.timeout))
