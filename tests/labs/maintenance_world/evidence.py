# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The evidence about one life: of effects, and not of what the machine thinks of them.

It consists of the documents that the daemon read, the hooks that systemd started and ended, the requests that arrived
at IMDS, and the commands of operators. The checks find broken invariants in it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from azure_scheduled_events.document import EventDocument, ScheduledEvent
from hook_runner.hooks.discovery import Hook
from hook_runner.maintenance.record import ApprovalRequest
from hook_runner.records import EMERGENCY, FAILED, INTERRUPTED, OK, PREPARE, RECOVER, STARTED, TIMEOUT
from maintenance_world.azure import ADVICE, OWN, TYPES, date_at, second_of
from maintenance_world.units import Unit

if TYPE_CHECKING:
    from maintenance_world.world import World

# not that of the helper: the evidence has to be independent
SEVERITY = {ADVICE: 1, "Freeze": 2, "Reboot": 3, "Redeploy": 4, "Preempt": 5, "Terminate": 5}
UNKNOWN_TYPE = "Hibernate"
assert {*SEVERITY, UNKNOWN_TYPE} == set(TYPES)
# seconds of documents that are kept
_KEPT = 90


@dataclass(frozen=True)
class Read:
    """A document that the daemon read."""

    second: int
    document: EventDocument


@dataclass(frozen=True)
class Start:
    """The start of a hook, from the unit and its input."""

    second: int
    boot: int
    stage: str
    name: str
    key: str
    event_type: str


@dataclass(frozen=True)
class Asked:
    """An operator's request that the daemon accepted, with the VMs that the documents of the last minute name."""

    request: ApprovalRequest
    vms: frozenset[str]
    event_type: str


def counts_for(done_type: str, needed_type: str) -> bool:
    """Return True if a preparation for one type counts for the other."""
    return done_type == needed_type or 0 < SEVERITY.get(needed_type, 0) <= SEVERITY.get(done_type, 0)


def matches(hook: Hook, event_type: str) -> bool:
    """Return True if a hook runs for a type."""
    types = hook.settings.types
    return event_type in types if types else event_type != ADVICE


def not_before(event: ScheduledEvent) -> float:
    """Return NotBefore as a virtual second; 0 without one."""
    return 0.0 if event.not_before is None else second_of(event.not_before)


