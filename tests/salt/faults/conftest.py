# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A fleet of three VMs with all defaults, for each file of tests one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from salt_lab.azure import Azure
from salt_lab.fleet import VMS, Fleet, availability_set, fleet_of
from salt_lab.installed import Installed

@pytest.fixture(scope="module")
def azure() -> Iterator[Azure]:
    """One of its own, which no other test watches."""
    with availability_set() as running:
        yield running


@pytest.fixture(scope="module")
def running(installed: Installed, azure: Azure) -> Iterator[Fleet]:
    with fleet_of(installed, azure, VMS) as made:
        yield made


@pytest.fixture
def fleet(running: Fleet, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    running.notes = request.node.user_properties
    running.start_over()
    yield running
    running.end_all()
