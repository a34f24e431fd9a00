# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The promises of Salt's engine, for a fleet in virtual time (docs/promises.md)."""

from __future__ import annotations

from typing import Any

import pytest

from azure_events_engine import answer_handling, approvals, maintenance_jobs
from azure_events_engine.answers import PREPARED
from azure_events_engine.state import Maintenance, Member, State
from azure_scheduled_events.release import Report
from fleet_simulation.salt_fleet import Result, SaltFleet, SaltPlan


def run(plan: SaltPlan) -> Result:
    fleet = SaltFleet(plan)
    result = fleet.run()
    assert not fleet.violations, f"seed {plan.seed}: " + "\n".join(map(str, fleet.violations[:5]))
    return result


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.all) for seed in (2, 3))])
def test_promises_hold_through_loss_and_restarts(seed: int) -> None:
    result = run(SaltPlan(seed, minions=40, events=80))
    # a list that any minion gives withholds an approval, also if the minion is silent from then on
    assert result.approved > 30 and result.prepared > 40 and result.approved_twice == 0


@pytest.mark.all
def test_without_faults_every_event_is_approved_once() -> None:
    plan = SaltPlan(3, minions=40, events=60, loss=0.0, hostile=0.0, restarts=0, changes=0.0, unknown=0.0, twice=0.0)
    result = run(plan)
    assert result.not_approved == [] and result.approved_twice == 0


def test_two_masters_prepare_approve_and_recover_once() -> None:
    result = run(SaltPlan(7, minions=20, events=20, loss=0.0, hostile=0.0, restarts=2, masters=2))
    assert result.approved > 15 and result.approved_twice == 0


@pytest.mark.all
@pytest.mark.parametrize("seed", range(10, 13))
def test_promises_hold_with_many_faults(seed: int) -> None:
    run(SaltPlan(seed, minions=60, events=300, loss=0.2, hostile=0.1, restarts=15, changes=0.5, unknown=0.2, twice=0.2))


@pytest.mark.all
@pytest.mark.timeout(3600)
def test_promises_hold_for_1000_minions() -> None:
    plan = SaltPlan(1, minions=1000, events=4000, restarts=20, group_sizes=(1, 1, 1, 2, 2, 3, 3, 5, 8))
    assert run(plan).events == 4000


def _prepared(_state: State, maintenance: Maintenance, _vm: str, owner: str) -> Report:
    return Report(maintenance.members.get(owner, Member()).sighting, True)


# a value or a function, what replaces it, and the invariants of which one must be broken
DEFECTS: dict[str, tuple[Any, str, Any, set[str]]] = {
    "each VM counts as prepared": (approvals, "report_of", _prepared, {"approval after all have prepared"}),
    "a preparation before a reboot counts": (
        answer_handling,
        "OLD_BOOT",
        PREPARED,
        {"approval after all have prepared"},
    ),
    "an event is never over": (
        maintenance_jobs,
        "may_be_over",
        lambda member: False,
        {"recovered in time", "at the end"},
    ),
    "an approval without an answer is repeated at once": (approvals, "_APPROVAL_TIMEOUT", 0.0, {"approval once"}),
}


# the first seed shows it; the property of all frontends has the same of single documents
QUICK = ("each VM counts as prepared",)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.all) for name in DEFECTS]
)
def test_simulation_finds_the_defect(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    owner, function, replacement, invariants = DEFECTS[name]
    monkeypatch.setattr(owner, function, replacement)
    found: set[str] = set()
    for seed in (1, 2, 3, 4):
        fleet = SaltFleet(SaltPlan(seed, minions=30, events=60, changes=0.4, unknown=0.1))
        fleet.run()
        found |= {violation.invariant for violation in fleet.violations}
        if found & invariants:
            return
    pytest.fail(f"no violation of {' or '.join(invariants)}; found: {', '.join(sorted(found)) or 'none'}")
