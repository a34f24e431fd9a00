# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The event state machine.

Input: documents, finished hook runs and manual requests. Output: hook runs and approvals. It neither
polls nor waits: the daemon hands in each document and calls `tick`. Its state is in the records;
therefore it continues from the stored ones after a restart.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Callable

from azure_scheduled_events.document import EventDocument, ScheduledEvent, escape_surrogates
from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.policy import NEVER, Decision
from hook_runner.clock import ServerClock
from hook_runner.config.settings import Settings
from hook_runner.hooks.runs import HookRuns
from hook_runner.lifecycle.approvals import Approver, ManualAnswer, ManualRequest
from hook_runner.lifecycle.event_tracker import EventTracker
from hook_runner.lifecycle.identification import Identification
from hook_runner.lifecycle.pause import Pausing
from hook_runner.lifecycle.runtime import Runtime
from hook_runner.lifecycle.stage_plan import (
    NEVER as NEVER_AGAIN,
)
from hook_runner.lifecycle.stage_plan import (
    Hooks,
    by_urgency,
    hooks_for,
    is_late,
    not_recovered,
    retry_at,
    stage_state,
)
from hook_runner.lifecycle.stage_runner import StageRunner
from hook_runner.lifecycle.timeline import Timeline, is_stored
from hook_runner.record_store import RecordStore
from hook_runner.records import (
    ACCEPTED,
    EMERGENCY,
    OK,
    PREPARE,
    RECOVER,
    SKIPPED,
    STARTED,
    WATCHED,
    Cause,
    EventRecord,
    HookRun,
)

log = logging.getLogger(__name__)

# seconds between two evaluations of the policy
WHILE_UNDECIDED = 1.0
# keyword in the timeline: an operator ended a recovery that did not succeed
GIVEN_UP = "given-up"


