# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A whole simulator: engine, listeners, control API and ticker."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Callable

from aiohttp import web

from .control.access import Access
from .control.app import control_app
from .scenario.groups import Address
from .scenario.plans import Scenario
from .server.clock import Clock, ManualClock
from .server.engine import Engine
from .server.listeners import ListenAddress, Listener, Listeners, hide_client_errors


@dataclass(frozen=True)
class ServerOptions:
    """The settings of a simulator that do not change while it runs."""

    scenario: Scenario
    listen: Address
    control: Address
    manual_clock: bool = False
    control_token: str = ""


@dataclass(frozen=True)
class RunningSimulator:
    """A simulator that serves; ``control`` is the URL of the control API."""

    engine: Engine
    listeners: Listeners
    control: str


@contextlib.asynccontextmanager
async def run_simulator(options: ServerOptions, print_line: Callable[[str], None]) -> AsyncIterator[RunningSimulator]:
    """Serve while the block runs; ``print_line`` prints a line of the log.

    Raises:
        CannotListen: an address is in use, or does not belong to this machine.
    """
    hide_client_errors()
    clock = ManualClock(time.time()) if options.manual_clock else Clock()
    engine = Engine(options.scenario, clock, print_line)
    listeners = Listeners(engine, options.listen)
    access = Access(options.control_token, options.control.host)
    runner = web.AppRunner(control_app(engine, listeners, access), access_log=None)
    await runner.setup()
    assert runner.server is not None, "setup makes it"
    control = Listener(ListenAddress(options.control, (), None), runner.server)
    tasks: list[asyncio.Task[None]] = []
    try:
        # before the control API answers: a client that found it ready uses the addresses of the VMs next
        await listeners.open()
        await listeners.apply_refusals()
        await control.open()
        tasks.append(asyncio.create_task(engine.tick(listeners.apply_refusals)))
        if engine.publisher is not None:
            tasks.append(asyncio.create_task(engine.publisher.run()))
        yield RunningSimulator(engine, listeners, control.url)
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await listeners.close()
        await engine.impact.stop()
        await control.close()
        await runner.cleanup()
