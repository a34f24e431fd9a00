# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The report on chaos runs: plan and timeline of those that failed, and the counts of all."""

from __future__ import annotations

import collections
import json
from pathlib import Path
from typing import NamedTuple

from chaos.evidence import Evidence


class Outcome(NamedTuple):
    """How a seed ended.

    Attributes:
        violations: pairs of rule and observation.
        text: plan, timeline and violations as text.
        counts: number of observations by name.
    """

    seed: int
    cause: str
    violations: tuple[tuple[str, str], ...]
    text: str
    counts: dict[str, int]
    seconds: float

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(self._asdict()))

    @classmethod
    def read(cls, path: Path) -> Outcome:
        content = json.loads(path.read_text())
        return cls(**{**content, "violations": tuple((rule, text) for rule, text in content["violations"])})


class Totals:
    """The sums over all seeds."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.violations: collections.Counter[str] = collections.Counter()
        self.seeds_of: collections.Counter[str] = collections.Counter()
        self.failing: list[int] = []

    def add(self, outcome: Outcome) -> None:
        self.counts.update(outcome.counts)
        self.violations.update(rule for rule, _text in outcome.violations)
        self.seeds_of.update({rule for rule, _text in outcome.violations})
        if outcome.violations:
            self.failing.append(outcome.seed)

    def as_text(self) -> str:
        lines = [f"{name:55} {count:6d}" for name, count in sorted(self.counts.items())]
        lines += [
            f"{'violations: ' + rule:55} {count:6d} in {self.seeds_of[rule]} seeds"
            for rule, count in sorted(self.violations.items())
        ]
        failing = " ".join(map(str, sorted(self.failing))) or "none"
        return "\n".join([*lines, f"seeds that failed: {failing}"])


def counts_of(evidence: Evidence, done: list[str]) -> dict[str, int]:
    """Return the number of observations of one seed, by name."""
    counts: collections.Counter[str] = collections.Counter(
        seeds=1, VMs=len(evidence.plan.vms), events=len(evidence.events)
    )
    counts["approvals"] = len(evidence.approvals)
    counts["runs of ansible-playbook"] = len(evidence.runs)
    for mark in evidence.marks:
        if mark.what != "begin":
            counts[f"step {mark.step} {mark.what}"] += 1
    counts.update("did: " + verb for verb in done)
    counts["VMs drained after the disturbed run"] = len(evidence.runs[0].drained)
    for run in evidence.runs:
        kind = "disturbed" if run.is_disturbed else "undisturbed"
        counts["runs that ended by themselves without a report"] += not run.killed and run.report is None
        counts[f"{kind} runs that ended with {run.killed or run.status}"] += 1
    return dict(counts)
