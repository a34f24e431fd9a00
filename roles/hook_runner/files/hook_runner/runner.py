# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Carries out what the state machine decides, and hands it what comes in.

The way of a document: `document_received` lets the tracker compare it with the earlier ones, and the machine with the
records. `tick` asks the machine what is due: records are written first, then a hook is ended or begun, or an approval
sent.
"""

from __future__ import annotations

import json
import logging
from datetime import datetime
from typing import Callable, Sequence

from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.errors import ImdsError
from hook_runner.clock import Date, ServerClock
from hook_runner.config.settings import Settings
from hook_runner.hooks.discovery import Hooks
from hook_runner.hooks.one_run import RunOrder, RunResult, usual_variables
from hook_runner.hooks.runs import HookRuns
from hook_runner.hooks.systemd import Stopping
from hook_runner.hooks.units import LAST_TRIAL
from hook_runner.imds_health import ImdsHealth
from hook_runner.maintenance.approvals import Answer
from hook_runner.maintenance.deadlines import seconds_to_kill
from hook_runner.maintenance.hook_plan import Host
from hook_runner.maintenance.inputs import input_of
from hook_runner.maintenance.machine import Effects, Machine
from hook_runner.maintenance.open_records import OpenRecords
from hook_runner.maintenance.record import ApprovalRequest, EventRecord, HookRun, Vm
from hook_runner.maintenance.record_json import from_json, to_json
from hook_runner.permissions import open_gates, permission_problem
from hook_runner.record_store import RecordStore
from hook_runner.records import Cause

log = logging.getLogger(__name__)

# a tick follows the effects of another one; the state machine comes to rest after a few
_MOST_TICKS = 100


class Runner:
    """Connects the state machine with the records, the hooks and IMDS.

    Args:
        health: learns how IMDS answers.
        send_approval: hands an event to the poller; `approval_answered` or `approval_withheld` takes the result.
        withdraw_approvals: takes those back that the poller has not sent.
        hook_ended: called with each run that has ended and its event, for metrics.

    Attributes:
        waiting_for: what keeps a hook from beginning, or "".
    """

    def __init__(
        self,
        settings: Settings,
        hooks: Hooks,
        store: RecordStore,
        runs: HookRuns,
        clock: ServerClock,
        health: ImdsHealth,
        send_approval: Callable[[ScheduledEvent], None],
        withdraw_approvals: Callable[[], None] = lambda: None,
        hook_ended: Callable[[HookRun, EventRecord | None], None] = lambda run, record: None,
    ) -> None:
        self.store, self.runs, self.health = store, runs, health
        self.waiting_for = ""
        self._clock = clock
        self._send_approval, self._withdraw, self._hook_ended = send_approval, withdraw_approvals, hook_ended
        known = store.records.state.vm
        own_name = known.name if known.is_of(store.boot) else ""
        self.machine = Machine(Host(settings, hooks, own_name, store.boot), store.records)
        if store.is_incomplete:
            self.machine.runs.found_incomplete(clock.now())
        self._adopt_runs()
        if settings.resource_name:
            self.name_resolved(settings.resource_name)

    @property
    def records(self) -> OpenRecords:
        """What is known."""
        return self.machine.records

    @property
    def host(self) -> Host:
        """The configuration in force, and the name of this VM."""
        return self.machine.host

    @property
    def now(self) -> datetime:
        """The time by the server's clock."""
        return self._clock.now()

    @property
    def has_events(self) -> bool:
        """Whether an event is not over, or the host has to recover."""
        return self.records.maintenance is not None or bool(self.records.state.observed)

    # -- the cycle

    def tick(self) -> None:
        """Take the results of hooks, and carry out what is due until nothing is.

        1. The results of hooks that have ended are handed to the machine.
        2. The machine decides; then the records are written, and after that the other effects are carried out.
        3. This is repeated until there are no effects, or only a write that failed and the end of a hook.
        """
        self._collect()
        gates = open_gates(self.host.settings.gates)
        for _number in range(_MOST_TICKS):
            effects = self.machine.tick(self._clock.now(), gates, self._may_begin())
            is_written = effects.write and self._write()
            self._carry_out(effects)
            if not (is_written or effects.start or effects.approve):
                break

    def _collect(self) -> None:
        for number, result in self.runs.collect_finished():
            self.machine.runs.ended(number, result, self._clock.now())
            maintenance = self.records.maintenance
            run = maintenance.run(number) if maintenance else None
            if maintenance is not None and run is not None:
                self._hook_ended(run, maintenance.event(run.event))
            self.records.has_changed = True  # the next good write lets systemd forget the run

    def _write(self) -> bool:
        has_finished = bool(self.records.finished)
        if not self.store.write():
            return False
        self.runs.remove_collected()
        if has_finished:
            self.store.prune(self.host.settings.history_events)
        return True

    def _may_begin(self) -> bool:
        """Return whether a hook may begin; `waiting_for` says why not."""
        if self.records.open_run is not None:
            return True
        if self.records.maintenance is None:
            # a hook of an event that is taken up now waits from the next tick on
            self.waiting_for = ""
            return self.runs.obstacle(None) is None
        now = self._clock.now()
        left = [each.event.seconds_left(now) for each in self.records.present if not each.is_started]
        obstacle = self.runs.obstacle(min(left, default=float("inf")))
        if obstacle and obstacle != self.waiting_for:
            log.warning("hooks wait for %s", obstacle)
        self.waiting_for = obstacle or ""
        return obstacle is None

    def _carry_out(self, effects: Effects) -> None:
        if effects.end is not None:
            self.runs.stop(effects.end.run.number, effects.end.kill_after)
        if effects.start is not None:
            log.debug("decided: %s begins", effects.start.title)
            self._start(effects.start)
        if effects.approve is not None:
            log.debug("decided: the approval of %s is sent", effects.approve.event_id)
            self._send_approval(effects.approve)

    def _start(self, run: HookRun) -> None:
        """Start a hook whose run is in the records."""
        maintenance, now = self.records.maintenance, self._clock.now()
        assert maintenance is not None
        hook = next(each for each in self.host.hooks[run.stage] if each.name == run.name)
        # checked again: hours may have passed since the hooks were discovered
        problem = permission_problem(hook.path, self.host.settings.hooks_directory)
        if problem is not None:
            self.machine.runs.ended(run.number, RunResult(None, cause=Cause.REFUSED, error=problem), now)
            return
        given, variables = input_of(run, maintenance, self.host.own_name, now)
        record = maintenance.event(run.event)
        most = self.host.settings.kill_after
        kill_after = seconds_to_kill(record, run.limit, most) if record and run.is_cut_short else most
        log.debug("%s: it runs %s with the variables %s", run.title, hook.path, " ".join(sorted(variables)))
        memo = json.dumps(to_json(run)).encode("ascii")
        variables = {**usual_variables(self.host.settings), **variables}
        order = RunOrder(run.number, hook, given, variables, run.seconds, kill_after, memo)
        try:
            is_unit = self.runs.start_unit(order)
            self.machine.runs.started(run.number)
            if not is_unit:
                self._write()  # systemd will not tell the next process that the child has begun
                self.runs.start_child(order)
        except Stopping:
            self.machine.runs.lost(run.number, now)  # it has not begun
        except OSError as error:
            result = RunResult(None, cause=Cause.NOT_STARTED, error=f"it could not be started: {error}")
            self.machine.runs.ended(run.number, result, now)

    def _adopt_runs(self) -> None:
        """Take over the runs of an earlier daemon, also those that no record has."""
        now, maintenance = self._clock.now(), self.records.maintenance
        units = {unit.number: unit for unit in self.runs.find_units()}
        for run in [each for each in (maintenance.runs if maintenance else ()) if each.is_open]:
            if run.number in units:
                self.runs.adopt(units.pop(run.number), run.seconds)
                self.machine.runs.started(run.number)
            else:
                self.machine.runs.lost(run.number, now)
        for unit in units.values():
            if unit.number <= self.store.last_number:  # the records have its result
                self.runs.end_unit(unit)
                continue
            try:
                found = from_json(HookRun, json.loads(unit.memo))
            except ValueError:
                self.runs.end_unit(unit)
                if unit.number > LAST_TRIAL:
                    self.machine.runs.found_incomplete(now)
            else:
                self.runs.adopt(unit, found.seconds)
                self.machine.runs.adopt(found, now)

    # -- what comes in

    @property
    def awaits_document(self) -> bool:
        """Whether the next document is needed even if it is unchanged."""
        return self.machine.awaits_document or self._clock.is_doubtful

    def document_received(self, document: EventDocument, dates: Sequence[Date] = ()) -> None:
        """Take in a good document; a tick follows.

        `dates` are those of this answer and of those before it, the latest last.
        """
        for date, at in dates:
            odd = self._clock.synchronise(date, at)
            if odd is not None:
                log.warning(odd)
        self.health.poll_succeeded(document, self._clock.now())
        self.machine.observe(self.store.tracker.observe(document), self._clock.now())
        self.tick()

    def poll_failed(self, error: ImdsError, is_outage: bool) -> None:
        """Note a poll without a good document; `is_outage`: whether this is worth an alarm."""
        self.health.poll_failed(error, is_outage, self._clock.now())
        self.machine.approvals.poll_failed()

    def approval_answered(self, key: str, error: ImdsError | None) -> None:
        """Note that IMDS accepted the approval of the event with this key (error None), or did not."""
        self.machine.approvals.answered(key, error, self._clock.now())
        self.health.approval_answered(error)

    def approval_withheld(self, key: str) -> None:
        """Note that an approval was not sent: the event has changed, its state is unknown, or it was withdrawn."""
        self.machine.approvals.withheld(key, self._clock.now())

    def name_resolved(self, name: str, vm_id: str = "") -> None:
        """Take over this VM's name, unless it is configured, and its vmId. Set the records of another VM aside."""
        host, known = self.host, self.records.state.vm
        name = host.settings.resource_name or name
        if known.is_other(name, vm_id, host.boot):
            self.store.begin_anew(f"the records are those of the VM {known.name}, and this VM is {name}")
            self.machine, known = Machine(host, self.store.records), Vm()
        self.records.state.vm, self.records.has_changed = Vm(name, vm_id or known.vm_id, host.boot), True
        self._use(host._replace(own_name=name))
        if not host.settings.resource_name:
            log.info("this VM is %s", name)

    def name_unavailable(self, reason: str) -> None:
        """Use the stored name, because IMDS did not give one."""
        name = self.records.state.vm.name
        if self.host.own_name:
            return
        if not name:
            self.health.name_unavailable(reason)
        else:
            log.warning("IMDS does not give this VM's resource name; the daemon uses %s from its records", name)
            self._use(self.host._replace(own_name=name))

    def reconfigure(self, settings: Settings, hooks: Hooks) -> None:
        """Use other settings and hooks from now on; a hook that runs goes on."""
        self._withdraw()
        self._use(self.host._replace(settings=settings, hooks=hooks))

    def _use(self, host: Host) -> None:
        self.machine.reconfigure(host, self._clock.now())

    # -- commands of operators

    def approve(self, record: EventRecord, request: ApprovalRequest) -> Answer:
        """Approve an event for an operator, now or later."""
        self.tick()  # the disk may have room since the last one, and a reload may have brought other hooks
        answer = self.machine.approvals.request(record, request, self._clock.now())
        self.tick()
        return self.machine.approvals.answer(record, self.machine.reason(record)) if answer is None else answer

    def pause(self, by: str, until: datetime | None, reason: str) -> Answer:
        """Begin a pause, which replaces an earlier one."""
        self._withdraw()
        return self._after_command(self.machine.pause(by, until, reason, self._clock.now()), "forgets the pause")

    def resume(self, by: str) -> Answer:
        """End the pause."""
        return self._after_command(self.machine.resume(by), "may pause the daemon again")

    def recover(self, by: str, give_up: bool) -> Answer:
        """Repeat the recover hooks that failed at once, or end the recovery."""
        risk = "begins the recovery again" if give_up else "forgets this"
        return self._after_command(self.machine.recover(by, give_up, self._clock.now()), risk)

    def _after_command(self, answer: Answer, risk: str) -> Answer:
        """Act on a command; the answer says what a restart would do if the records cannot be written."""
        self.tick()
        if not answer.accepted or self.records.is_durable:
            return answer
        return answer._replace(text=f"{answer.text}; records cannot be written: a restart {risk}")
