# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The invariants of hooks: when one begins (d, f, g, h, j, s), and when one has to begin (e, p, s)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from azure_scheduled_events.document import ScheduledEvent
from hook_runner.hooks.discovery import Hook
from hook_runner.records import EMERGENCY, INTERRUPTED, OK, PREPARE, RECOVER, STARTED
from maintenance_world.azure import OWN
from maintenance_world.evidence import SEVERITY, Evidence, Start, counts_for, not_before
from maintenance_world.plan import ACTIVE

if TYPE_CHECKING:
    from maintenance_world.world import World

# seconds after which a hook has to begin that nothing prevents
_BEGINS_WITHIN = 5
# runs of a hook for one event, as docs/hook-runner.md has it
_MOST_RUNS = 3
_STARTS = (STARTED, EMERGENCY)


class HookChecks:
    """Checks each start of a hook, and that those begin that nothing prevents."""

    def __init__(self, world: World, seen: Evidence) -> None:
        self._world, self._seen = world, seen
        # by event: when a Preempt was listed first, and its NotBefore
        self._urgent: dict[str, tuple[int, float]] = {}
        self._idle_since: int | None = None
        self._start_idle_since: dict[str, int] = {}

    def check_start(self, start: Start) -> None:
        """Check a hook that begins now."""
        for unit in self._world.units.running():
            self._seen.violate(f"(h) {start.stage}/{start.name} starts while {unit.title} runs")
        if start.stage == RECOVER:
            self._check_recovery(start)
            return
        self._check_listed(start)
        if start.stage == PREPARE:
            self._check_need(start)
            self._check_order(start)
        else:
            self._check_once(start)
            self._check_stage(start)

    def check_second(self, own: list[ScheduledEvent]) -> None:
        """Check the hooks that have to begin for the own events of the last document."""
        self._check_urgent(own)
        self._check_preparation_begins(own)
        self._check_start_begins(own)

    def forget(self) -> None:
        """Note a second without a document."""
        self._urgent.clear()
        self._start_idle_since.clear()
        self._idle_since = None

    # -- a hook begins

    def _check_recovery(self, start: Start) -> None:
        """(d) No recent document lists an own event."""
        seen, second = self._seen, self._world.second
        recent = [read for read in seen.read if read.second >= second - 2] + seen.read[-2:]
        for read in recent:
            own = [event.key for event in read.document.events if seen.is_own(event, read.second)]
            if own and read.second <= seen.survived:
                seen.violate(f"(d) recover/{start.name} starts, and the document of {read.second} lists {own}")
                return

    def _check_listed(self, start: Start) -> None:
        """(g) The last document lists the event for this VM."""
        seen = self._seen
        event = seen.last_event(start.key)
        is_readable = bool(seen.read) and start.key not in seen.read[-1].document.doubtful
        if event is None or (is_readable and OWN not in event.resources):
            seen.violate(f"(g) {start.stage}/{start.name} starts, and the last document does not list {start.key}")

    def _check_need(self, start: Start) -> None:
        """(f) No success of the hook counts for the event."""
        seen = self._seen
        hook = next(each for each in self._world.plan.hooks[PREPARE] if each.name == start.name)
        for serial in seen.since_recovery:
            earlier = seen.starts[serial]
            if serial < seen.forgotten or (earlier.stage, earlier.name) != (PREPARE, start.name):
                continue
            is_in_force = hook.settings.persists or earlier.boot == start.boot
            if seen.results.get(serial) == OK and is_in_force and counts_for(earlier.event_type, start.event_type):
                seen.violate(f"(f) prepare/{start.name} runs again without need")
                return

    def _check_order(self, start: Start) -> None:
        """(e) No event that is more severe and starts earlier waits for a prepare hook."""
        seen = self._seen
        event = seen.last_event(start.key)
        if event is None or seen.is_troubled:
            return
        for other in seen.last_events:
            is_worse = SEVERITY.get(other.event_type, 0) > SEVERITY.get(event.event_type, 9)
            is_earlier = self._world.second < not_before(other) <= not_before(event)
            is_waiting = is_worse and is_earlier and seen.is_own(other, self._world.second)
            if is_waiting and self._to_begin(other) is not None:
                seen.violate(f"(e) prepare/{start.name} starts for {start.key}, and {other.key} is more urgent")

    def _check_once(self, start: Start) -> None:
        """(j) Each earlier run of the hook for this occurrence of the event was interrupted."""
        seen = self._seen
        runs = [
            serial
            for serial in range(seen.forgotten, len(seen.starts))
            if (seen.starts[serial].stage, seen.starts[serial].name) == (start.stage, start.name)
            and seen.starts[serial].key == start.key
            and seen.gap_at.get(start.key, -1) < seen.starts[serial].second
        ]
        if len(runs) >= _MOST_RUNS or not seen.interrupted.issuperset(runs):
            seen.violate(f"(j) {start.stage}/{start.name} runs again for {start.key}")

    def _check_stage(self, start: Start) -> None:
        """(s) Emergency hooks run for an event that came as Started when nothing was prepared, else started hooks."""
        seen, key = self._seen, start.key
        if key in seen.gap_at or seen.is_lost or key not in seen.first_started:
            return
        if key in seen.unsure or seen.first_own[key] <= seen.unwritten:
            return  # this process may not know how it was listed first
        prepared = [seen.starts[serial] for serial in seen.since_recovery if seen.starts[serial].stage == PREPARE]
        before = [each for each in prepared if seen.unwritten < each.second < seen.first_started[key]]
        came_started = seen.first_status.get(key) == "Started"
        if start.stage == EMERGENCY and (not came_started or any(each.boot == start.boot for each in before)):
            seen.violate(f"(s) emergency/{start.name} runs for {key}, which had a notice or a preparation")
        if start.stage == STARTED and came_started and not prepared:
            seen.violate(f"(s) started/{start.name} runs for {key}, which came without notice")

    # -- a hook has to begin

    def _check_urgent(self, own: list[ScheduledEvent]) -> None:
        """(e) A Preempt has a prepare hook within half of its time, if nothing else went wrong."""
        seen, world = self._seen, self._world
        listed = {event.key: event for event in own if event.status == "Scheduled" and event.event_type == "Preempt"}
        prepared = [each for each in seen.starts if each.stage == PREPARE and SEVERITY.get(each.event_type) == 5]
        for key, (began, start) in list(self._urgent.items()):
            event = listed.get(key)
            if seen.is_troubled or event is None or not_before(event) != start:
                del self._urgent[key]
            elif any(each.second >= began for each in prepared):
                del self._urgent[key]
                world.note("(e) in time")
            elif world.second > began + (start - began) / 2 + 1:
                seen.violate(f"(e) {key} is listed since {began}, and no prepare hook has begun")
                del self._urgent[key]
        if not seen.is_troubled and world.second < ACTIVE:
            self._urgent.update(
                {key: (world.second, not_before(event)) for key, event in listed.items() if self._has_to_hurry(event)}
            )

    def _has_to_hurry(self, event: ScheduledEvent) -> bool:
        """Return True if a Preempt is new, its first hook fits into half of its time, and no such hook runs."""
        seen, key = self._seen, event.key
        left = not_before(event) - self._world.second
        missing = [hook for hook in seen.hooks(PREPARE, "Preempt") if not seen.prepared_by(hook, key, "Preempt")]
        fits = bool(missing) and missing[0].problem is None and missing[0].settings.needs <= left / 2 - 6
        is_busy = any(SEVERITY.get(unit.event_type) == 5 for unit in self._world.units.running())
        is_new = seen.first_own.get(key) == self._world.second and key not in seen.first_started
        return is_new and left >= 20 and fits and not is_busy

    def _check_preparation_begins(self, own: list[ScheduledEvent]) -> None:
        """(p) A prepare hook that is to run begins, if no hook runs."""
        seen, world = self._seen, self._world
        is_checked = not seen.is_troubled and not world.units.running()
        hooks = [self._to_begin(event) for event in own] if is_checked else []
        waiting = next((hook for hook in hooks if hook is not None), None)
        if waiting is None:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = world.second
        elif world.second - self._idle_since > _BEGINS_WITHIN:
            seen.violate(f"(p) no hook runs since {self._idle_since}, and prepare/{waiting.name} is to run")

    def _to_begin(self, event: ScheduledEvent) -> Hook | None:
        """Return a prepare hook that has to run for an event, as far as the evidence shows it."""
        seen, second = self._seen, self._world.second
        if event.status != "Scheduled" or event.key in seen.first_started:
            return None
        types = {
            read.second: each.event_type for read in seen.read for each in read.document.events if each.key == event.key
        }
        is_lacked = any(read.second > second - _BEGINS_WITHIN and read.second not in types for read in seen.read)
        may_keep_type = event.key in seen.shrunk and {*types.values()} != {event.event_type}
        if is_lacked or may_keep_type:
            return None  # an event that came back, or a VM of it, keeps a more severe type for a minute
        left = not_before(event) - second
        seconds = left - self._world.plan.settings.margin if left > 0 else 30.0
        for hook in seen.hooks(PREPARE, event.event_type):
            if seen.prepared_by(hook, event.key, event.event_type):
                is_known = seen.prepared_by(hook, event.key, event.event_type, is_strict=True)
                if hook.settings.on_failure == "stop" and not is_known:
                    return None  # the hook may have run again, and failed
                continue
            has_time = seconds > max(hook.settings.needs, 1.0) + _BEGINS_WITHIN
            if hook.problem is None and has_time and self._is_to_run(hook, event.key):
                return hook
            if hook.settings.on_failure == "stop":
                return None
        return None

    def _is_to_run(self, hook: Hook, key: str) -> bool:
        """Return True if a hook that does not count has had no run, the daemon ended it, or the type has changed."""
        seen = self._seen
        wanted = (PREPARE, hook.name, key)
        runs = [
            serial
            for serial in seen.since_recovery
            if (seen.starts[serial].stage, seen.starts[serial].name, seen.starts[serial].key) == wanted
        ]
        if not runs:
            # the records may have its start, which the kill of the daemon prevented
            return hook.settings.rerun or (self._world.boot == 1 and seen.unwritten < 0)
        result = seen.results.get(runs[-1])
        # without the knowledge of a process that could not write, the run counts as interrupted
        is_repeated = hook.settings.rerun or runs[-1] >= seen.forgotten
        was_stopped = runs[-1] in seen.stopped and result != INTERRUPTED and is_repeated
        return len(runs) < _MOST_RUNS and (was_stopped or result == OK)

    def _check_start_begins(self, own: list[ScheduledEvent]) -> None:
        """(s) The hooks for the start of an event begin, if no hook runs."""
        seen, world = self._seen, self._world
        is_checked = not seen.is_troubled and not seen.is_lost and not world.units.running()
        due = {event.key for event in own if self._start_is_due(event)} if is_checked else set()
        self._start_idle_since = {key: self._start_idle_since.get(key, world.second) for key in due}
        for key, since in self._start_idle_since.items():
            if world.second - since > _BEGINS_WITHIN:
                seen.violate(f"(s) {key} has started, and none of its hooks runs")

    def _start_is_due(self, event: ScheduledEvent) -> bool:
        """Return True if an event is Started, and hooks of both stages exist of which none has run for it."""
        hooks = [self._seen.hooks(stage, event.event_type) for stage in _STARTS]
        has_run = any(each.key == event.key and each.stage in _STARTS for each in self._seen.starts)
        if event.status != "Started" or has_run or not all(hooks):
            return False
        return all(hook.problem is None for some in hooks for hook in some)
