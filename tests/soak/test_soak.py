# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The short form of `make soak`: a few seeds that between them do everything that a plan can do."""

from __future__ import annotations

from pathlib import Path

import pytest

from soak.campaign import run_seed
from soak.drawing import draw

SEEDS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20)


@pytest.mark.parametrize("seed", SEEDS)
def test_run_violates_no_invariant(seed: int, tmp_path: Path) -> None:
    outcome = run_seed(seed, tmp_path)
    assert not outcome.violations, outcome.as_text() + "\n" + log_of(tmp_path / str(seed))


def test_plan_is_the_same_for_the_same_seed() -> None:
    assert [draw(seed) for seed in SEEDS] == [draw(seed) for seed in SEEDS]
    assert len({draw(seed)._replace(seed=0) for seed in range(100)}) == 100


def log_of(folder: Path) -> str:
    """The daemon's log."""
    file = folder / "stderr"
    return file.read_text() if file.exists() else ""
