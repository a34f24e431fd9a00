# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A simulated Azure with a manual clock, and a skip where ansible-rulebook cannot run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support import simulator_process
from support.eda.rulebook import PROGRAM, java_home
from support.maintenance.fleet import MANUAL, TRIO
from support.simulator_process import Simulator


@pytest.fixture(autouse=True, scope="session")
def can_run() -> None:
    if not PROGRAM.exists():
        pytest.skip("needs ansible-rulebook in .venv")
    if java_home() is None:
        pytest.skip("ansible-rulebook needs Java 17 or later")


@pytest.fixture
def trio() -> Iterator[Simulator]:
    """Azure with vm1, vm2 and vm3 of one availability set, without an event."""
    with simulator_process.start({"groups": TRIO, "knobs": {"rate_limit": 0}}, args=MANUAL) as running:
        yield running
