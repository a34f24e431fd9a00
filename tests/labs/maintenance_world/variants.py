# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Daemons that break one rule each; the world finds each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from azure_scheduled_events.document import EventDocument
from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.release import Obstacle
from azure_scheduled_events.tracking import GONE_AFTER, Observation, Tracker
from hook_runner.hooks.discovery import Hook
from hook_runner.hooks.one_run import RunResult
from hook_runner.maintenance import reasons
from hook_runner.maintenance.approvals import Approvals
from hook_runner.maintenance.hook_plan import HookPlan, Host, Next
from hook_runner.maintenance.machine import Effects, Machine
from hook_runner.maintenance.open_records import OpenRecords
from hook_runner.maintenance.record import ApprovalRequest, EventRecord, HookRun, Maintenance
from hook_runner.maintenance.runs import Runs
from hook_runner.record_store import CLEAN
from hook_runner.records import CUT, OK, PREPARE, RECOVER, Cause
from maintenance_world.host import Daemon
from maintenance_world.units import MortalStore, VirtualRuns


class Variant(NamedTuple):
    """A daemon, and a life that shows that the rule matters.

    Another rule of the world or of the daemon may change the lives: `python3 -m maintenance_world PROFILE 1 400
    --variant NAME` looks for a seed again.
    """

    daemon_class: type[Daemon]
    profile: str
    seed: int


def with_classes(**classes: type) -> type[Daemon]:
    """Return a daemon with other classes, by the names of its attributes."""
    return type("VariantDaemon", (Daemon,), classes)


# -- the plan of hooks


class InputIsMostUrgent(HookPlan):
    """The input of a prepare hook is the most urgent event, also when it runs for another one."""

    def next_hook(self) -> Next | None:
        found = super().next_hook()
        waiting = self.by_urgency()
        if found is not None and found.hook.stage == PREPARE and waiting:
            return found._replace(record=waiting[0])
        return found


class FailedRunsAgain(HookPlan):
    """Each prepare hook that has not succeeded runs again."""

    def _is_needed(self, hook: Hook, record: EventRecord) -> bool:
        return not (self._has_succeeded(hook, record) or self._lacks_time(hook, record) or record.is_started)


class CutIsFinal(HookPlan):
    """A hook that NotBefore has ended does not run again."""

    def _is_needed(self, hook: Hook, record: EventRecord) -> bool:
        runs = self._runs_of(hook, record)
        return not (runs and runs[-1].state == CUT) and super()._is_needed(hook, record)


class NoMiddle(HookPlan):
    """A less urgent hook may use all of the time of a more urgent event."""

    def _gives_way(self, run: HookRun, other: EventRecord) -> bool:
        return False


class RecoverFinishes(HookPlan):
    """A recover hook ends by itself."""

    def ending(self, run: HookRun) -> Cause:
        return Cause.NONE if run.stage == RECOVER else super().ending(run)


class CountsForAll(HookPlan):
    """A success counts for more severe events, too."""

    def _would_count(self, run: HookRun, hook: Hook, record: EventRecord) -> bool:
        return (run.stage, run.name) == (hook.stage, hook.name)


class OutlivesReboot(HookPlan):
    """Each success outlives a reboot."""

    def _outlives_reboot(self, run: HookRun) -> bool:
        return True


class OutlivesRecovery(HookPlan):
    """A recover hook undoes nothing."""

    def _runs_in_force(self, stage: str) -> list[HookRun]:
        return [run for run in self._maintenance.runs if run.stage == stage]


class ListedOrNot(HookPlan):
    """Hooks begin also for an event that the last document lacks."""

    def is_listed(self, record: EventRecord) -> bool:
        return record.key in self._sightings


class StartedAgain(HookPlan):
    """The hooks of an event that has started run until they succeed."""

    def _at_start(self, record: EventRecord) -> Iterator[Hook]:
        stage = (record.stage_at_start, record.number)
        ran = {run.name for run in self._maintenance.runs if (run.stage, run.event) == stage and run.state == OK}
        hooks = self._host.matching(record.stage_at_start, record.event.event_type)
        return (hook for hook in hooks if hook.name not in ran)


class ByName(HookPlan):
    """Prepare hooks run by name, and not those of the most urgent event first."""

    def next_hook(self) -> Next | None:
        found = super().next_hook()
        if found is None or found.hook.stage != PREPARE:
            return found
        pairs = [Next(hook, record) for record in self.by_urgency() for hook in self._to_prepare(record)]
        return min(pairs, key=lambda each: each.hook.name, default=found)


class RecoversOnce(HookPlan):
    """A recover hook that has run counts as done."""

    def _is_undone(self, hook: Hook) -> bool:
        return bool(self._runs_of(hook, None))


def with_plan(plan_class: type[HookPlan]) -> type[Daemon]:
    class PlanMachine(Machine):
        def _plan(self, maintenance: Maintenance, now: datetime) -> HookPlan:
            return plan_class(self.host, maintenance, self.records.sightings, now, self.records.state.pause is not None)

    return with_classes(machine_class=PlanMachine)


# -- approvals


def overlooks(*codes: str) -> type[Daemon]:
    """Return a daemon for which an obstacle of these codes is none."""

    class Overlooking(Approvals):
        def _obstacles(self, record: EventRecord, asked: ApprovalRequest | None, now: datetime) -> list[Obstacle]:
            return [each for each in super()._obstacles(record, asked, now) if each.code not in codes]

    return with_approvals(Overlooking)


