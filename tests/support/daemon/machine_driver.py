# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Drives the state machine of the hook runner by hand: documents, results and seconds in, effects out."""

from __future__ import annotations

import copy
import logging.handlers
import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.policy import Policy
from azure_scheduled_events.tracking import Tracker
from hook_runner.config.settings import HookSettings, Settings
from hook_runner.hooks.discovery import Hook
from hook_runner.hooks.one_run import RunResult
from hook_runner.log import log_to, set_level
from hook_runner.maintenance.approvals import Answer
from hook_runner.maintenance.hook_plan import Host
from hook_runner.maintenance.machine import Machine
from hook_runner.maintenance.open_records import OpenRecords
from hook_runner.maintenance.record import ApprovalRequest, EventRecord, HookRun, Maintenance, State
from hook_runner.records import FAILED, INTERRUPTED, OK, STAGES, TIMEOUT, Cause

EPOCH = datetime(2026, 11, 23, tzinfo=timezone.utc)
# more lines than a test logs
MOST_LINES = 100_000
AFTER_PREPARE = Policy.from_mapping({"rules": [{"name": "rule", "when": {}, "approve": "after_prepare"}]})
# a result for each state of a run
RESULTS = {
    OK: RunResult(0, "", 1.0, Cause.NONE, ""),
    FAILED: RunResult(1, "", 1.0, Cause.NONE, ""),
    TIMEOUT: RunResult(-15, "", 1.0, Cause.TIME_LIMIT, "its time limit was up"),
    INTERRUPTED: RunResult(None, "", 1.0, Cause.UNIT_STOPPED, "its unit was stopped"),
}


def event(
    event_id: str = "e1",
    event_type: str = "Reboot",
    status: str = "Scheduled",
    vms: Sequence[str] = ("vm1",),
    not_before: float | None = 900.0,
) -> ScheduledEvent:
    """Return an event; NotBefore is in seconds after EPOCH."""
    time = None if not_before is None or status == "Started" else EPOCH + timedelta(seconds=not_before)
    return ScheduledEvent(event_id, event_type, status, tuple(vms), "VirtualMachine", time, "", "Platform", None)


def hook(title: str, **settings: Any) -> Hook:
    """Return the hook of a title such as "prepare/10-drain"."""
    stage, name = title.split("/")
    problem = settings.pop("problem", None)
    return Hook(stage, name, f"/hooks.d/{title}", HookSettings(**settings), problem)


