# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""No frontend releases a VM that is not prepared, whatever two backends of each VM answer, unless it was told to.

Some tests break one rule of a frontend, and expect the property to fail.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.filter import maintenance_approvals
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.release import (
    Obstacle,
    Report,
    obstacles,
    release_set,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance import approvals, coordination
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.announced import (
    Announced,
    listings_of,
)
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis.strategies import SearchStrategy

from azure_events_engine import approvals as engine_approvals
from azure_events_engine import state as engine_state
from azure_events_steps import status as minion_status
from azure_events_steps.minion import Minion
from azure_events_steps.record import Reason, Record
from azure_scheduled_events import release, tracking
from azure_scheduled_events.tracking import Sighting
from fleet_simulation.frontends.evidence import INCOMPLETE, UNPREPARED, Finding
from fleet_simulation.frontends.hook_runners import CONFIGURATIONS, Coordinated, HookRunners
from fleet_simulation.frontends.role import Role, Rulebook
from fleet_simulation.frontends.salt_minions import SaltMinions
from fleet_simulation.frontends.scenario import ESCALATIONS, SCENARIOS, Scenario
from fleet_simulation.frontends.world import World
from fleet_simulation.profiles import make_profiles
from hook_runner.maintenance.hook_plan import HookPlan

HOOK_RUNNER, ROLE, COORDINATED, SALT, RULEBOOK = "hook runner", "role", "role that coordinates", "Salt", "rulebook"
# scenarios of a run: two seconds of CPU time, and the fifth part of a minute
FEW = {HOOK_RUNNER: 20, ROLE: 50, COORDINATED: 20, SALT: 40, RULEBOOK: 60}
MANY = {HOOK_RUNNER: 140, ROLE: 350, COORDINATED: 140, SALT: 240, RULEBOOK: 500}
ESCALATED = 20

# takes a world and a folder
Make = Callable[[World, Path], HookRunners | Role | Coordinated | SaltMinions | Rulebook]


@pytest.fixture(scope="module")
def frontends(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Make]:
    profiles = make_profiles(tmp_path_factory.mktemp("profiles"), CONFIGURATIONS)
    return {
        HOOK_RUNNER: partial(HookRunners, profiles=profiles),
        ROLE: Role,
        COORDINATED: partial(Coordinated, profiles=profiles),
        SALT: SaltMinions,
        RULEBOOK: Rulebook,
    }


class Broken(Exception):
    """The property does not hold."""


def check(
    make: Make,
    disks: Path,
    scenarios: int,
    found: Callable[[World], list[Finding]],
    drawn_from: SearchStrategy[Scenario] = SCENARIOS,
) -> int:
    """Run so many scenarios; return the number of approvals, or raise Broken at the first finding.

    hypothesis derives the scenarios from this function alone; a failure prints its scenario.
    """
    sent = 0

    @settings(
        max_examples=scenarios,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate, Phase.shrink) if found is every_finding else (Phase.generate,),
        verbosity=Verbosity.normal if found is every_finding else Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(scenario=drawn_from)
    def holds(scenario: Scenario) -> None:
        nonlocal sent
        # the pauses after errors
        random.seed(scenario.seed)
        world = World(scenario)
        with tempfile.TemporaryDirectory(dir=disks) as folder:
            make(world, Path(folder)).run()
        sent += world.approvals
        problems = found(world)
        if problems:
            raise Broken("; ".join(problem.text for problem in problems))

    began = time.process_time()
    holds()
    print(f"{scenarios} scenarios, {sent} approvals, {time.process_time() - began:.1f} s of CPU")
    return sent


def every_finding(world: World) -> list[Finding]:
    return world.findings


@pytest.mark.parametrize("name", FEW)
def test_no_unprepared_vm_is_released(frontends: Mapping[str, Make], disks: Path, name: str) -> None:
    assert check(frontends[name], disks, FEW[name], every_finding) > 10


@pytest.mark.all
@pytest.mark.parametrize("name", MANY)
def test_no_unprepared_vm_is_released_in_many_scenarios(frontends: Mapping[str, Make], disks: Path, name: str) -> None:
    assert check(frontends[name], disks, MANY[name], every_finding) > 50


def test_minion_of_salt_is_prepared_for_the_type_that_it_lists(frontends: Mapping[str, Make], disks: Path) -> None:
    assert check(frontends[SALT], disks, ESCALATED, every_finding, ESCALATIONS) > 10


class Defect(NamedTuple):
    """One rule of a frontend, what replaces it, and the finding that must come of it in these scenarios."""

    frontend: str
    owner: Any
    name: str
    replacement: Any
    rule: str = UNPREPARED
    scenarios: SearchStrategy[Scenario] = SCENARIOS


def _without_one_report(reports: Mapping[str, Report], *given: Any) -> list[Obstacle]:
    """Ignore the report of the first VM, and release this VM."""
    first = min(release_set(reports.values()).keys() & reports.keys(), default="")
    return obstacles({key: report for key, report in reports.items() if key != first}, given[0], True)


def _of_one_report(reports: Iterable[Report]) -> dict[str, str]:
    return release_set(list(reports)[:1])


def _only_of_absence(*given: Any) -> list[release.Obstacle]:
    return [each for each in release.obstacles(*given) if not each.vm or each.code == "not_listed"]


def _of_the_first_event(announced: Sequence[Announced]) -> dict[str, list[dict[str, Any]]]:
    return listings_of(each._replace(other_events=()) for each in announced)


_record = minion_status._record


def _of_the_recorded_type(minion: Minion, found: Record, reason: Reason, sighting: Sighting | None) -> dict[str, Any]:
    """Report the state for the type that the event had at its preparation."""
    return {**_record(minion, found, reason, sighting), "state": found.state_of(reason)}


# a VM that one document lacks counts as gone
_FORGETS: tuple[Any, str, Any] = (tracking._Present, "_absent", lambda present, confirms, document: ())

DEFECTS = {
    "a hook that runs counts as done": Defect(HOOK_RUNNER, HookPlan, "prepared", lambda self, record: "ok"),
    "a hook runner forgets a VM after one document": Defect(HOOK_RUNNER, *_FORGETS, INCOMPLETE),
    "the role leaves out a report": Defect(ROLE, approvals, "obstacles", _without_one_report),
    "the role releases the VMs of one report": Defect(ROLE, approvals, "release_set", _of_one_report, INCOMPLETE),
    "the coordinator finds no obstacle": Defect(COORDINATED, coordination, "obstacles", lambda *given: []),
    "the coordinator leaves out a report": Defect(COORDINATED, coordination, "obstacles", _without_one_report),
    "the engine takes each listed VM for prepared": Defect(SALT, engine_approvals, "obstacles", _only_of_absence),
    "a minion takes a preparation for that of each type": Defect(
        SALT, minion_status, "_record", _of_the_recorded_type, scenarios=ESCALATIONS
    ),
    "the engine takes a preparation for that of each type": Defect(
        SALT, engine_state, "counts_for", lambda *types: True, scenarios=ESCALATIONS
    ),
    "the run of a rulebook leaves out a report": Defect(RULEBOOK, approvals, "obstacles", _without_one_report),
    "the run of a rulebook leaves out the event source": Defect(
        RULEBOOK, maintenance_approvals, "listings_of", lambda announced: {}
    ),
    "the run of a rulebook knows one event of the source": Defect(
        RULEBOOK, maintenance_approvals, "listings_of", _of_the_first_event
    ),
}


# these take the most scenarios
RARE = (
    "a hook runner forgets a VM after one document",
    "the role releases the VMs of one report",
    "the run of a rulebook knows one event of the source",
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.all if name in RARE else ()) for name in DEFECTS]
)
def test_property_finds_the_defect(
    frontends: Mapping[str, Make], disks: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    defect = DEFECTS[name]
    monkeypatch.setattr(defect.owner, defect.name, defect.replacement)
    with pytest.raises(Broken):
        check(
            frontends[defect.frontend],
            disks,
            MANY[defect.frontend] * (4 if name in RARE else 1),
            lambda world: [each for each in world.findings if each.rule == defect.rule],
            defect.scenarios,
        )
