# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A simulator in a thread of the test: it starts faster than a process, and is the same over its sockets."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from imds_simulator.scenario.files import load, parse
from imds_simulator.scenario.groups import Address
from imds_simulator.scenario.knobs import change_knobs
from imds_simulator.simulator import RunningSimulator, ServerOptions, run_simulator
from support.simulator_process import Simulator

_ANY_PORT = Address("127.0.0.1", 0)


class SimulatorInThread(Simulator):
    """A simulator without a process of its own."""

    def __init__(self, running: RunningSimulator) -> None:
        self.control = running.control
        self.endpoints = dict(running.endpoints)
        self.token = ""


@contextmanager
def simulator_in_thread(scenario: str | Mapping[str, Any], knobs: Mapping[str, str]) -> Iterator[SimulatorInThread]:
    """Serve a scenario, a shipped name or the content of a file, with a clock that only the test moves."""
    plan = load(scenario) if isinstance(scenario, str) else parse(json.dumps(scenario), "test")
    plan = dataclasses.replace(plan, knobs=change_knobs(plan.knobs, dict(knobs)))
    found: list[RunningSimulator] = []
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        options = ServerOptions(plan, _ANY_PORT, _ANY_PORT, manual_clock=True)
        async with run_simulator(options, lambda _line: None) as running:
            found.append(running)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    try:
        assert ready.wait(60), "the simulator did not start"
        yield SimulatorInThread(found[0])
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()
