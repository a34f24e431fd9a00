# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""No host is interrupted unprepared unless NotBefore passed, and each host recovers once."""

from __future__ import annotations

from pathlib import Path

import pytest

from promises.cases import CASES, Case
from promises.coordinators import Coordinator, HookRunners, Playbook, RulebookEngine
from promises.outcome import outcome_of
from promises.salt_site import SaltEngine, running_minions
from promises.world import Hosts, World, world_of
from support.eda.rulebook import PROGRAM, java_home
from support.salt.master import Master

pytestmark = pytest.mark.all

each_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def check(case: Case, world: World, coordinator: Coordinator) -> None:
    try:
        case.happens(world, coordinator)
        coordinator.finish()
        outcome = outcome_of(world)
    finally:
        coordinator.close()
    print(outcome)
    assert list(outcome.broken_promises()) == [], world.explain()
    if case.approved_by is not None:
        assert outcome.approved_by in case.approved_by, world.explain()
    assert outcome.unprepared == case.unprepared_with(coordinator), world.explain()


@each_case
def test_playbook(case: Case, hosts: Hosts, collections: Path, tmp_path: Path) -> None:
    with world_of(hosts, tmp_path / "case") as world:
        check(case, world, Playbook(world, collections))


@pytest.mark.usefixtures("hook_runners")
@each_case
def test_hook_runners(case: Case, hosts: Hosts, collections: Path, tmp_path: Path) -> None:
    with world_of(hosts, tmp_path / "case") as world:
        check(case, world, HookRunners(world, collections))


@each_case
def test_salt(case: Case, hosts: Hosts, salt_master: Master, tmp_path: Path) -> None:
    with world_of(hosts, tmp_path / "case") as world, running_minions(hosts):
        check(case, world, SaltEngine(world, salt_master))


@pytest.mark.skipif(not java_home() or not PROGRAM.exists(), reason="ansible-rulebook and Java are not installed")
@each_case
def test_rulebook(case: Case, hosts: Hosts, collections: Path, tmp_path: Path) -> None:
    with world_of(hosts, tmp_path / "case") as world:
        check(case, world, RulebookEngine(world, collections))
