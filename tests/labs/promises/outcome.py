# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The outcome of one case with one coordinator, the promises that it keeps, and the table of all outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from chaos.plan import JOIN, SETTLE
from chaos.rules import approvals_follow_preparations, recoveries_wait_for_the_end
from promises.world import NAMES, World

COLUMNS = ("case", "coordinator", "prepared", "approved by", "NotBefore passed", "interrupted unprepared", "recovered")


class Outcome(NamedTuple):
    """The course of a case.

    Attributes:
        prepared: number of completed preparations by VM.
        approved_by: the VMs whose approvals IMDS accepted, in order, and "another client".
        unprepared: VMs that were interrupted unprepared.
        recovered: number of completed recoveries by VM.
        not_before_passed: whether the event started at NotBefore, without an approval.
        violations: broken rules of tests/labs/chaos.
    """

    case: str
    coordinator: str
    prepared: dict[str, int]
    approved_by: tuple[str, ...]
    unprepared: tuple[str, ...]
    recovered: dict[str, int]
    not_before_passed: bool
    violations: tuple[str, ...]

    def broken_promises(self) -> Iterator[str]:
        if self.unprepared and not (self.not_before_passed or "another client" in self.approved_by):
            yield f"interrupted unprepared before NotBefore: {', '.join(self.unprepared)}"
        for name in NAMES:
            if self.prepared[name] and self.recovered[name] != 1:
                yield f"{name} prepared {self.prepared[name]} times and recovered {self.recovered[name]} times"
            if self.recovered[name] > 1:
                yield f"{name} recovered {self.recovered[name]} times"
        yield from self.violations

    def cells(self) -> tuple[str, ...]:
        return (
            self.case,
            self.coordinator,
            _counts(self.prepared),
            ", ".join(self.approved_by) or "-",
            "yes" if self.not_before_passed else "no",
            ", ".join(self.unprepared) or "none",
            _counts(self.recovered),
        )


def outcome_of(case: str, coordinator: str, world: World) -> Outcome:
    """Return the outcome, from the marks of the hosts, the log of Azure and the observed interruptions."""
    evidence = world.evidence()
    approvals = [approval.vm for approval in world.approvals()]
    violations = [*approvals_follow_preparations(evidence), *recoveries_wait_for_the_end(evidence)]
    unprepared = [name for at, name in world.impacts.seen if evidence.preparation(name, at) != "prepared"]
    return Outcome(
        case,
        coordinator,
        {name: world.count(name, SETTLE) for name in NAMES},
        (*approvals, *(["another client"] if world.other_client else [])),
        tuple(sorted(set(unprepared))),
        {name: world.count(name, JOIN) for name in NAMES},
        world.not_before_passed,
        tuple(map(str, violations)),
    )


def table_of(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the table as lines of Markdown."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS)]
    return lines + ["| " + " | ".join(outcome.cells()) + " |" for outcome in outcomes]


def _counts(counts: dict[str, int]) -> str:
    return "all" if set(counts.values()) == {1} else ", ".join(f"{name} {number}" for name, number in counts.items())