class ForgetsTaken(Approvals):
    """An approval that IMDS has taken is sent again."""

    def answered(self, key: str, error: ImdsError | None, now: datetime) -> None:
        if error is not None:
            super().answered(key, error, now)
        self._in_flight = ""


class SendsAtOnce(Approvals):
    """The approval is sent before the note is on the disk."""

    def send(self, record: EventRecord, reason: str, now: datetime) -> bool:
        super().send(record, reason, now)
        self.noted, self._in_flight = "", record.key
        return True


class LosesFailedRequests(Approvals):
    """A request for an approval that failed stays in flight."""

    def answered(self, key: str, error: ImdsError | None, now: datetime) -> None:
        if error is None:
            super().answered(key, error, now)


def with_approvals(approvals_class: type[Approvals]) -> type[Daemon]:
    class ApprovalsMachine(Machine):
        def __init__(self, host: Host, records: OpenRecords) -> None:
            super().__init__(host, records)
            self.approvals = approvals_class(host, records)

    return with_classes(machine_class=ApprovalsMachine)


# -- the machine


class HeldIsNotOwn(Machine):
    """An event that the policy holds after it was taken up is no event of the maintenance."""

    def tick(self, now: datetime, gates: Mapping[str, bool], may_begin: bool = True) -> Effects:
        for record in self.records.present:
            decision = self.approvals.decide(record, now, gates)
            if decision.hold and not record.is_started and record.requested is None:
                record.gone_at = now
        return super().tick(now, gates, may_begin)


class TrustsItsRecord(Machine):
    """The events of a record are all events."""

    def _knows_events(self, maintenance: Maintenance) -> bool:
        return True


# -- the tracker


class FirstIsEnough(Tracker):
    """The first document of a process counts like two."""

    def observe(self, document: EventDocument) -> Observation:
        found = super().observe(document)
        return found._replace(documents=found.documents + 1)


class GoneAtOnce(Tracker):
    """One document without an event is enough."""

    def observe(self, document: EventDocument) -> Observation:
        return super().observe(document._replace(sent_at=document.sent_at + GONE_AFTER))


class FailedPollIsEmpty(Daemon):
    """A failed poll counts as a document without events."""

    def poll_failed(self) -> None:
        now = float(self.world.second)
        self.runner.document_received(EventDocument(None, (), sent_at=now, sent_by=now))


# -- the units and the disk


class FreesUnitsAtOnce(VirtualRuns):
    """A unit is removed when its result is in memory, although the disk is full."""

    def collect_finished(self) -> list[tuple[int, RunResult]]:
        found = super().collect_finished()
        self.remove_collected()
        return found


class AdoptsNothing(Machine):
    """A unit that the record lacks is not taken over."""

    def __init__(self, host: Host, records: OpenRecords) -> None:
        super().__init__(host, records)
        self.runs = RecordedRuns(records, host.boot)


class RecordedRuns(Runs):
    """Only the runs of the record count."""

    def adopt(self, run: HookRun, now: datetime) -> None:
        pass


class MarksNothing(MortalStore):
    """The daemon does not note that it cannot write."""

    def _mark(self, name: str) -> None:
        if name == CLEAN:
            super()._mark(name)


VARIANTS = {
    "input": Variant(with_plan(InputIsMostUrgent), "all", 21),
    "failed": Variant(with_plan(FailedRunsAgain), "all", 19),
    "middle": Variant(with_plan(NoMiddle), "urgent", 4),
    "recover-finishes": Variant(with_plan(RecoverFinishes), "urgent", 4),
    "severity": Variant(with_plan(CountsForAll), "all", 65),
    "reboot": Variant(with_plan(OutlivesReboot), "faults", 75),
    "recovery": Variant(with_plan(OutlivesRecovery), "all", 17),
    "listed": Variant(with_plan(ListedOrNot), "backends", 4),
    "started-again": Variant(with_plan(StartedAgain), "faults", 4),
    "by-name": Variant(with_plan(ByName), "urgent", 80),
    "cut": Variant(with_plan(CutIsFinal), "all", 70387),
    "loses-requests": Variant(with_approvals(LosesFailedRequests), "all", 10),
    "recovers-once": Variant(with_plan(RecoversOnce), "all", 9),
    "others": Variant(overlooks("others_affected"), "all", 30),
    "poll-failed": Variant(overlooks("no_answer"), "faults", 376),
    "one-document": Variant(overlooks("one_document"), "kills", 3),
    "not-listed": Variant(overlooks("not_listed"), "forever", 57),
    "paused": Variant(overlooks(reasons.PAUSED), "faults", 354),
    "held": Variant(with_classes(machine_class=HeldIsNotOwn), "all", 102),
    "at-once": Variant(with_approvals(SendsAtOnce), "calm", 2),
    "trusts-record": Variant(with_classes(machine_class=TrustsItsRecord), "kills", 421),
    "first": Variant(with_classes(tracker_class=FirstIsEnough), "kills", 3),
    "forgets-taken": Variant(with_approvals(ForgetsTaken), "calm", 2),
    "gone-at-once": Variant(with_classes(tracker_class=GoneAtOnce), "calm", 1),
    "failed-poll": Variant(FailedPollIsEmpty, "faults", 5),
    "units": Variant(with_classes(runs_class=FreesUnitsAtOnce), "kills", 87),
    "adopts-nothing": Variant(with_classes(machine_class=AdoptsNothing), "kills", 3),
    "marker": Variant(with_classes(store_class=MarksNothing), "faults", 196),
}
