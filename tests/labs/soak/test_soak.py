# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""`make soak` with a few seeds that together have every kind of action; and each check finds its violation."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from seed_campaign import Approval, Outcome, run_seeds
from soak.checks import Evidence, HookRun, find_violations
from soak.emulated_host import EmulatedHost
from soak.plan import Hook, Plan, Setup, draw_plan
from soak.plan_execution import run_seed

SEEDS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20)
PARALLEL_SEEDS = 5  # a run waits most of the time
SETUP = Setup((Hook("prepare", "10-a", "works"), Hook("recover", "10-a", "works")))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Outcome]:
    return run_seeds(run_seed, SEEDS, tmp_path_factory.mktemp("soak"), PARALLEL_SEEDS)


@pytest.mark.all
@pytest.mark.parametrize("seed", SEEDS)
def test_run_violates_no_invariant(seed: int, outcomes: dict[int, Outcome]) -> None:
    assert not outcomes[seed].violations, outcomes[seed].text


@pytest.mark.all
def test_plan_is_the_same_for_the_same_seed() -> None:
    assert [draw_plan(seed) for seed in SEEDS] == [draw_plan(seed) for seed in SEEDS]
    assert len({str(draw_plan(seed)) for seed in range(100)}) == 100


@pytest.mark.all
def test_process_has_the_boot_and_the_clock_of_another_host(tmp_path: Path) -> None:
    host = EmulatedHost(tmp_path, 3600)
    program = (
        "\nfrom datetime import datetime; boot = open('/proc/sys/kernel/random/boot_id').read().strip(); "
        "print(boot, time.time(), datetime.now().timestamp())"
    )
    boot, *times = subprocess.run(
        [sys.executable, "-c", host.program() + program],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert boot == (tmp_path / "boot").read_text().strip()
    assert all(3590 < float(each) - time.time() < 3660 for each in times)


def run(hook: str, began: float, succeeds: bool = True) -> HookRun:
    return HookRun(f"{hook}/10-a", "A", began, began + 0.1 if succeeds else None)


def found(**given: Any) -> list[str]:
    """Return the rules that a run violates: by default it prepared, had its approval, and recovered."""
    usual: dict[str, Any] = {
        "plan": Plan(SETUP, ()),
        "runs": [run("prepare", 1.5), run("recover", 5.0)],
        "approvals": [Approval(2.5, "vm1", "A")],
        "reboots": [],
    }
    return sorted({violation.rule for violation in find_violations(Evidence(**{**usual, **given}))})


def test_run_without_fault_passes() -> None:
    assert found() == []


@pytest.mark.parametrize(
    "runs",
    [
        [run("recover", 5.0)],
        [run("prepare", 1.5, succeeds=False), run("recover", 5.0)],
        [run("prepare", 2.45), run("recover", 5.0)],
        [run("prepare", 1.5), run("recover", 2.0), run("recover", 5.0)],
    ],
    ids=["never begun", "failed or killed", "ended after it", "undone before it"],
)
def test_approval_without_a_preparation_that_counts_is_found(runs: list[HookRun]) -> None:
    assert found(runs=runs) == ["1 approval after preparation"]


def test_approval_after_a_reboot_is_found_unless_the_effect_persists() -> None:
    assert found(reboots=[2.0]) == ["1 approval after preparation"]
    persisting = Setup((SETUP.hooks[0]._replace(persists=True), SETUP.hooks[1]))
    assert found(reboots=[2.0], plan=Plan(persisting, ())) == []


def test_missing_recovery_is_found() -> None:
    missing = [run("prepare", 1.5), run("recover", 5.0, succeeds=False)]
    assert found(runs=missing) == ["3 recovered"]
    assert found(runs=[*missing, run("recover", 6.0), run("started", 7.0)]) == ["3 recovered"]
