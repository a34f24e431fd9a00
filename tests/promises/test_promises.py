# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""No host is interrupted unprepared unless NotBefore passed, and each host recovers once."""

from __future__ import annotations

from pathlib import Path

import pytest

from promises.cases import CASES, Case
from promises.coordinators import Playbook
from promises.outcome import Outcome, outcome_of
from promises.world import Hosts, world_of

SHORT = ("one fails to prepare", "answer to the approval is lost")
PARAMETERS = [pytest.param(case, id=case.name, marks=[pytest.mark.short] * (case.name in SHORT)) for case in CASES]


@pytest.mark.parametrize("case", PARAMETERS)
def test_playbook(case: Case, hosts: Hosts, collections: Path, outcomes: list[Outcome], tmp_path: Path) -> None:
    with world_of(hosts, tmp_path / "case") as world:
        coordinator = Playbook(world, collections)
        try:
            case.happens(world, coordinator)
            coordinator.finish()
            outcome = outcome_of(case.name, coordinator.name, world)
        finally:
            coordinator.close()
        outcomes.append(outcome)
        assert list(outcome.broken_promises()) == [], world.explain()
        if case.approved_by is not None:
            assert outcome.approved_by == case.approved_by, world.explain()
        assert outcome.unprepared == case.unprepared, world.explain()
