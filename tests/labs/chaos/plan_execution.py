# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Executes the plan of one seed: the disturbed run, the end of all faults, then undisturbed runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from chaos.controller import Controller
from chaos.disturbances import Disturbances
from chaos.evidence import OTHER_CONTROLLER, Evidence, PerformedAction, Run, approvals_from, events_from
from chaos.plan import Disturbance, Plan
from chaos.testbed import Testbed, open_testbed
from chaos.unapproved_events import UnapprovedEventStarter

# seconds after which a run counts as hanging: five times MAINTENANCE_PATIENCE
RUN_TIMEOUT = 300.0
MAX_RUNS = 3


class PlanResult(NamedTuple):
    """The result of a seed: evidence, the verbs of the disturbances that were done, and errors of the harness."""

    evidence: Evidence
    done: list[str]
    errors: list[str]


def execute(plan: Plan, folder: Path, sockets: Path, collections: Path) -> PlanResult:
    """Execute a plan in the namespaces of this process."""
    with open_testbed(plan, folder, sockets, collections) as testbed:
        return _PlanExecution(testbed).run()


class _PlanExecution:
    def __init__(self, testbed: Testbed) -> None:
        self.testbed, self.plan = testbed, testbed.plan
        self.runs: list[Run] = []
        self.performed: list[PerformedAction] = []
        self.done: list[str] = []
        self.errors: list[str] = []
        self.vm_kept_down: str | None = None

    def run(self) -> PlanResult:
        for event in self.plan.events:
            self.testbed.announce(event)
        starter = UnapprovedEventStarter(self.testbed)
        last = self._disturb("disturbed-run", self.plan.disturbances)
        self.testbed.heal(but=self.vm_kept_down)
        if self.plan.events_end:
            self.testbed.end_events()
        time.sleep(self.plan.pause)
        if self.plan.again:
            last = self._disturb("disturbed-run-2", self.plan.again)
        is_elsewhere = self.plan.other_controller
        if is_elsewhere and last.killed:
            self._end(self.testbed.run(OTHER_CONTROLLER, other_controller=True), is_disturbed=True)
        for number in range(1, MAX_RUNS + 1):
            self._end(
                self.testbed.run(f"next-run-{number}", other_controller=is_elsewhere, take_over=is_elsewhere),
                is_disturbed=False,
            )
            if not self.runs[-1].down and not self.testbed.active_events():
                break
            self.testbed.heal()
            self.testbed.end_events()
        starter.stop()
        lines = self.testbed.azure_log()
        evidence = Evidence(
            self.plan, self.runs, self.testbed.marks(), events_from(lines), approvals_from(lines), self.performed
        )
        return PlanResult(evidence, self.done, self.errors)

    def _disturb(self, name: str, planned: Sequence[Disturbance]) -> Controller:
        run = self.testbed.run(name)
        disturbances = Disturbances(self.testbed, run, planned)
        self._end(run, is_disturbed=True)
        disturbances.stop()
        if disturbances.second_run is not None:
            self._end(disturbances.second_run, is_disturbed=True)
        self.vm_kept_down = disturbances.vm_kept_down
        self.performed += disturbances.performed
        self.done += disturbances.done
        self.errors += disturbances.errors
        return run

    def _end(self, run: Controller, is_disturbed: bool) -> None:
        hung = not run.wait(max(1.0, run.began + RUN_TIMEOUT - time.time()))
        if hung:
            run.kill("kill-9-all")
            run.wait(10)
        assert run.ended is not None and run.status is not None
        self.runs.append(
            Run(
                name=run.name,
                is_disturbed=is_disturbed,
                began=run.began,
                ended=run.ended,
                status=run.status,
                killed=run.killed,
                hung=hung,
                down=frozenset(name for name, vm in self.testbed.vms.items() if not vm.host.is_up),
                drained=frozenset(name for name, vm in self.testbed.vms.items() if vm.is_drained),
                output=run.output,
            )
        )
