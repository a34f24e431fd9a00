# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The promises of the hook runner, for a fleet in virtual time (docs/promises.md)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fleet_simulation.fleet import Fleet
from fleet_simulation.plan import Plan, without_faults
from fleet_simulation.report import counts_as_text, violations_as_text


def run(plan: Plan, disks: Path) -> Fleet:
    fleet = Fleet(plan, disks)
    began = time.process_time()
    violations = fleet.run(stops_at_violation=True)
    print(f"{plan.events} events for {plan.vms} VMs took {time.process_time() - began:.0f} s of CPU")
    print(counts_as_text(fleet.counts))
    assert not violations, violations_as_text(plan.seed, violations)
    return fleet


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.all) for seed in (2, 3))])
def test_promises_hold_through_faults(disks: Path, seed: int) -> None:
    fleet = run(Plan(seed, vms=30, events=60), disks)
    counts = fleet.counts
    assert counts["events"] == 60 and counts["hooks recovered"] > 40
    assert counts["approved by a daemon"] > 10
    assert counts["VMs interrupted, prepared"] > counts["VMs interrupted, not prepared, by NotBefore"]


def test_without_faults_nothing_is_interrupted_unprepared(disks: Path) -> None:
    fleet = run(without_faults(3, vms=30, events=40), disks)
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
@pytest.mark.parametrize("lag", [20.0, 50.0])
def test_promises_hold_with_backends_that_differ_for_long(disks: Path, lag: float) -> None:
    run(Plan(21, vms=40, events=150, longest_lag=lag), disks)


@pytest.mark.all
@pytest.mark.timeout(3600)
def test_promises_hold_for_1000_vms_and_10000_events(disks: Path) -> None:
    # few events at a time for each group: the cost of a document grows with them, and the other tests have many
    fleet = run(
        Plan(1, vms=1000, events=10_000, events_per_vm_hour=1.0, group_sizes=(1, 1, 1, 2, 2, 3, 3, 5, 8)), disks
    )
    assert fleet.counts["events"] == 10_000


@pytest.mark.all
def test_same_seed_gives_the_same_run(disks: Path) -> None:
    first, second = (Fleet(Plan(5, vms=10, events=12), disks / name) for name in ("a", "b"))
    for fleet in (first, second):
        fleet.run()
    assert first.counts == second.counts and first.agenda.done == second.agenda.done
