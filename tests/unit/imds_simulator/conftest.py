# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Simulator processes for tests that use HTTP."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support import simulator_process


@pytest.fixture(scope="session", autouse=True)
def _default_sighup() -> None:
    """Restore the default of SIGHUP: under nohup every simulator would inherit that it is ignored."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def start_simulator() -> Iterator[Callable[..., simulator_process.Simulator]]:
    """Return ``simulator_process.start``; the started processes end after the test."""
    started: list[simulator_process.Simulator] = []

    def start(*args: Any, **kwargs: Any) -> simulator_process.Simulator:
        started.append(simulator_process.start(*args, **kwargs))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture(scope="session")
def _shared_simulator() -> Iterator[simulator_process.Simulator]:
    """One simulator for tests that need no process of their own: manual clock, no rate limit."""
    scenario = {
        "title": "tests",
        "groups": {
            "web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}},
            "other": {"kind": "standalone", "vms": {"stranger": {}}},
            "pool": {
                "kind": "scale_set",
                "vms": {
                    "pool_0": {},
                    "pool_3": {
                        "zone": 2,
                        "fault_domain": 1,
                        "instance": {
                            "compute": {
                                "tags": "a:b",
                                "tagsList": [{"name": "a", "value": "b"}],
                                "vmSize": "Standard_X",
                                "count": 3,
                                "on": True,
                            }
                        },
                    },
                },
            },
        },
    }
    with simulator_process.start(
        scenario, args=["--clock", "manual", "--knob", "rate_limit=off", "--quiet"]
    ) as running:
        running.knobs_at_start = running.get("/knobs")
        yield running


@pytest.fixture
def frozen_simulator(_shared_simulator: simulator_process.Simulator) -> simulator_process.Simulator:
    """Return the shared simulator without events, faults or changed knobs."""
    _shared_simulator.delete("/faults")
    for event in _shared_simulator.get("/events")["events"]:
        if event["status"] != "Gone":
            _shared_simulator.post(f"/events/{event['id']}/complete")
    if _shared_simulator.get("/knobs") != _shared_simulator.knobs_at_start:
        _shared_simulator.post("/knobs", _shared_simulator.knobs_at_start)
    return _shared_simulator