class Driver:
    """One process of the daemon, second by second, with a disk that may be full.

    Attributes:
        begun: the titles of the hooks that began, in order.
        ended: the titles of the hooks that had to end, each with the seconds before KILL.
        sent: the ids of the events whose approval was sent.
        written: the last records on the disk.
        makes_units: whether the start of a unit is reported.
    """

    def __init__(
        self,
        *hooks: Hook,
        policy: Policy = AFTER_PREPARE,
        own_name: str = "vm1",
        boot: str = "boot-1",
        disk: tuple[State, Maintenance | None] | None = None,
        at: float = 0.0,
        **settings: Any,
    ) -> None:
        hooks = tuple(sorted(hooks, key=lambda each: each.name))
        by_stage = {stage: tuple(each for each in hooks if each.stage == stage) for stage in STAGES}
        by_title = {f"{each.stage}/{each.name}": each.settings._asdict() for each in hooks}
        self.host = Host(Settings(policy=policy, hooks=by_title, **settings), by_stage, own_name, boot)
        state, maintenance = disk or (State(), None)
        self.records = OpenRecords(copy.deepcopy(state), copy.deepcopy(maintenance), 0)
        self.machine = Machine(self.host, self.records)
        self.at = at
        self.is_full = False
        self.makes_units = True
        self.gates: dict[str, bool] = {}
        self.history: list[Maintenance] = []
        self.begun: list[str] = []
        self.ended: list[tuple[str, float]] = []
        self._kill_at: dict[int, float] = {}
        self.sent: list[str] = []
        self.written: tuple[State, Maintenance | None] = (state, maintenance)
        self._tracker = Tracker([record.event for record in self.records.known])
        self.run: HookRun | None = None
        self._log = logging.handlers.BufferingHandler(MOST_LINES)
        log_to(self._log)
        set_level("debug")

    @property
    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.at)

    def read(self, *events: ScheduledEvent, doubtful: tuple[str, ...] = (), complete: bool = True) -> None:
        """Let the machine take in a document of now, and act."""
        document = EventDocument(None, events, (), complete, self.now, doubtful, sent_at=self.at, sent_by=self.at)
        self.machine.observe(self._tracker.observe(document), self.now)
        self.act()

    def seconds(self, count: float, *events: ScheduledEvent, step: float = 1.0, **kind: Any) -> None:
        """Let seconds pass, with a document of these events in each of them."""
        end = self.at + count
        while self.at < end:
            self.at += step
            self.read(*events, **kind)

    def wait(self, count: float) -> None:
        """Let seconds pass without a document."""
        self.at += count
        self.act()

    def act(self) -> None:
        """Carry out what the machine decides."""
        for _ in range(50):
            effects = self.machine.tick(self.now, self.gates)
            is_written = effects.write and self._write()
            if effects.end is not None:
                self._end(*effects.end)
            if effects.start is not None:
                self.run = effects.start
                self.begun.append(effects.start.title)
                if self.makes_units:
                    self.machine.runs.started(effects.start.number)
            if effects.approve is not None:
                self.sent.append(effects.approve.event_id)
            if not (is_written or effects.start or effects.approve):
                return
        raise AssertionError("the machine has effects without end")

    def _end(self, run: HookRun, kill_after: float) -> None:
        """End a hook, unless it gets KILL sooner already."""
        if self.at + kill_after < self._kill_at.get(run.number, math.inf):
            self._kill_at[run.number] = self.at + kill_after
            self.ended.append((run.title, kill_after))

    def end_hook(self, state: str = OK, **more: Any) -> None:
        """Let the hook that runs end."""
        assert self.run is not None
        run, self.run = self.run, None
        self.machine.runs.ended(run.number, RESULTS[state]._replace(**more), self.now)
        self.act()

    def answer(self, key: str = "e1", error: ImdsError | None = None) -> None:
        """Let IMDS answer the approval."""
        self.machine.approvals.answered(key, error, self.now)
        self.act()

    def ask(self, key: str = "e1", force: bool = False, release_others: bool = False) -> Answer:
        """Let an operator ask for an approval; return the answer after the tick."""
        record = self.record(key)
        request = ApprovalRequest("operator", force, release_others)
        answer = self.machine.approvals.request(record, request, self.now)
        self.act()
        return self.machine.approvals.answer(record, self.machine.reason(record)) if answer is None else answer

    def prepared(self, key: str = "e1") -> str:
        record = self.record(key)
        return self.machine.prepared(record, self.now)

    def reason(self, key: str = "e1") -> str:
        """Return the code of the reason why nothing happens to an event."""
        reason = self.machine.reason(self.record(key))
        return "" if reason is None else reason.code

    def reason_text(self) -> str:
        """Return the sentence of the reason why nothing happens to the first event."""
        reason = self.machine.reason(self.record())
        return "" if reason is None else reason.text

    @property
    def runs(self) -> list[HookRun]:
        """The runs of the open maintenance."""
        assert self.records.maintenance is not None
        return self.records.maintenance.runs

    def record(self, key: str = "e1") -> EventRecord:
        record = self.records.find(key)
        assert record is not None
        return record

    def restarted(self, boot: str = "boot-1", **settings: Any) -> Driver:
        """Return another process with the same disk and hooks, after kill -9."""
        hooks = [each for some in self.host.hooks.values() for each in some]
        policy: Policy = settings.pop("policy", self.host.settings.policy)
        return Driver(*hooks, policy=policy, boot=boot, disk=self.written, at=self.at, **settings)

    def logged(self) -> list[str]:
        """Return the lines of the log since the last call."""
        lines, self._log.buffer = self._log.buffer, []
        return [line.getMessage() for line in lines]

    def whats(self) -> list[str]:
        """Return the keywords of the log since the last call."""
        return [line.partition(":")[0] for line in self.logged()]

    def _write(self) -> bool:
        if not self.is_full:
            self.history += copy.deepcopy(self.records.finished)
            self.records.finished.clear()
            self.written = copy.deepcopy((self.records.state, self.records.maintenance))
        self.records.written("full" if self.is_full else None, self.now)
        return not self.is_full


def rules(*given: Mapping[str, Any]) -> Policy:
    """Return a policy of rules without names."""
    return Policy.from_mapping({"rules": [{"when": {}, **each} for each in given]})
