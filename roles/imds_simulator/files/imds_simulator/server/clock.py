# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The simulator's clock: the real clock plus an offset, or a clock that only ``advance`` moves.

All times that a client can see (Date, NotBefore) come from this clock. Durations of a scenario are
simulated seconds; they take ``seconds / speed`` on it.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import Callable, Protocol


class Clock(Protocol):
    """The interface of both clocks."""

    def now(self) -> float:
        """Return the Unix time in seconds."""

    def advance(self, wall_seconds: float) -> None:
        """Move the clock forward and wake the coroutines that wait for it."""

    async def wait_until(self, moment: float) -> None:
        """Return when the clock has reached ``moment``."""


class _Sleepers:
    """Wakes sleeping coroutines when the clock is moved."""

    def __init__(self) -> None:
        self._futures: set[asyncio.Future[None]] = set()

    def wake_all(self) -> None:
        for sleeper in self._futures:
            if not sleeper.done():
                sleeper.set_result(None)

    async def sleep(self, wall_seconds: float) -> None:
        """Sleep for ``wall_seconds``, or until the clock is moved."""
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._futures.add(sleeper)
        try:
            await asyncio.wait_for(sleeper, wall_seconds)
        except asyncio.TimeoutError:
            pass
        finally:
            self._futures.discard(sleeper)


class WallClock:
    """Real time plus the seconds that ``advance`` added."""

    def __init__(self, real: Callable[[], float] = time.time) -> None:
        self._real = real
        self._offset = 0.0
        self._sleepers = _Sleepers()

    def now(self) -> float:
        """Return the Unix time in seconds."""
        return self._real() + self._offset

    def advance(self, wall_seconds: float) -> None:
        """Move the clock forward and wake the coroutines that wait for it."""
        self._offset += wall_seconds
        self._sleepers.wake_all()

    async def wait_until(self, moment: float) -> None:
        """Return when the clock has reached ``moment``."""
        while self.now() < moment:
            # the system clock may be set while this sleeps
            await self._sleepers.sleep(min(moment - self.now(), 3600.0))


class ManualClock:
    """A clock that only ``advance`` moves, for tests."""

    def __init__(self, start: float) -> None:
        self._now = float(math.floor(start))
        self._sleepers = _Sleepers()

    def now(self) -> float:
        """Return the Unix time in seconds."""
        return self._now

    def advance(self, wall_seconds: float) -> None:
        """Move the clock forward and wake the coroutines that wait for it."""
        self._now += wall_seconds
        self._sleepers.wake_all()

    async def wait_until(self, moment: float) -> None:
        """Return when the clock has reached ``moment``."""
        while self._now < moment:
            await self._sleepers.sleep(3600.0)
