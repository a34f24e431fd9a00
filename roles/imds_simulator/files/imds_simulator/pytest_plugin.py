# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The fixture ``imds_simulator``; pytest finds this module by the entry point of the package."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .testing import Simulator

_MARKER = "imds_simulator(scenario=None, *, clock='manual')"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", f"{_MARKER}: what the fixture of this name gives to its Simulator")


@pytest.fixture
def imds_simulator(request: pytest.FixtureRequest) -> Iterator[Simulator]:
    """A running simulator of Azure Scheduled Events, with the arguments of the marker ``imds_simulator``."""
    # runs without a test that uses the fixture need no HTTP server
    from .testing import ScenarioError, Simulator

    marker = request.node.get_closest_marker("imds_simulator") or pytest.mark.imds_simulator.mark
    try:
        inspect.signature(Simulator).bind(*marker.args, **marker.kwargs)  # an error of it names no function
        simulator = Simulator(*marker.args, **marker.kwargs)
    except (ScenarioError, TypeError, ValueError) as error:
        remedy = f"; write {_MARKER}" if isinstance(error, TypeError) else ""
        raise pytest.fail.Exception(f"marker imds_simulator: {error}{remedy}", pytrace=False) from None
    with simulator as running:
        yield running
