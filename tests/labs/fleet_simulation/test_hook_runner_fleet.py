# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The promises of many hook runners, for a fleet in virtual time (docs/promises.md).

Some tests break one function of the hook runner, and expect a violation.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from fleet_simulation.azure_model import date_at
from fleet_simulation.fleet import Fleet, Plan
from hook_runner.maintenance.approvals import Approvals
from hook_runner.maintenance.hook_plan import HookPlan
from hook_runner.service.poller import Poller


def run(plan: Plan, disks: Path) -> Fleet:
    fleet = Fleet(plan, disks)
    began = time.process_time()
    violations = fleet.run()
    print(f"{plan.events} events for {plan.vms} VMs took {time.process_time() - began:.0f} s of CPU")
    for name in sorted(fleet.counts, key=str.casefold):
        print(f"  {name}: {fleet.counts[name]}")
    # each with the log of its host since that host was idle
    for violation in violations[:3]:
        print(f"seed {plan.seed}: {violation.invariant}: {violation.host}, {violation.key}: {violation.text}")
        for at, text in violation.log:
            print(f"  {date_at(at):%H:%M:%S.%f} {text}")
    assert not violations
    return fleet


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.all) for seed in (2, 3))])
def test_promises_hold_through_faults(disks: Path, seed: int) -> None:
    fleet = run(Plan(seed, vms=30, events=60), disks)
    counts = fleet.counts
    assert counts["events"] == 60 and counts["hooks recovered"] > 40
    assert counts["approved by a daemon"] > 10
    assert counts["VMs interrupted, prepared"] > counts["VMs interrupted, not prepared, by NotBefore"]


def test_without_faults_nothing_is_interrupted_unprepared(disks: Path) -> None:
    fleet = run(
        Plan(
            3,
            vms=30,
            events=40,
            faults=0,
            failing_hooks=0,
            lost_requests=0,
            by_user=0,
            changes=0,
            changes_at_approval=0,
            longest_lag=0.0,
        ),
        disks,
    )
    assert fleet.counts["approved by the coordinator"] > 0


@pytest.mark.all
@pytest.mark.parametrize("seed", range(10, 13))
def test_promises_hold_with_many_faults(disks: Path, seed: int) -> None:
    run(
        Plan(
            seed,
            vms=40,
            events=150,
            faults=2.0,
            failing_hooks=0.15,
            lost_requests=0.3,
            changes=0.6,
            changes_at_approval=0.4,
        ),
        disks,
    )


@pytest.mark.all
@pytest.mark.timeout(3600)
def test_promises_hold_for_1000_vms(disks: Path) -> None:
    # few events at a time for each group: the cost of a document grows with them, and the other tests have many
    sizes = (1, 1, 1, 2, 2, 3, 3, 5, 8)
    fleet = run(Plan(1, vms=1000, events=4000, events_per_vm_hour=1.0, group_sizes=sizes), disks)
    assert fleet.counts["events"] == 4000


# a function, what replaces it, and the invariants of which one must be broken
DEFECTS: dict[str, tuple[Any, str, Any, set[str]]] = {
    "a preparation that has not ended counts as done": (
        HookPlan,
        "prepared",
        lambda self, record: "ok",
        {"approval after preparation"},
    ),
    "each VM leads": (Approvals, "_why_not_leader", lambda *arguments: None, {"approval by the leader"}),
    "an approval is sent for an event that has changed": (
        Poller,
        "_is_unchanged",
        lambda self, event: True,
        {"approval after preparation", "approval by the leader", "approval of a scheduled event"},
    ),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_simulation_finds_the_defect(disks: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    owner, function, replacement, invariants = DEFECTS[name]
    monkeypatch.setattr(owner, function, replacement)
    fleet = Fleet(Plan(3, vms=25, events=60, faults=1.0, changes_at_approval=0.6), disks)
    assert invariants.intersection(violation.invariant for violation in fleet.run())
