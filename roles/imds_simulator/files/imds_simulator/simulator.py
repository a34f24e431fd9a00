# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A whole simulator: engine, listeners, control API and ticker."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import Callable, Optional

from aiohttp import web

from .control.access import Access
from .control.app import control_app
from .scenario.groups import Address
from .scenario.plans import Scenario
from .server.clock import Clock, ManualClock
from .server.engine import Engine
from .server.listeners import ListenAddress, Listener, Listeners, hide_client_errors

# serves the control API at a socket that is bound, or at its address, and returns the URL
ServeControl = Callable[[Optional[socket.socket]], Awaitable[str]]


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
    """A simulator that serves; ``serve_control`` serves the control API at a further socket."""

    engine: Engine
    listeners: Listeners
    control: str
    serve_control: ServeControl


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
    app = control_app(engine, listeners, access)
    async with _control(app, options.control) as serve_control:
        # before the control API answers: a client that found it ready uses the addresses of the VMs next
        await listeners.open()
        await listeners.apply_refusals()
        control = await serve_control(None)
        tasks = [asyncio.create_task(engine.tick(listeners.apply_refusals))]
        if engine.publisher is not None:
            tasks.append(asyncio.create_task(engine.publisher.run()))
        running = RunningSimulator(engine, listeners, control, serve_control)
        try:
            yield running
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await listeners.close()
            await engine.impact.stop()


@contextlib.asynccontextmanager
async def _control(app: web.Application, address: Address) -> AsyncIterator[ServeControl]:
    """Yield the function that serves the control API at ``address``, or at a socket that is bound."""
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    server = runner.server
    assert server is not None, "setup makes it"
    listeners: list[Listener] = []

    async def serve(sock: socket.socket | None) -> str:
        listeners.append(Listener(ListenAddress(address, (), None), server, sock))
        await listeners[-1].open()
        return listeners[-1].url

    try:
        yield serve
    finally:
        for each in listeners:
            await each.close()
        await runner.cleanup()
