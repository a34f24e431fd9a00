# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A simulated Azure whose clock only a test moves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.maintenance.fleet import TRIO
from support.simulator.in_thread import start_in_thread
from support.simulator_process import Simulator


@pytest.fixture
def trio() -> Iterator[Simulator]:
    """Azure with vm1, vm2 and vm3 of one availability set, without an event."""
    with start_in_thread({"groups": TRIO}, ["--clock", "manual", "--knob", "rate_limit=0"]) as running:
        yield running
