# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Where the command of ``exec`` runs: how it starts, and which addresses it can use."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Callable, NamedTuple

from ..simulator import RunningSimulator

Process = asyncio.subprocess.Process


class CannotRun(Exception):
    """A command did not start; ``status`` is the exit code that a shell returns for it."""

    def __init__(self, command: str, error: OSError) -> None:
        super().__init__(f"cannot run {command}: {error.strerror}")
        self.status = 127 if isinstance(error, FileNotFoundError) else 126


class Place(NamedTuple):
    """The URLs that the command can use, and the function that starts it with an environment."""

    endpoint: str
    endpoints: Mapping[str, str]
    control: str
    start: Callable[[Sequence[str], Mapping[str, str]], Awaitable[Process]]


@contextlib.asynccontextmanager
async def beside(simulator: RunningSimulator) -> AsyncIterator[Place]:
    """Yield the place of a command that shares the network of the simulator."""
    endpoints = dict(simulator.endpoints)
    first, *_others = endpoints.values()
    yield Place(first, endpoints, simulator.control, start_here)


async def start_here(command: Sequence[str], environment: Mapping[str, str]) -> Process:
    """Start ``command``; raise CannotRun if it cannot be executed."""
    try:
        return await asyncio.create_subprocess_exec(*command, env=environment)
    except OSError as error:
        raise CannotRun(command[0], error) from None
