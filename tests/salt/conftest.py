# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Fixtures of Salt's tests: a simulated Azure, and the Salt in SALT_HOME."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from support.salt.azure import Azure, simulated
from support.salt.cluster import OPEN
from support.salt.fleet import SPARE, Fleet, running_fleet
from support.salt.minion import Minion
from support.salt.salt_installation import SaltInstallation

VMS = {
    "web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}},
    "spare": {"kind": "standalone", "vms": {"vm3": {}}},
}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the logs of the daemons with a failure."""
    report = yield
    if report.failed:
        report.sections += [(f"the site in {here.folder}", here.log_text()) for here in OPEN]
    return report


@pytest.fixture(scope="session")
def installation() -> SaltInstallation:
    home = os.environ.get("SALT_HOME")
    if not home:
        pytest.skip("SALT_HOME names no environment with Salt; nox -s 'salt(3008)' makes one")
    return SaltInstallation.at(Path(home).absolute())


@pytest.fixture(scope="session")
def azure() -> Iterator[Azure]:
    with simulated(VMS) as running:
        yield running


@pytest.fixture(scope="session")
def running(installation: SaltInstallation) -> Iterator[Fleet]:
    """The cluster of all tests that need no other one."""
    with running_fleet(installation) as made:
        yield made


@pytest.fixture
def fleet(running: Fleet) -> Iterator[Fleet]:
    """The running fleet, with all minions at work and unprepared before and after the test."""
    running.reset()
    yield running
    running.end_all()


@pytest.fixture(scope="session")
def spare(running: Fleet) -> Minion:
    """A minion after sync_all, whose events the engine leaves to the tests."""
    made = running.cluster.minion(
        SPARE,
        azure_events={"endpoint": running.azure.endpoints[SPARE]},
        beacons={"azure_events": [{"interval": 1}, {"repeat": 3600}]},
    )
    running.cluster.start(SPARE)
    made.ask("saltutil.sync_all")
    return made


@pytest.fixture(autouse=True)
def end_leftover_events(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "azure" in request.fixturenames:
        azure: Azure = request.getfixturevalue("azure")
        azure.end_all()
