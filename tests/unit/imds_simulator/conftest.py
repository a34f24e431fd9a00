# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Real simulators for the tests that speak HTTP."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support import simulator_process


@pytest.fixture(scope="session", autouse=True)
def _hang_up_as_usual() -> None:
    """Whoever runs the tests under nohup would hand it on to every simulator, which rightly goes on then."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def start_simulator() -> Iterator[Callable[..., simulator_process.Simulator]]:
    """``simulator_process.start``, with every started process ended after the test."""
    started: list[simulator_process.Simulator] = []

    def start(*args: Any, **kwargs: Any) -> simulator_process.Simulator:
        started.append(simulator_process.start(*args, **kwargs))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture(scope="session")
def _still() -> Iterator[simulator_process.Simulator]:
    """One simulator for the tests that only ask: time stands still, nothing limits the rate."""
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
def still(_still: simulator_process.Simulator) -> simulator_process.Simulator:
    """``_still`` without events, faults or changed knobs."""
    _still.delete("/faults")
    for event in _still.get("/events")["events"]:
        if event["status"] != "Gone":
            _still.post(f"/events/{event['id']}/complete")
    if _still.get("/knobs") != _still.knobs_at_start:
        _still.post("/knobs", _still.knobs_at_start)
    return _still