class Evidence:
    """What happened in a life.

    Attributes:
        violations: a text for each broken invariant: second, invariant, details.
        starts: of hooks; the index is the serial number of a run.
        results: of the runs that have ended, by serial number.
        stopped: runs that the daemon has stopped.
        interrupted: runs that a reboot ended, or whose result no process had noted before it.
        forgotten: the runs before this one may not be in the records, because these were lost or not written.
        unwritten: second at which the last process began that lacks what an earlier one could not write.
        posts: second and event of each approval.
        accepted: by event, when the present process read that IMDS had taken the approval.
        asked: by event, the request of an operator.
        read: the documents of the last seconds.
        survived: the last second with a document in which the daemon was not killed.
        first_listed, first_started: by event, of all documents.
        first_status: by event, in the first document that lists this VM in it.
        shrunk: the events that a document lacked, or one of their VMs, after an earlier one listed them.
        unsure: the events that a process read first for this VM in the second in which it was killed.
        first_own: by event, the first document of the present occurrence that lists this VM in it.
        gap_at: by event, the last time at which documents of two seconds had not listed this VM in it.
    """

    def __init__(self, world: World) -> None:
        self.violations: list[str] = []
        self.starts: list[Start] = []
        self.results: dict[int, str] = {}
        self.stopped: set[int] = set()
        self.interrupted: set[int] = set()
        self.forgotten = 0
        self.is_lost = False
        self.unwritten = -1
        self.is_paused = False
        self.posts: list[tuple[int, str]] = []
        self.accepted: dict[str, int] = {}
        self.asked: dict[str, Asked] = {}
        self.read: list[Read] = []
        self.survived = -1
        self.first_listed: dict[str, int] = {}
        self.first_status: dict[str, str] = {}
        self.first_started: dict[str, int] = {}
        self.shrunk: set[str] = set()
        self.unsure: set[str] = set()
        self.first_own: dict[str, int] = {}
        self.gap_at: dict[str, int] = {}
        self._world = world
        self._was_paused = False
        self._absent_since: dict[str, int] = {}
        self._named: dict[str, set[str]] = {}
        self._last_trouble = -1

    def violate(self, text: str) -> None:
        """Note a broken invariant."""
        self._world.note(f"VIOLATION {text}")
        self.violations.append(f"{self._world.second} {text}")

    def counts(self) -> Counter[str]:
        """Return how much happened."""
        world = self._world
        return Counter(
            starts=len(self.starts),
            posts=len(self.posts),
            maintenances=world.maintenances,
            reboots=world.boot - 1,
            kills=sum("daemon: killed" in line for line in world.trace),
            in_time=sum("(e) in time" in line for line in world.trace),
        )

    # -- what happens

    def process_started(self) -> None:
        """Note that a new process knows only what is on the disk."""
        self.accepted.clear()
        self.disturbed()
        self.unsure.update(key for key, second in self.first_own.items() if second > self.survived)
        if self._world.disk.is_stale:
            self.unwritten, self.forgotten = self._world.second, len(self.starts)

    def disturbed(self, until: int | None = None) -> None:
        """Note a fault that excuses a delay."""
        self._last_trouble = max(self._last_trouble, self._world.second if until is None else until)

    def record_lost(self) -> None:
        """Note that the records do not say any more what was done before."""
        self.forgotten, self.is_lost = len(self.starts), True
        self.disturbed()

    def commanded(self, what: str) -> None:
        """Note the command of an operator."""
        self.disturbed()
        self._was_paused = self._was_paused or what == "pause"
        self.is_paused = what == "pause" or (self.is_paused and what != "resume")

    def requested(self, key: str, request: ApprovalRequest) -> None:
        """Note that the daemon accepted a request for an approval."""
        event = self.last_event(key)
        if event is not None:
            self.asked[key] = Asked(request, self.names(key, self.read), event.event_type)

    def documented(self, document: EventDocument) -> None:
        """Note a document that the daemon reads."""
        second = self._world.second
        self.read = [*(each for each in self.read if each.second > second - _KEPT), Read(second, document)]
        listed = {event.key: event.resources for event in document.events}
        self.shrunk.update(key for key, vms in self._named.items() if not vms.issubset(listed.get(key, ())))
        for event in document.events:
            self._named.setdefault(event.key, set()).update(event.resources)
            self.first_listed.setdefault(event.key, second)
            if OWN in event.resources:
                self.first_status.setdefault(event.key, event.status)
            if event.status == "Started":
                self.first_started.setdefault(event.key, second)
        own = {event.key for event in document.events if OWN in event.resources or event.key in document.doubtful}
        for key in own:
            self._absent_since.pop(key, None)
            if key not in self.first_own or self.gap_at.get(key, -1) > self.first_own[key]:
                self.first_own[key] = second
        for key in self.first_own:
            if key not in own and second - self._absent_since.setdefault(key, second) >= 2:
                self.gap_at[key] = second

    def posted(self, key: str) -> None:
        """Note an approval that arrives at IMDS."""
        self._world.note(f"POST {key}")
        self.posts.append((self._world.second, key))

    def answered(self, key: str) -> None:
        """Note that the daemon has read that IMDS took an approval."""
        self.accepted[key] = self._world.second

    def started(self, unit: Unit, start: Start) -> None:
        """Note the start of a hook; the unit gets its serial number."""
        self._world.note(f"hook: {unit.title} {unit.number} for {start.key or 'no event'} {start.event_type} starts")
        unit.serial = len(self.starts)
        self.starts.append(start)

    def ended(self, unit: Unit, result: str) -> None:
        """Note the result of a hook run."""
        self.results[unit.serial] = result
        self._world.note(f"hook: {unit.title} for {unit.key} ends: {result}")

    # -- what follows

    @property
    def is_troubled(self) -> bool:
        """Whether a fault excuses a delay now."""
        world = self._world
        is_failing = world.plan.backends.is_failing(world.second - 1)
        has_jumped = world.shift_at(world.second) != 0
        is_paused = self.is_paused or (self._was_paused and world.disk.is_paused)
        return is_failing or self._last_trouble >= world.second - 1 or is_paused or has_jumped

    @property
    def last_events(self) -> tuple[ScheduledEvent, ...]:
        """The events of the last document."""
        return self.read[-1].document.events if self.read else ()

    def last_event(self, key: str) -> ScheduledEvent | None:
        """Return an event of the last document."""
        return next((event for event in self.last_events if event.key == key), None)

    def names(self, key: str, reads: list[Read]) -> frozenset[str]:
        """Return the VMs that documents name for an event."""
        events = [event for read in reads for event in read.document.events if event.key == key]
        return frozenset(vm for event in events for vm in event.resources)

    def hooks(self, stage: str, event_type: str) -> list[Hook]:
        """Return the hooks of a stage for a type, by name."""
        return [hook for hook in self._world.plan.hooks[stage] if matches(hook, event_type)]

    def is_own(self, event: ScheduledEvent, second: int) -> bool:
        """Return True if the daemon has to take up an event that the document of a second lists."""
        if OWN not in event.resources or self._is_held(event, second):
            return False
        if event.event_type != ADVICE:
            return True
        return any(self.hooks(stage, ADVICE) for stage in (PREPARE, EMERGENCY, STARTED))

    @property
    def since_recovery(self) -> range:
        """The serial numbers of the runs after the last recover hook."""
        recovered = [serial for serial, each in enumerate(self.starts) if each.stage == RECOVER]
        return range(recovered[-1] + 1 if recovered else 0, len(self.starts))

    def prepared_by(self, hook: Hook, key: str, event_type: str, is_strict: bool = False) -> bool:
        """Return True if a prepare hook has succeeded for an event, and nothing has undone it since.

        An ignored interruption without a repetition counts; with `is_strict` no failure, and no run that may be lost.
        """
        for serial in self.since_recovery:
            start, result = self.starts[serial], self.results.get(serial)
            if (start.stage, start.name) != (PREPARE, hook.name) or (is_strict and serial < self.forgotten):
                continue
            is_in_force = start.boot == self._world.boot or hook.settings.persists
            if result == OK and is_in_force and counts_for(start.event_type, event_type):
                return True
            if hook.settings.on_failure != "ignore" or start.key != key:
                continue
            is_repeated = hook.settings.rerun or (is_strict and start.second <= self.gap_at.get(key, -1))
            if (result == INTERRUPTED and not is_repeated) or (result in (FAILED, TIMEOUT) and not is_strict):
                return True
        return False

    def is_prepared(self, key: str, event_type: str, is_strict: bool = False) -> bool:
        """Return True if each prepare hook for an event has succeeded, as `prepared_by` has it."""
        return all(
            self.prepared_by(hook, key, event_type, is_strict) or (not is_strict and self._may_be_ignored(hook))
            for hook in self.hooks(PREPARE, event_type)
        )

    def _may_be_ignored(self, hook: Hook) -> bool:
        """Return True if a hook may have failed without a run, which is ignored."""
        # the records may have its start, which the kill of the daemon prevented
        is_interrupted = not hook.settings.rerun and (self._world.boot > 1 or self.unwritten >= 0)
        return hook.settings.on_failure == "ignore" and (hook.problem is not None or is_interrupted)

    def _is_held(self, event: ScheduledEvent, second: int) -> bool:
        most = self._world.plan.rule.hold_above
        if most is None or event.status != "Scheduled" or event.not_before is None:
            return False
        now = date_at(second + self._world.shift_at(second))
        return (event.not_before - now).total_seconds() > most
