# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A simulator whose clock does not move until a test moves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from support import simulator_process
from support.simulator_process import Simulator

PAIR = {"web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}}}


@pytest.fixture
def simulate() -> Iterator[Callable[..., Simulator]]:
    """Start a simulator with two VMs of one availability set, and these events and knobs."""
    with ExitStack() as running:

        def start(*events: dict[str, Any], knobs: dict[str, Any] | None = None) -> Simulator:
            scenario = {"groups": PAIR, "events": list(events), "knobs": {"rate_limit": 0, **(knobs or {})}}
            return running.enter_context(simulator_process.start(scenario, args=["--clock", "manual"]))

        yield start
