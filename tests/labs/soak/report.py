# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The report on runs: plan and actions of those that failed, and the counts of all."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from soak.evidence import Evidence
from soak.plan import PREPARE, RECOVER, Plan
from soak.violations import Violation

WAITS = ("polls", "until-mark", "pause", "rest")


class Outcome(NamedTuple):
    """The outcome of a run; ``performed``: its actions as lines of text; ``seconds``: its duration."""

    plan: Plan
    violations: Sequence[Violation]
    performed: Sequence[str]
    counts: Mapping[str, int]
    seconds: float

    def as_text(self) -> str:
        lines = [
            self.plan.as_text(),
            "done:",
            *("    " + performed_action for performed_action in self.performed),
            "violations:",
        ]
        return "\n".join(lines + ["    " + str(violation) for violation in self.violations])


class Totals:
    """The sums over all runs."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.violations: collections.Counter[str] = collections.Counter()
        self.failing: list[int] = []

    def add(self, outcome: Outcome) -> None:
        self.counts.update(outcome.counts)
        self.violations.update(violation.invariant for violation in outcome.violations)
        if outcome.violations:
            self.failing.append(outcome.plan.seed)

    def as_text(self) -> str:
        lines = [f"{name:40} {count:6d}" for name, count in sorted(self.counts.items())]
        lines += [f"{'violations of ' + name:40} {count:6d}" for name, count in sorted(self.violations.items())]
        failing = " ".join(map(str, sorted(self.failing))) or "none"
        return "\n".join([*lines, f"seeds that failed: {failing}"])


def counts_of(evidence: Evidence) -> dict[str, int]:
    """Return the number of observations of one run, by name."""
    counts: collections.Counter[str] = collections.Counter(
        runs=1, processes=1 + len(evidence.restarts), events=len(evidence.event_ids())
    )
    counts["documents"] = len(evidence.polls)
    counts["approvals"] = sum(approval.status == 200 for approval in evidence.approvals)
    counts["preparations"] = sum(run.hook.startswith(PREPARE) for run in evidence.runs)
    counts["recoveries"] = sum(run.hook.startswith(RECOVER) for run in evidence.runs)
    counts["hook runs"] = len(evidence.runs)
    for performed_action in evidence.performed:
        if performed_action.action.verb not in WAITS:
            kind = (
                " " + str(performed_action.action.arguments[0])
                if performed_action.action.verb in ("imds", "imds-for", "stale")
                else ""
            )
            counts[f"did: {performed_action.action.verb}{kind}"] += 1
    return dict(counts)