class Engine:
    """Decides what the daemon does about each event.

    The store keeps the records of events that affect this VM or that were approved here. `send_approval`
    hands (record, event) to the poller, and the answer arrives by `approval_answered`. `step_ended` is called
    with each hook run that has ended, for metrics. `boot` identifies this boot of the host.
    """

    def __init__(
        self,
        settings: Settings,
        hooks: Hooks,
        store: RecordStore,
        runs: HookRuns,
        clock: ServerClock,
        send_approval: Callable[[EventRecord, ScheduledEvent], None],
        step_ended: Callable[[EventRecord, HookRun], None] = lambda record, step: None,
        boot: str = "",
    ) -> None:
        self.runtime = Runtime(settings, hooks)
        self._store = store
        self._runs = runs
        self._clock = clock
        self.identification = Identification(self.runtime, store, boot)
        self._timeline = Timeline(store, clock)
        add_entry, is_durable = self._timeline.add, store.write
        self.stage_runner = StageRunner(self.runtime, runs, clock, store, self._timeline, step_ended, boot)
        self.pausing = Pausing(store, clock)
        self.approver = Approver(self.runtime, clock, send_approval, is_durable, add_entry, self.pausing)
        self._tracker = EventTracker(self.runtime, store, clock, self._timeline, self.approver, self.stage_runner)
        self._has_document = False
        # whether an event, or this VM's name, was found after the last document was compared
        self._is_behind = False
        for record in store.open_records():
            self.stage_runner.adopt_runs(record)
        if self._runs.find_lost({step.id for record in store.open_records() for step in record.steps}):
            store.add_lost("hooks have run that no record has")
        self._tracker.records.extend(store.open_records())
        if settings.resource_name:
            self.name_resolved(settings.resource_name)

    @property
    def records(self) -> list[EventRecord]:
        """The events that are listed, or whose recovery is not finished."""
        return self._tracker.records

    @property
    def own_name(self) -> str | None:
        """This VM's resource name, or None while it is unknown."""
        return self.runtime.own_name

    def reconfigure(self, settings: Settings, hooks: Hooks) -> None:
        """Use other settings and hooks from now on; hooks that run go on."""
        self.runtime.settings, self.runtime.hooks = settings, hooks
        self._runs.environment, self._runs.kill_after = settings.environment, settings.kill_after

    def name_resolved(self, name: str, vm_id: str = "") -> None:
        """Take over this VM's resource name and vmId.

        The records of another VM are set aside, and no hook runs for its events.
        """
        other = self.identification.confirm(name, vm_id)
        if other is None:
            return
        for record in self.records:
            self.stage_runner.withdraw_claims(record)
        self._tracker.clear()
        self._store.begin_anew(
            f"the records are those of the VM {escape_surrogates(other)}, and this VM is {escape_surrogates(name)}"
        )
        self._runs.find_lost(set())
        self.identification.confirm(name, vm_id)  # for the new records

    def name_unavailable(self) -> None:
        """Use the stored name, because IMDS did not give one."""
        name = self.identification.fall_back()
        if name is not None:
            self._is_behind = True
            text = f"IMDS does not give this VM's resource name; the daemon uses {name} from its records"
            log.warning(text)

    def observe(self, document: EventDocument) -> None:
        """Compare a document with the records, and act.

        1. An approval that waited for this document may be sent again.
        2. The records are compared with the document.
        3. If this VM's name is known, each event that is not missing takes over its runs that its record
           lacks. When no event is missing, the remaining lost runs are ended.
        4. A tick follows.
        """
        self._has_document, self._is_behind = True, False
        self.approver.document_received(self.records, document.api_version)
        self.approver.compared(self._tracker.compare(document))
        if self.own_name is not None:
            # the document shows whether the event of a lost run is over
            for record in self.records:
                if not record.is_missing:
                    self.stage_runner.adopt_lost_runs(record)
            if not any(record.is_missing for record in self.records):
                self._runs.end_lost()
        self.tick()

    def tick(self) -> None:
        """Record finished hooks, enforce deadlines, begin hooks and send approvals that are due.

        1. A pause whose time has passed ends, once a document has come.
        2. The results of the hooks that have ended are recorded.
        3. Each event is advanced: those that are over first, then the others by urgency. Until the records are
           known to be this VM's, and for an event that is not over until the first document, only the deadlines
           of its prepare hooks are enforced, and this only once the clock has the server's time.
        4. The records that were closed in step 3 are removed, and everything is written to the disk.
        """
        if self._has_document:
            self.pausing.expire()
        self.stage_runner.collect_finished(self.records)
        now = self._clock.now()
        holders = by_urgency((each for each in self.records if each.gone_at is None and each.affects_this_vm), now)
        over = by_urgency((each for each in self.records if each.gone_at is not None), now)
        of_other_vms = [each for each in self.records if each.gone_at is None and not each.affects_this_vm]
        for record in (*over, *holders, *of_other_vms):
            # after a start, the state of an event is unknown before the first document, and the
            # records may be another VM's
            if self.identification.is_confirmed and (self._has_document or record.gone_at is not None):
                self._advance(record, holders)
            elif self._clock.is_synchronised():
                self.stage_runner.enforce_deadline(record, PREPARE)  # a restart gives its hooks no more time
        self._tracker.drop_closed()
        self._store.write()

    def awaits_observation(self) -> bool:
        """Return True if the engine needs the next document even if it is unchanged.

        It does until this VM's name is known, and a document has been compared with all records since; while an
        event, or a VM of one, is missing from the last documents; and while an approval is withheld until the next
        document.
        """
        if self.own_name is None or not self._has_document or self._is_behind:
            return True
        return (
            self._tracker.is_in_doubt
            or any(record.is_missing for record in self.records)
            or self.approver.awaits_observation(self.records)
        )

    def due_in(self) -> float | None:
        """Return the seconds until the passing of time may require a `tick`; None if it does not.

        Without the deadlines of hooks that run, see `StageRunner.next_deadline`.
        """
        now = self._clock.now()
        times = [
            self._due_of(record, now) for record in self.records if record.affects_this_vm or record.approval_asked_by
        ]
        return min((seconds for seconds in times if seconds is not None), default=None)

    def _due_of(self, record: EventRecord, now: datetime) -> float | None:
        """Return the seconds until the passing of time may change what `tick` does for an event; None if it does not.

        1. In recovery it is the next planned repetition of a recover hook, but at least WHILE_UNDECIDED; None
           without one.
        2. Nothing depends on the time for an event that has started, or that IMDS has approved.
        3. It is WHILE_UNDECIDED if the policy may approve events, an operator has asked for the approval, or
           the event is on hold.
        4. Otherwise it is the time until NotBefore; None once this has passed.
        """
        if record.phase == RECOVER:
            times = [
                retry_at(hook, record.latest_run(RECOVER, hook.name))
                for hook in hooks_for(self.runtime.hooks, record, RECOVER)
            ]
            seconds = [(at - now).total_seconds() for at in times if at is not None and at != NEVER_AGAIN]
            return (
                max(WHILE_UNDECIDED, min(seconds)) if seconds else None
            )  # a hook that is due may wait for another event
        if record.seen_started or record.approval == ACCEPTED:
            return None
        # the decision of a policy depends on the time, and on files
        if self.runtime.settings.policy.may_approve() or record.approval_asked_by or record.on_hold:
            return WHILE_UNDECIDED
        return record.event.seconds_left(now) or None

    def approval_answered(self, record_id: int, error: ImdsError | None) -> None:
        """Note that IMDS accepted an approval, or failed with this error."""
        for record in self.records:
            if record.id == record_id:
                self.approver.answer_received(record, error)

    def approval_withheld(self, record_id: int) -> None:
        """Note that an approval was not sent, because the event had changed since the evaluation."""
        for record in self.records:
            if record.id == record_id:
                self.approver.request_withheld(record)

    def poll_failed(self) -> None:
        """Note that a poll failed."""
        self.approver.poll_failed()

    def approve_manually(self, event_id: str, who: str, force: bool, release_others: bool) -> ManualAnswer | None:
        """Approve an event for an operator; None if there is no such event.

        The event's id may be in any letter case; see `ManualRequest` for `force` and `release_others`.

        1. Only an event that is not over is found.
        2. The approver refuses the request, or notes it. For an event of other VMs there is nothing to prepare.
        3. A tick sends the approval if it may be sent now.
        4. The answer is the approver's from step 2, if it has one; otherwise what came of step 3.
        """
        record = next(
            (record for record in self.records if record.key == event_id.casefold() and record.gone_at is None), None
        )
        if record is None:
            return None
        prepared = self.preparation_state(record) if record.affects_this_vm else "ok"
        answer = self.approver.request_manual(record, ManualRequest(who, force, release_others), prepared)
        self.tick()
        return answer or self.approver.answer_to_accepted(record)

    def preparation_state(self, record: EventRecord) -> str:
        """Return the state of the preparation for the event: "none", "running", "ok" or "failed".

        1. For an event that does not affect this VM it is "none".
        2. It is "failed" if the event has moved on from stage prepare before the stage was finished, and no
           prepare hook runs.
        3. It is "running" although the stage succeeded, if a recover hook runs that may undo it.
        4. Otherwise it is the state of the stage.
        """
        if not record.affects_this_vm:
            return "none"
        state = stage_state(self.runtime.hooks, record, PREPARE)
        if state == "running" and record.phase != PREPARE and not self.stage_runner.has_running(record, PREPARE):
            return "failed"  # it was interrupted, and its other hooks will not run
        if state == "ok" and self.stage_runner.is_recovering():
            return "running"  # a recover hook may undo the preparation
        return state

    def recover_manually(self, event_id: str, who: str, give_up: bool) -> ManualAnswer | None:
        """Repeat or end the recovery from an event for an operator; None if there is no such event.

        The event's id may be in any letter case. `give_up` ends the recovery instead of repeating it.

        1. Of the records of the event, the one that is over counts before a listed one.
        2. The request is refused while the event is not over, and while one of its recover hooks runs.
        3. With `give_up`, the recover hooks that have not succeeded count as skipped.
        4. Otherwise those that failed count as not run, and need not wait for their next attempt. Without a
           failed one the answer is what the recovery waits for.

        A tick follows after 3 and 4.
        """
        found = [record for record in self.records if record.key == event_id.casefold()]
        record = next((record for record in found if record.gone_at is not None), found[0] if found else None)
        if record is None:
            return None
        if record.gone_at is None:
            return ManualAnswer(False, "the event is not over; the recovery begins by itself when it is")
        if self.stage_runner.has_running(record, RECOVER):
            return ManualAnswer(False, "a recover hook runs now; try again when it has ended")
        failed = not_recovered(self.runtime.hooks, record)
        if give_up:
            self._timeline.add(record, GIVEN_UP, f"{who} gives the recovery up", "error")
            self.stage_runner.give_up(record, escape_surrogates(who))
            self.tick()
            return ManualAnswer(True, "the recovery is given up; the effects of the prepare hooks may remain")
        for step in failed:
            step.void = f"{escape_surrogates(who)} asked for another attempt"
        self._timeline.add(record, "recovery-asked", f"by {who}", "notice")
        self.tick()
        return ManualAnswer(
            True,
            "the recovery is tried again now" if failed else record.waiting_for or "the recovery goes on",
        )

    def _advance(self, record: EventRecord, holders: list[EventRecord]) -> None:
        """Do what is due for one event. `holders` are the events that affect this VM and are not over.

        1. For an event that is over, the recovery goes on. When nothing is left to do, the record is closed.
        2. While the last documents do not list the event, or this VM in it, only the deadlines of prepare hooks
           are enforced.
        3. For an event that has started and affects this VM, the hooks of its stage run.
        4. A Scheduled event that affects this VM is prepared and approved.
        5. A Scheduled event of other VMs, and an event of an unknown status, is approved only for an operator.
        """
        phase = record.phase
        if phase == RECOVER:
            if self._recover(record, holders):
                self._close(record)
        elif record.is_missing:
            self.stage_runner.enforce_deadline(record, PREPARE)  # nothing begins for an event that may be over
        elif record.seen_started:
            record.attempt.explanation = ""
            if phase != WATCHED:
                self._start(record, holders)
        elif phase == PREPARE and record.event.status == "Scheduled":
            self._prepare(record, holders)
        elif record.approval_asked_by:
            self.approver.send_if_due(record, Decision(NEVER, False, None, ""), "ok")

    def _prepare(self, record: EventRecord, holders: list[EventRecord]) -> None:
        """Prepare this VM for a Scheduled event, and approve the event when that is due.

        1. The policy decides. The decision is logged if its rule or its approval is not that of the last one.
        2. During a pause no prepare hook begins.
        3. A rule with `hold` has the same effect, unless the preparation has begun or an operator has asked for
           the approval.
        4. Otherwise the stage goes on. After NotBefore, hooks that were skipped for lack of time may run after all.
           Then the policy decides again.
        5. In each of these cases the approval is sent if it is due.
        """
        prepared = self.preparation_state(record)
        decision = self.approver.decide(record, prepared)
        evaluated = (decision.rule, decision.approval)
        if record.attempt.logged_decision != evaluated:
            record.attempt.logged_decision = evaluated
            self._timeline.log(record, "info", decision.reason)
        pause = self.pausing.current()
        record.on_hold = prepared == "none" and (pause is not None or (decision.hold and not record.approval_asked_by))
        if pause is not None:
            self.stage_runner.put_off(record, pause.text())
            prepared = self.preparation_state(record)
        elif record.on_hold:
            self.stage_runner.put_off(record, "the matching rule has `hold`")
        else:
            if is_late(record, self._clock.now()):
                self.stage_runner.reopen_late(record)
            self.stage_runner.advance_stage(record, PREPARE, holders)
            prepared = self.preparation_state(record)
            decision = self.approver.decide(record, prepared)
        self.approver.send_if_due(record, decision, prepared)

    def _start(self, record: EventRecord, holders: list[EventRecord]) -> None:
        """Run the hooks of an event that has started.

        1. A prepare hook that still runs is ended if `when_started` is "stop". Otherwise it goes on within its
           deadline. The hooks of the stage wait for its end.
        2. Otherwise the stage goes on: emergency if the event was Started when it was first seen, else started.
        """
        if self.stage_runner.has_running(record, PREPARE):
            if self.runtime.settings.when_started == "stop":
                self.stage_runner.stop(record, Cause.EVENT_STARTED, "the event has started", PREPARE)
            elif self.pausing.current() is None:
                self.stage_runner.advance_stage(record, PREPARE, holders)
            else:
                self.stage_runner.enforce_deadline(record, PREPARE)
            return
        self.stage_runner.advance_stage(record, record.phase, holders)

    def _recover(self, record: EventRecord, holders: list[EventRecord]) -> bool:
        """Go on with the recovery; return True if nothing is left to do for the event.

        1. There is nothing to do for an event that never affected this VM.
        2. Hooks of earlier stages are ended first. A prepare hook goes on within its deadline if its success
           counts for another event that waits for it.
        3. When none of them runs, the recover hooks run.
        """
        if not record.affects_this_vm:
            return True
        if self.stage_runner.has_running(record, PREPARE, EMERGENCY, STARTED):
            if self.stage_runner.is_claimed(record):
                self.stage_runner.enforce_deadline(
                    record, PREPARE
                )  # its success counts for the event that waits for it
            else:
                self.stage_runner.stop(record, Cause.EVENT_OVER, "the event is over", PREPARE)
            self.stage_runner.stop(record, Cause.EVENT_OVER, "the event is over", EMERGENCY, STARTED)
            return False
        return self.stage_runner.advance_stage(record, RECOVER, holders)

    def _close(self, record: EventRecord) -> None:
        """Note that the daemon has finished with the event.

        A stored event gets an entry that names the recover hooks that did not succeed, or says that an
        operator gave the recovery up. Then the closed records beyond `history_events` are deleted.
        """
        record.closed_at = self._clock.now()
        self.stage_runner.withdraw_claims(record)
        if is_stored(record):
            latest = {step.hook: step for step in record.runs_in_stage(RECOVER)}
            failed = [step.hook for step in latest.values() if step.state not in (OK, SKIPPED)]
            text = "recovered" if not failed else f"recovered, but for {', '.join(failed)}"
            if any(entry.what == GIVEN_UP for entry in record.timeline):
                text, failed = "not recovered, as an operator gave it up", ["all"]
            self._timeline.add(
                record, "closed", f"{text}; outcome: {record.outcome}", "notice" if not failed else "error"
            )
            self._store.prune(self.runtime.settings.history_events)
