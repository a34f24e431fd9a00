# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A fleet of three VMs with all defaults; files of tests that need another one replace ``running``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.salt.azure import Azure
from support.salt.fleet import Fleet, fleet_of
from support.salt.salt_installation import Installed


@pytest.fixture(scope="session")
def running(installed: Installed) -> Iterator[Fleet]:
    with fleet_of(installed) as made:
        yield made


@pytest.fixture
def fleet(running: Fleet, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    running.notes = request.node.user_properties
    running.start_over()
    yield running
    running.end_all()


@pytest.fixture(scope="module")
def azure(running: Fleet) -> Azure:
    """The fleet's own, which no other minion watches."""
    return running.azure
