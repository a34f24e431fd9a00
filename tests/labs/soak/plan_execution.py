# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Executes a plan: its actions, then the end of all faults and all events, until the daemon is idle."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from azure_scheduled_events.event_types import EVENT_TYPES
from hook_runner.records import OPEN_STATES
from seed_campaign import Outcome, Violation, approvals_from
from soak.actions import Actions
from soak.checks import Evidence, counts_of, find_violations, hook_runs
from soak.plan import VM, Plan, draw_plan
from soak.testbed import Testbed, holds_within
from support import simulator_process
from support.daemon.simulated_azure import GROUPS, Azure
from support.simulator_process import ControlError, Simulator

# seconds that the daemon has to settle after the end of all faults, and until it repeats a recovery
# that failed twice; only a run that fails takes so long
SETTLE_TIMEOUT = 40.0
RECOVERY_TIMEOUT = 100.0
# after so many events of a long run, further ones must not use more memory and descriptors
WARM_UP_EVENTS = 6
MAX_MEMORY_GROWTH = 1536  # KiB
KNOBS = ("--knob", "rate_limit=off", "--knob", "start_delay=0.2s", "--knob", "idle_disable=off", "--quiet")


def run_seed(seed: int, folder: Path) -> Outcome:
    """Run the plan of a seed, and check what happened."""
    plan = draw_plan(seed)
    with simulator_process.start({"groups": GROUPS}, args=KNOBS) as simulator:
        # processes are found by the path of their folder, which must not be a prefix of another one
        testbed = Testbed(folder / "host", Azure(simulator), plan.setup)
        try:
            execution = _PlanExecution(plan, testbed, simulator)
            execution.run()
            evidence = execution.evidence()
        finally:
            testbed.close()
    lines = [str(plan.setup), *map(str, plan.actions), "done:", *execution.actions.performed]
    return Outcome(seed, [*execution.violations, *find_violations(evidence)], lines, counts_of(evidence))


