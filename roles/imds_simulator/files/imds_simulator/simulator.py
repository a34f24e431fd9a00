# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A whole simulator, from start to stop: engine, listeners, control API and the ticker."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Callable

from aiohttp import web

from .control.app import control_app
from .scenario.groups import Address
from .scenario.plans import Scenario
from .server.clock import Clock, ManualClock, WallClock
from .server.engine import Engine
from .server.listeners import Listeners, bind, bound


@dataclass(frozen=True)
class ServerOptions:
    """What the command line decides."""

    scenario: Scenario
    listen: Address
    control: Address
    manual_clock: bool = False


@dataclass(frozen=True)
class RunningSimulator:
    """A simulator that serves."""

    engine: Engine
    listeners: Listeners
    control: str

    @property
    def endpoints(self) -> Mapping[str, str]:
        return self.listeners.endpoints()


@contextlib.asynccontextmanager
async def run_simulator(setup: ServerOptions, say: Callable[[str], None]) -> AsyncIterator[RunningSimulator]:
    """Serve while the block runs; raises CannotListen when an address is not to be had."""
    clock: Clock = ManualClock(time.time()) if setup.manual_clock else WallClock()
    engine = Engine(setup.scenario, clock, say)
    listeners = Listeners(engine, setup.listen)
    sock = bind(setup.control)
    # all of this before the control API answers anybody: who asks it whether the simulator is there
    # asks the VMs' addresses next
    await listeners.open()
    await listeners.apply_refusals()
    async with _control(engine, listeners, sock) as control:
        ticker = asyncio.create_task(engine.tick(listeners.apply_refusals))
        try:
            yield RunningSimulator(engine, listeners, control)
        finally:
            ticker.cancel()
            await asyncio.gather(ticker, return_exceptions=True)
            await listeners.close()
            await engine.impact.stop()


@contextlib.asynccontextmanager
async def _control(engine: Engine, listeners: Listeners, sock: socket.socket) -> AsyncIterator[str]:
    runner = web.AppRunner(control_app(engine, listeners.endpoints, listeners.apply_refusals), access_log=None)
    await runner.setup()
    factory = runner.server
    if factory is None:
        raise RuntimeError("aiohttp gave no server")
    server = await asyncio.get_running_loop().create_server(factory, sock=sock)
    try:
        yield f"http://{bound(sock)}"
    finally:
        server.close()
        await factory.shutdown(0.1)
        await runner.cleanup()


def with_sources(scenario: Scenario, sources: Mapping[str, str]) -> Scenario:
    """``scenario`` with VMs told apart by source address instead of by their own listening address."""
    groups = tuple(
        dataclasses.replace(
            group,
            vms=tuple(
                dataclasses.replace(vm, source=sources[vm.name], listen=None) if vm.name in sources else vm
                for vm in group.vms
            ),
        )
        for group in scenario.groups
    )
    return dataclasses.replace(scenario, groups=groups)
