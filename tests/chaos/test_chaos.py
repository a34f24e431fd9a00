# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The short form of `make chaos`: a few seeds that together do everything that a plan can do."""

from __future__ import annotations

import pytest

from chaos.campaign import run_seeds
from chaos.drawing import draw
from chaos.plan import PREPARE, RECOVER
from chaos.report import Outcome
from support.hosts import capabilities
from support.hosts import rootfs
from support.repository import REPOSITORY
from tools.collection_tree import copy_tree

SEEDS = (86, 567, 728, 1721)
SIDE_BY_SIDE = 4  # a seed waits for much of its time


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Outcome]:
    """How all seeds ended."""
    if reason := capabilities.skip_reason() or capabilities.skip_reason_of_nspawn(rootfs.ensure()):
        pytest.skip(reason)
    folder, found = tmp_path_factory.mktemp("chaos"), dict[int, Outcome]()
    copy_tree(REPOSITORY, folder / "collections")
    run_seeds(
        SEEDS, folder, folder / "collections", SIDE_BY_SIDE, lambda outcome: found.update({outcome.seed: outcome})
    )
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_seed_violates_no_rule(seed: int, outcomes: dict[int, Outcome]) -> None:
    assert not outcomes[seed].violations, outcomes[seed].text


def test_plan_is_the_same_for_the_same_seed() -> None:
    assert [draw(seed) for seed in SEEDS] == [draw(seed) for seed in SEEDS]
    assert len({draw(seed)._replace(seed=0) for seed in range(100)}) == 100


def test_short_form_has_every_kind_of_disturbance() -> None:
    plans = [draw(seed) for seed in SEEDS]
    verbs = {disturbance.verb for plan in plans for disturbance in plan.disturbances}
    assert {verb.removesuffix("-ssh") for verb in verbs} == {
        *("kill-controller", "kill-host", "kill-sshd", "cut", "imds", "announce", "change-event", "second-run")
    }
    steps = {failure.step for plan in plans for failure in plan.failures}
    assert steps & set(PREPARE) and steps & set(RECOVER)
