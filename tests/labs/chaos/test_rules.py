# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Each rule finds its violation in constructed evidence, and no violation in a good run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chaos.evidence import Approval, AzureEvent, Evidence, Run
from chaos.rules import find_violations
from chaos.vm import Mark

EVENT = AzureEvent("a", "Freeze", ((0.0, ("vm1", "vm2")),), not_before=100.0, started=30.0, over=40.0)
NONE: frozenset[str] = frozenset()
RUN = Run("next-run-1", False, 1.0, 60.0, 0, "", False, NONE, NONE, "")


def marks(**times: float) -> list[Mark]:
    """Return marks of both VMs for steps at these times."""
    return sorted(
        Mark(at, vm, step, what, "next-run-1")
        for step, at in times.items()
        for vm in ("vm1", "vm2")
        for what in ("begin", "ok")
    )


GOOD = Evidence([RUN], marks(drain=10, settle=11, warm=45, join=46), [EVENT], [Approval(20.0, "vm1", "a")], [])


def failed(step: str, at: float) -> Callable[[Evidence], Evidence]:
    def change(evidence: Evidence) -> Evidence:
        others = [mark for mark in evidence.marks if (mark.vm, mark.step) != ("vm2", step)]
        return evidence._replace(
            marks=sorted(
                [*others, Mark(at, "vm2", step, "begin", "next-run-1"), Mark(at, "vm2", step, "failed", "next-run-1")]
            )
        )

    return change


def with_run(**changes: Any) -> Callable[[Evidence], Evidence]:
    return lambda evidence: evidence._replace(runs=[evidence.runs[0]._replace(**changes)])


def test_rules_good_run_has_no_violation() -> None:
    assert find_violations(GOOD) == []


@pytest.mark.parametrize(
    "rule, change",
    [
        ("drained without an event", with_run(drained=frozenset({"vm2"}))),
        ("lost recovery", with_run(drained=frozenset({"vm2"}), down=frozenset({"vm2"}))),
        ("approval after a failed preparation", failed("settle", 11)),
        ("approval without preparation", lambda evidence: evidence._replace(approvals=[Approval(9.0, "vm1", "a")])),
        ("approval without preparation", lambda evidence: evidence._replace(approvals=[Approval(10.5, "vm1", "a")])),
        (
            "recovery during the event",
            lambda evidence: evidence._replace(marks=marks(drain=10, settle=11, warm=34, join=35)),
        ),
        ("event ignored", lambda evidence: evidence._replace(marks=[], approvals=[])),
        ("hang", with_run(hung=True, killed="kill-9-all")),
        ("exit status", with_run(status=1)),
        ("exit status", with_run(status=2)),
        ("exit status", with_run(is_disturbed=True, drained=frozenset({"vm1"}))),
        ("exit status", failed("settle", 11)),
        (
            "two runs at once",
            lambda evidence: evidence._replace(
                runs=[RUN._replace(name="second-run"), RUN],
                marks=[
                    Mark(10.0, "vm1", "drain", "begin", "next-run-1"),
                    Mark(12.0, "vm1", "warm", "begin", "second-run"),
                ],
            ),
        ),
        ("message", with_run(output="fatal: [vm1]: 'maintenance_events' is undefined")),
    ],
)
def test_rule_finds_its_violation(rule: str, change: Callable[[Evidence], Evidence]) -> None:
    assert rule in [violation.rule for violation in find_violations(change(GOOD))]


def test_vm_that_an_event_still_affects_may_be_drained() -> None:
    running = GOOD._replace(events=[EVENT._replace(over=None)], marks=marks(drain=10, settle=11))
    found = [violation.rule for violation in find_violations(with_run(drained=frozenset({"vm1", "vm2"}))(running))]
    assert found == ["lost recovery"] * 2  # this rule is for the end of a seed, when no event is left


def test_run_with_an_unprepared_vm_may_fail() -> None:
    early = GOOD._replace(
        events=[EVENT._replace(not_before=12.0, started=12.0)],
        marks=marks(drain=13, settle=14, warm=45, join=46),
        approvals=[],
    )
    assert find_violations(with_run(status=4)(early)) == []
