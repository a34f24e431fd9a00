# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The fixture ``imds_simulator``; pytest finds this module by the entry point of the package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .testing import Simulator

# of Simulator, as the text of the marker lists them
_ARGUMENTS = {"scenario", "clock"}


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    text = "imds_simulator(scenario=None, *, clock='manual'): what the fixture of this name gives to its Simulator"
    config.addinivalue_line("markers", text)


@pytest.fixture
def imds_simulator(request: pytest.FixtureRequest) -> Iterator[Simulator]:
    """A running simulator of Azure Scheduled Events, with the arguments of the marker ``imds_simulator``."""
    # runs without a test that uses the fixture need no HTTP server
    from .suggestions import unknown
    from .testing import ScenarioError, Simulator

    marker = request.node.get_closest_marker("imds_simulator")
    try:
        for name in set(marker.kwargs if marker else ()) - _ARGUMENTS:
            raise TypeError(unknown("argument", name, _ARGUMENTS))
        simulator = Simulator(*marker.args, **marker.kwargs) if marker else Simulator()
    except (ScenarioError, TypeError, ValueError) as error:
        raise pytest.fail.Exception(f"marker imds_simulator: {error}", pytrace=False) from None
    with simulator as running:
        yield running
