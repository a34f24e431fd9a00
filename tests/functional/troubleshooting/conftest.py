# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A section of docs/troubleshooting.md for each test, and a VM with the hook runner."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from support.daemon.fixtures import _simulator, azure  # noqa: F401  # pylint: disable=unused-import
from support.daemon.simulated_azure import Azure
from support.troubleshooting.daemon_host import DaemonHost
from support.troubleshooting.page import Section


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Function) -> Generator[None, None, None]:
    """A test has to take all blocks of its section."""
    yield
    followed = item.funcargs.get("section")
    if isinstance(followed, Section):
        assert followed.left == []


@pytest.fixture
def section(request: pytest.FixtureRequest) -> Section:
    """The section that the test's mark names."""
    return Section(*request.node.get_closest_marker("symptom").args)


@pytest.fixture
def host(azure: Azure, tmp_path: Path) -> Iterator[DaemonHost]:  # noqa: F811
    """vm1 with a hook runner, which a test configures and starts."""
    made = DaemonHost(tmp_path, azure.simulator.endpoints["vm1"])
    yield made
    made.stop()
