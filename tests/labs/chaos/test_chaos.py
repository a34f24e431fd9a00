# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""`make chaos` with a few seeds that together have every kind of disturbance."""

from __future__ import annotations

import pytest

from chaos.plan import PREPARE, RECOVER, draw_plan
from chaos.plan_execution import Outcome
from chaos.seed_runs import run_seeds
from support.hosts import capabilities, rootfs
from support.repository import REPOSITORY
from tools.repository.collection_tree import copy_tree

pytestmark = pytest.mark.all

SEEDS = (7, 38, 86, 561)
PARALLEL_SEEDS = 4  # a seed waits most of the time


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Outcome]:
    if reason := capabilities.skip_reason() or capabilities.skip_reason_of_nspawn(rootfs.ensure()):
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("chaos")
    copy_tree(REPOSITORY, folder / "collections")
    found = run_seeds(folder / "collections", SEEDS, folder, PARALLEL_SEEDS)
    return {outcome.seed: outcome for outcome in found}


@pytest.mark.parametrize("seed", SEEDS)
def test_seed_violates_no_rule(seed: int, outcomes: dict[int, Outcome]) -> None:
    assert not outcomes[seed].violations, outcomes[seed].text


def test_short_form_has_every_kind_of_disturbance() -> None:
    plans = [draw_plan(seed) for seed in SEEDS]
    verbs = {disturbance.verb for plan in plans for disturbance in plan.disturbances}
    assert {verb.removesuffix("-ssh") for verb in verbs} == {
        *("kill-controller", "kill-host", "kill-sshd", "cut", "imds", "announce", "change-event", "second-run")
    }
    steps = {failure.step for plan in plans for failure in plan.failures}
    assert steps & set(PREPARE) and steps & set(RECOVER)
