# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The state machine of the hook runner.

In come documents, results of hooks, commands of operators, and the time. Out come writes, the end and the start of
hooks, approvals, and lines of the log. It reads no file and no clock. The host is prepared or not: there is one
maintenance at a time, and what counts follows from the order of its hook runs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Mapping, NamedTuple

from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.event_types import advises
from azure_scheduled_events.identity import vm_key
from azure_scheduled_events.policy import NEVER
from azure_scheduled_events.printable import printable
from azure_scheduled_events.release import PREPARATION_FAILED, STARTED, Obstacle
from azure_scheduled_events.timestamps import as_utc_text
from azure_scheduled_events.tracking import GONE_AFTER, Observation
from hook_runner.hooks.one_run import RunResult
from hook_runner.maintenance import reasons
from hook_runner.maintenance.approvals import Answer, Approvals
from hook_runner.maintenance.events import Events
from hook_runner.maintenance.hook_plan import HookPlan, Host
from hook_runner.maintenance.open_records import OpenRecords
from hook_runner.maintenance.record import NO_EVENT, EventRecord, HookRun, Maintenance, Pause
from hook_runner.maintenance.runs import Runs
from hook_runner.records import ACCEPTED, Cause

# seconds between two ticks while the passing of time may change a decision
TICK_INTERVAL = 1.0
# phases of a maintenance
PREPARING, PREPARED, IN_PROGRESS, RECOVERING = PHASES = ("preparing", "prepared", "started", "recovering")


class End(NamedTuple):
    """A running hook gets TERM now, unless it has got it, and KILL after these seconds, unless that is due sooner."""

    run: HookRun
    kill_after: float


class Effects(NamedTuple):
    """The actions that are due, to be taken in this order.

    After any of them, except a write that failed and the end of a hook, `tick` is called again.

    Attributes:
        write: whether the records are to be written; `records.written` takes the result. The others follow either way.
        end: the hook that has to end, until it has ended.
        start: the hook that begins; its unit is named by the number of the run, and `runs` takes its result.
        approve: the event whose approval is sent; `approvals.answered` or `approvals.withheld` takes the result.
    """

    write: bool = False
    end: End | None = None
    start: HookRun | None = None
    approve: ScheduledEvent | None = None


