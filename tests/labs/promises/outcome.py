# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The outcome of one case with one coordinator, and the promises that it breaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from chaos.plan import JOIN, SETTLE
from chaos.rules import approvals_follow_preparations, recoveries_wait_for_the_end
from promises.world import NAMES, World


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


def outcome_of(world: World) -> Outcome:
    """Return the outcome, from the marks of the hosts, the log of Azure and the observed interruptions."""
    evidence = world.evidence()
    approvals = [approval.vm for approval in world.approvals()]
    violations = [*approvals_follow_preparations(evidence), *recoveries_wait_for_the_end(evidence)]
    unprepared = [name for at, name in world.impacts.seen if evidence.preparation(name, at) != "prepared"]
    return Outcome(
        {name: world.count(name, SETTLE) for name in NAMES},
        (*approvals, *(["another client"] if world.other_client else [])),
        tuple(sorted(set(unprepared))),
        {name: world.count(name, JOIN) for name in NAMES},
        world.not_before_passed,
        tuple(map(str, violations)),
    )