class _PlanExecution:
    def __init__(self, plan: Plan, testbed: Testbed, simulator: Simulator) -> None:
        self.plan, self.testbed, self.simulator = plan, testbed, simulator
        self.actions = Actions(testbed)
        self.violations: list[Violation] = []
        self.status: dict[str, Any] = {}

    def run(self) -> None:
        warm: tuple[int, int] | None = None
        self.testbed.start()
        for number, action in enumerate(self.plan.actions):
            self.actions.do(action)
            if self.plan.is_long and action.verb == "rest":
                self._wait_for_status("3 recovered", _has_recovered)
                rests = sum(each.verb == "rest" for each in self.plan.actions[: number + 1])
                warm = self.testbed.footprint() if rests == WARM_UP_EVENTS else warm
        self._heal()
        self._wait_for_status("8 works again", _has_settled)
        self._end_events()
        if self._wait_for_status("3 recovered", self._is_over, RECOVERY_TIMEOUT):
            if warm is not None:
                self._compare(warm, self.testbed.footprint())
            self._check_commands()
        self._stop()

    def _heal(self) -> None:
        self.testbed.azure.heal()
        self.testbed.harness.folder.joinpath("marks.healed").touch()
        if not self.testbed.is_running():
            self._report("7 daemon alive", f"the daemon had ended by itself, with {self.testbed.daemon.process}")
            self.testbed.record_end("died")
            self.testbed.start()

    def _is_over(self, status: dict[str, Any]) -> bool:
        """Return True if the host has recovered; an operator, if the plan has one, repeats failed recoveries."""
        maintenance = status["maintenance"]
        has_failed = maintenance is not None and maintenance["not_recovered"] and not _runs_hook(maintenance)
        if self.plan.setup.operator and has_failed:
            self.testbed.daemon.command("recover", maintenance["id"])
        return _has_recovered(status)

    def _wait_for_status(
        self, what: str, condition: Callable[[dict[str, Any]], bool], seconds: float = SETTLE_TIMEOUT
    ) -> bool:
        """Wait until the condition holds for the daemon's status; report a violation of ``what`` otherwise."""

        def poll() -> bool:
            self.status = self.testbed.status() or self.status
            return not self.testbed.is_running() or (bool(self.status) and condition(self.status))

        self.status = {}
        holds = holds_within(poll, seconds)
        if not self.testbed.is_running():
            self._report("7 daemon alive", "it ended by itself without a fault")
            return False
        if not holds:
            self._report(what, f"after {seconds:.0f} s without faults the status is {_brief(self.status)}")
        return holds

    def _end_events(self) -> None:
        for event in self.simulator.get("/events")["events"]:
            if event["status"] != "Gone":
                try:
                    self.simulator.post(f"/events/{event['id']}/complete")
                except ControlError:
                    pass  # the event has ended since then

    def _check_commands(self) -> None:
        for verb in ("status", "history"):
            status, data = self.testbed.daemon.data(verb)
            if status != 0:
                self._report(f"7 {verb}", f"it exits {status} after the end of all faults: {_brief(data)}")

    def _compare(self, warm: tuple[int, int], end: tuple[int, int]) -> None:
        # a connection may be closing
        if not holds_within(lambda: self.testbed.footprint()[0] <= warm[0], 3):
            self._report("6 descriptors", f"{warm[0]} after {WARM_UP_EVENTS} events, {end[0]} at the end")
        if end[1] > warm[1] + MAX_MEMORY_GROWTH:
            self._report("6 memory", f"{warm[1]} KiB after {WARM_UP_EVENTS} events, {end[1]} KiB at the end")

    def _stop(self) -> None:
        if not holds_within(lambda: not self.testbed.remaining_processes(), 5):
            self._report("4 left running", f"processes {self.testbed.remaining_processes()}")
        self.testbed.end("term")
        for how, status in self.testbed.exits:
            if how == "died" or (how == "term" and status != 0):
                self._report("7 daemon alive", f"the daemon ended with exit status {status} ({how})")
        traces = self.testbed.daemon.times_logged("Traceback")
        if traces:
            self._report("7 daemon alive", f"{traces} tracebacks in its log")

    def evidence(self) -> Evidence:
        approvals = [each for each in approvals_from(self.simulator.get("/log")["lines"]) if each.vm == VM]
        return Evidence(self.plan, hook_runs(self.testbed.harness.marks()), approvals, self.testbed.reboots)

    def _report(self, what: str, text: str) -> None:
        self.violations.append(Violation(what, text))


def _has_recovered(status: dict[str, Any]) -> bool:
    return not status["events"] and status["maintenance"] is None


def _runs_hook(maintenance: dict[str, Any]) -> bool:
    return any(hook["state"] in OPEN_STATES for hook in maintenance["hooks"])


def _has_settled(status: dict[str, Any]) -> bool:
    """Return True if IMDS and records are good, no hook runs, and no approval is missing."""
    if not status["imds"]["ok"] or not status["records"]["ok"] or not status["vm"]:
        return False
    maintenance = status["maintenance"]
    if maintenance is not None and _runs_hook(maintenance):
        return False
    return all(_is_idle(event, status["leader"]) for event in status["events"])


def _is_idle(event: dict[str, Any], leader: str) -> bool:
    # an event that had started before it was listed again counts as started, whatever its status is
    if not event["affects_this_vm"] or event["status"] != "Scheduled" or event["seconds_left"] <= 1:
        return True
    if event["event_type"] not in EVENT_TYPES:
        return True  # listed twice with different types: no rule approves an unknown type
    if event["prepared"] in ("none", "running"):
        return False
    leads = event["resources"] == [VM] or (leader == "first" and min(event["resources"]) == VM)
    return event["prepared"] == "failed" or not leads or event["approval"] == "accepted"


def _brief(status: dict[str, Any]) -> str:
    return json.dumps(status)[:2000]
