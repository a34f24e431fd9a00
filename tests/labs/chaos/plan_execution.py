# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Executes the plan of one seed: the disturbed run, the end of all faults, then undisturbed runs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from chaos.controller import Controller
from chaos.disturbances import Disturbances, UnapprovedEventStarter
from chaos.evidence import Evidence, Run, approvals_from, events_from
from chaos.plan import Plan
from chaos.rules import Violation, find_violations
from chaos.testbed import Testbed, open_testbed

# seconds after which a run counts as hanging: five times MAINTENANCE_PATIENCE
RUN_TIMEOUT = 300.0
MAX_RUNS = 3


class Outcome(NamedTuple):
    """The outcome of a seed; ``lines``: its plan and course; ``counts``: the number of observations by name."""

    seed: int
    violations: Sequence[Violation]
    lines: Sequence[str]
    counts: dict[str, int]

    @property
    def text(self) -> str:
        return "\n".join([f"seed {self.seed}", *self.lines, "violations:", *map(str, self.violations)])


def execute(seed: int, plan: Plan, folder: Path, sockets: Path, collections: Path) -> Outcome:
    """Execute a plan in the namespaces of this process, and check what happened."""
    with open_testbed(plan, folder, sockets, collections) as testbed:
        execution = _PlanExecution(plan, testbed)
        evidence = execution.run()
    violations = [*(Violation("harness", error) for error in execution.errors), *find_violations(evidence)]
    lines = [*map("{0[0]}: {0[1]}".format, plan._asdict().items()), "timeline:", *evidence.timeline()]
    return Outcome(seed, violations, lines, counts_of(evidence, execution.done))


def counts_of(evidence: Evidence, done: Sequence[str]) -> dict[str, int]:
    """Return the number of observations of one seed, by name."""
    counts = Counter({"events": len(evidence.events), "approvals": len(evidence.approvals)})
    counts.update(f"step {mark.step} {mark.what}" for mark in evidence.marks)
    counts.update(f"did: {verb}" for verb in done)
    counts.update(f"runs that ended with {run.killed or run.status}" for run in evidence.runs)
    return dict(counts)


class _PlanExecution:
    def __init__(self, plan: Plan, testbed: Testbed) -> None:
        self.testbed, self.plan = testbed, plan
        self.runs: list[Run] = []
        self.performed: list[tuple[float, str]] = []
        self.done: list[str] = []
        self.errors: list[str] = []
        self.vm_kept_down: str | None = None

    def run(self) -> Evidence:
        for event in self.plan.events:
            self.testbed.announce(event)
        starter = UnapprovedEventStarter(self.testbed)
        self._disturb()
        self.testbed.heal(but=self.vm_kept_down)
        if self.plan.events_end:
            self.testbed.end_events()
        time.sleep(self.plan.pause)
        for number in range(1, MAX_RUNS + 1):
            self._end(self.testbed.run(f"next-run-{number}"), is_disturbed=False)
            if not self.runs[-1].down and not self.testbed.active_events():
                break
            self.testbed.heal()
            self.testbed.end_events()
        starter.stop()
        lines = self.testbed.azure_log()
        marks = self.testbed.marks()
        return Evidence(self.runs, marks, events_from(lines), approvals_from(lines), self.performed)

    def _disturb(self) -> None:
        run = self.testbed.run("disturbed-run")
        disturbances = Disturbances(self.testbed, run, self.plan.disturbances)
        self._end(run, is_disturbed=True)
        disturbances.stop()
        if disturbances.second_run is not None:
            self._end(disturbances.second_run, is_disturbed=True)
        self.vm_kept_down = disturbances.vm_kept_down
        self.performed, self.done, self.errors = disturbances.performed, disturbances.done, disturbances.errors

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
