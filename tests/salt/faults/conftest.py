# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A fleet of three VMs with all defaults; files of tests that need another one replace ``running``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.salt.azure import Azure
from support.salt.fleet import Fleet, running_fleet
from support.salt.salt_installation import SaltInstallation


@pytest.fixture(scope="session")
def running(installation: SaltInstallation) -> Iterator[Fleet]:
    with running_fleet(installation) as made:
        yield made


@pytest.fixture
def fleet(running: Fleet, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    running.notes = request.node.user_properties
    running.reset()
    yield running
    running.end_all()


@pytest.fixture(scope="module")
def azure(running: Fleet) -> Azure:
    """The fleet's own, which no other minion watches."""
    return running.azure