class Machine:
    """Decides what the hook runner does.

    Attributes:
        runs: takes the results of hook runs, and what this process finds of them.
        approvals: takes the requests of operators, and the answers of IMDS.
    """

    def __init__(self, host: Host, records: OpenRecords) -> None:
        self.host = host
        self.records = records
        self.runs = Runs(self.records, host.boot)
        self._events = Events(host, self.records)
        self.approvals = Approvals(host, records)
        # when the first readable document was requested, and whether such documents would show that an event is gone
        self._readable_since: float | None = None
        self._spans_absence = False
        self._reasons: dict[str, Obstacle] = {}
        # what prevented the approval in the last tick; `_reasons` may show a hook that runs instead
        self._obstacles: dict[str, Obstacle] = {}

    # -- the cycle

    def tick(self, now: datetime, gates: Mapping[str, bool], may_begin: bool = True) -> Effects:
        """Decide what is due; call it after each input, and once a second while there are events.

        1. A pause whose time has passed ends.
        2. An event that affects this VM is taken up, unless the policy holds it. The first one opens the maintenance.
        3. The hook that runs is ended if its event is over, another one has started, or a more urgent one waits.
        4. If none runs, the next one begins: for events that have started, else to prepare, else to recover.
        5. A maintenance without own events and without a recover hook left to run is closed.
        6. It is noted of each own event whether this VM is prepared for it.
        7. An event is approved if policy or operator, leader, release rule and disk agree: this is noted first, and
           sent by the next tick, when the note is on the disk.
        8. Whatever has changed is written.

        1, 2, 6 and 7 wait for the first document; 3 to 5 also while the events of the maintenance may not all be known.

        Args:
            now: aware time by the server's clock.
            gates: whether each gate of the policy is open, by name.
            may_begin: whether a hook may begin: there is room for its unit, and systemd does not end the daemon.
        """
        end = start = approve = None
        if self.records.observation is not None:
            self._end_pause(now)
            self._take_up(now, gates)
        maintenance = self.records.maintenance
        if maintenance is not None and self._knows_events(maintenance):
            plan = self._plan(maintenance, now)
            end = self._end_hook(maintenance, plan, now)
            start = self._begin_hook(maintenance, plan, now) if may_begin else None
            is_over = maintenance.open_run is None and not maintenance.present
            if is_over and self._plan(maintenance, now).is_recovered():
                self.records.close(maintenance, now)
        if self.records.observation is not None:
            self._note_prepared(now)
            approve = self._approve(now, gates)
        return Effects(self.records.has_changed, end, start, approve)

    def _end_pause(self, now: datetime) -> None:
        pause = self.records.state.pause
        if pause is not None and pause.until is not None and now >= pause.until:
            self.records.state.pause, self.records.has_changed = None, True
            text = f"the pause since {as_utc_text(pause.since)} is over: its time has passed"
            self.records.log("resumed", text, level="notice")

    def _take_up(self, now: datetime, gates: Mapping[str, bool]) -> None:
        """Take up the events that the last document lists for this VM.

        1. One that has started, or that an operator asked to approve, is taken up in any case.
        2. One that only advises is taken up if a hook or a rule that approves names its type.
        3. Any other event is taken up unless the policy holds it.
        """
        for record in self._events.waiting:
            if vm_key(self.host.own_name) not in self.records.sightings[record.key].named:
                continue
            event_type = record.event.event_type
            decision = self.approvals.decide(record, now, gates)
            if record.requested is None:
                if advises(event_type) and decision.approval == NEVER and not self.host.has_hook_for(event_type):
                    continue
                if decision.hold and not record.is_started:
                    self._explain(record, reasons.held(decision.reason))
                    continue
            self._events.take_up(record, now)

    def _end_hook(self, maintenance: Maintenance, plan: HookPlan, now: datetime) -> End | None:
        """Note why the run has to end, and end it."""
        run = maintenance.open_run
        if run is None:
            return None
        if run.ending is Cause.NONE:
            run.ending = plan.ending(run)
            if run.ending is Cause.NONE:
                return None
            self.records.note(now, "hook-ending", f"{run.title}: {reasons.ENDINGS[run.ending]}")
        return End(run, plan.kill_after(run))

    def _begin_hook(self, maintenance: Maintenance, plan: HookPlan, now: datetime) -> HookRun | None:
        found = plan.next_hook() if maintenance.open_run is None else None
        if found is None:
            return None
        run = plan.begin(found, self.records.next_number())
        self.runs.begun(maintenance, run)
        if found.hook.problem is not None:  # other users could change the program
            self.runs.ended(run.number, RunResult(None, cause=Cause.REFUSED, error=found.hook.problem), now)
            return None
        self.records.note(now, "hook-started", f"{run.title}, until {as_utc_text(run.limit)}", found.record)
        return run

    def _approve(self, now: datetime, gates: Mapping[str, bool]) -> ScheduledEvent | None:
        """Note the first approval that is due; return its event when the note is on the disk, or need not be."""
        for record in self._approvable():
            decision = self.approvals.decide(record, now, gates)
            obstacle = self.approvals.obstacle(record, decision, now)
            if obstacle is not None:
                before, self._obstacles[record.key] = self._obstacles.get(record.key), obstacle
                if obstacle == reasons.DRY_RUN and before != obstacle:
                    text = f"it would be approved now: {decision.reason}"
                    self.records.note(now, "dry-run", text, record, "notice")
                maintenance = self.records.maintenance
                if obstacle.code == PREPARATION_FAILED.code and maintenance is not None:
                    obstacle = reasons.with_failures(obstacle, self._plan(maintenance, now).failures(record))
                self._explain(record, self._first_reason(record, obstacle))
                if self.approvals.noted == record.key:
                    self.approvals.take_back(record)
                continue
            is_sent = self.approvals.send(record, decision, now)
            return self.records.sightings[record.key].event if is_sent else None
        return None

    # -- documents

    def observe(self, observation: Observation, now: datetime) -> None:
        """Take in the next good document of the tracker, which began with the events of the records."""
        is_first = self.records.observation is None
        self.records.observation = observation
        self._note_span(observation.document)
        self.approvals.document_received()
        if is_first or observation.changes:
            self._compare(now)

    def _compare(self, now: datetime) -> None:
        for key in self._events.compare(now):
            self._reasons.pop(key, None)
            self._obstacles.pop(key, None)
            self.approvals.forget(key)

    @property
    def awaits_document(self) -> bool:
        """Whether the next document matters even if it is unchanged."""
        seen, maintenance = self.records.observation, self.records.maintenance
        if seen is None or seen.doubt or not self.records.is_confirmed or not self.host.own_name:
            return True
        return self.approvals.awaits_document or (maintenance is not None and not self._knows_events(maintenance))

    def due_in(self, now: datetime) -> float | None:
        """Return the seconds until time alone may change what `tick` returns; None if it does not.

        1. While a hook runs, an event waits for a policy, an operator or its preparation, or a write has failed, it is
           TICK_INTERVAL.
        2. A recovery waits for the next attempt of its hooks, a Scheduled event for NotBefore, a pause for its end.
        """
        maintenance, pause = self.records.maintenance, self.records.state.pause
        undecided = [record for record in self.records.present if not record.is_started and record.approval != ACCEPTED]
        asked = any(record.requested for record in (*undecided, *self.records.state.observed.values()))
        may_approve = self.host.settings.policy.may_approve()
        is_pending = any(may_approve or record.prepared in ("none", "running") for record in undecided)
        has_run = self.records.open_run is not None
        if self._events.waiting or asked or is_pending or has_run or not self.records.is_durable:
            return TICK_INTERVAL
        times = [] if pause is None or pause.until is None else [pause.until]
        if maintenance is not None and not maintenance.present:
            plan = self._plan(maintenance, now)
            times += [plan.retry_at(hook) or now for hook in plan.not_recovered()]
        not_before = [record.event.not_before for record in self.records.present]
        times += [time for time in not_before if time is not None and time > now]
        return min((max(TICK_INTERVAL, (time - now).total_seconds()) for time in times), default=None)

    def _knows_events(self, maintenance: Maintenance) -> bool:
        """Return True if hooks may begin and end: the record has all events, or enough documents were read."""
        if not self.host.own_name:
            return False
        if not maintenance.may_lack_events:
            return self.records.observation is not None or not maintenance.present
        return self.records.observation is not None and (bool(maintenance.present) or self._spans_absence)

    def _note_span(self, document: EventDocument) -> None:
        """Note whether the readable documents of this process span the time after which an event is gone."""
        if document.doubtful or not document.complete:
            return  # an entry that cannot be read, or has no readable VMs, may be an event of this VM
        if self._readable_since is None:
            self._readable_since = document.sent_by
        self._spans_absence = document.sent_at - self._readable_since >= GONE_AFTER

    # -- commands of operators

    def pause(self, by: str, until: datetime | None, reason: str, now: datetime) -> Answer:
        """Begin a pause, which replaces an earlier one."""
        if until is not None and until <= now:
            return Answer(False, f"{as_utc_text(until)} has passed; nothing is paused")
        pause = Pause(now, until, printable(by), printable(reason))
        self.records.state.pause, self.records.has_changed = pause, True
        text = f"{pause}; no prepare hook begins, and nothing is approved"
        self.records.log("paused", text, level="warning")
        return Answer(True, text)

    def resume(self, by: str) -> Answer:
        """End the pause."""
        if self.records.state.pause is None:
            return Answer(True, "the daemon is not paused")
        self.records.state.pause, self.records.has_changed = None, True
        self.records.log("resumed", f"by {printable(by)}", level="notice")
        return Answer(True, "resumed")

    def recover(self, by: str, give_up: bool, now: datetime) -> Answer:
        """Repeat the recover hooks that failed at once, or end the recovery."""
        maintenance = self.records.maintenance
        if maintenance is None:
            return Answer(False, "there is no maintenance; nothing is to be recovered")
        if maintenance.present or not self._knows_events(maintenance):
            return Answer(False, "an event is not over; the recovery begins by itself when all are")
        if maintenance.open_run is not None:
            return Answer(False, "a hook runs now; try again when it has ended")
        if give_up:
            maintenance.given_up_by = printable(by)
            self.records.note(now, "given-up", f"{printable(by)} gives the recovery up", level="error")
            return Answer(True, "the recovery is given up; the effects of the prepare hooks may remain")
        maintenance.retried_after = maintenance.last_number
        self.records.note(now, "recovery-asked", f"by {printable(by)}", level="notice")
        return Answer(True, "the recovery is tried again now")

    def reconfigure(self, host: Host, now: datetime) -> None:
        """Use another configuration, or the name of this VM, from now on; a hook that runs goes on."""
        self.host = self._events.host = self.approvals.host = host
        if self.records.observation is not None:
            self._compare(now)

    # -- what status shows

    @property
    def phase(self) -> str:
        """Return the phase of the open maintenance: "preparing", "prepared", "started" or "recovering"."""
        present = self.records.present
        if not present:
            return RECOVERING
        scheduled = [record for record in present if not record.is_started]
        if any(record.prepared != "ok" for record in scheduled):
            return PREPARING
        return IN_PROGRESS if len(scheduled) < len(present) else PREPARED

    def prepared(self, record: EventRecord, now: datetime) -> str:
        """Return "none", "running", "ok" or "failed": whether this VM is prepared for an event."""
        maintenance = self.records.maintenance
        return "none" if maintenance is None or not record.number else self._plan(maintenance, now).prepared(record)

    def reason(self, record: EventRecord) -> Obstacle | None:
        """Return why an event is not approved, or why the daemon waits."""
        known = self._reasons.get(record.key)
        is_of_others = record.number == NO_EVENT and not self.host.is_affected_by(record.event)
        return reasons.OTHER_VMS if known is None and is_of_others else known

    def _plan(self, maintenance: Maintenance, now: datetime) -> HookPlan:
        return HookPlan(self.host, maintenance, self.records.sightings, now, self.records.state.pause is not None)

    def _approvable(self) -> list[EventRecord]:
        """Return the events that may be approved: own ones by any rule, others for an operator."""
        observed = self.records.state.observed.values()
        return [*self.records.present, *(record for record in observed if record.requested is not None)]

    def _note_prepared(self, now: datetime) -> None:
        maintenance = self.records.maintenance
        if maintenance is None:
            return
        plan = self._plan(maintenance, now)
        for record in maintenance.present:
            prepared = plan.prepared(record)
            if record.prepared == prepared:
                continue
            record.prepared, self.records.has_changed = prepared, True
            if prepared in ("ok", "failed"):
                text = f"{prepared}: {'; '.join(plan.failures(record))}" if prepared == "failed" else prepared
                self.records.note(now, "prepared", text, record, "info" if prepared == "ok" else "warning")

    def _first_reason(self, record: EventRecord, obstacle: Obstacle) -> Obstacle:
        """Return why nothing happens to an event now: the state of the event, a hook, or else the obstacle."""
        if record.is_started:
            return STARTED
        if not self.records.sightings[record.key].listed:
            return reasons.NOT_LISTED
        if self.records.state.pause is not None:
            return reasons.paused(str(self.records.state.pause))
        run = self.records.open_run
        return reasons.hook_runs(run.title) if run is not None and record.prepared == "running" else obstacle

    def _explain(self, record: EventRecord, reason: Obstacle) -> None:
        """Note why nothing happens; the log has a line when the code changes."""
        known = self._reasons.get(record.key)
        self._reasons[record.key] = reason
        if known is None or known.code != reason.code:
            self.records.log("waits", reason.text, record)
