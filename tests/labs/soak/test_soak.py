# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""`make soak` with a few seeds that together have every kind of action."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from soak.campaign import run_seeds
from soak.emulated_host import EmulatedHost
from soak.plan_generator import draw_plan
from soak.report import Outcome

pytestmark = pytest.mark.all

SEEDS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 20)
PARALLEL_SEEDS = 5  # a run waits most of the time


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Outcome]:
    found: dict[int, Outcome] = {}
    run_seeds(
        SEEDS,
        tmp_path_factory.mktemp("soak"),
        PARALLEL_SEEDS,
        600.0,
        lambda outcome: found.update({outcome.plan.seed: outcome}),
    )
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_run_violates_no_invariant(seed: int, outcomes: dict[int, Outcome]) -> None:
    assert not outcomes[seed].violations, outcomes[seed].as_text()


def test_plan_is_the_same_for_the_same_seed() -> None:
    assert [draw_plan(seed) for seed in SEEDS] == [draw_plan(seed) for seed in SEEDS]
    assert len({draw_plan(seed)._replace(seed=0) for seed in range(100)}) == 100


def test_process_has_the_boot_and_the_clock_of_another_host(tmp_path: Path) -> None:
    host = EmulatedHost(tmp_path / "boot", tmp_path / "skew", 3600)
    program = (
        "from datetime import datetime; boot = open('/proc/sys/kernel/random/boot_id').read().strip(); "
        "print(boot, time.time(), datetime.now().timestamp())"
    )
    boot, *times = subprocess.run(
        [sys.executable, "-c", host.program() + program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert boot == (tmp_path / "boot").read_text().strip()
    assert all(3590 < float(each) - time.time() < 3660 for each in times)
