# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The simulator's wall clock: the real one plus an offset, or one that moves only by hand.

Everything that a client can see (Date, NotBefore) is a reading of this clock. Durations of a
scenario are simulated seconds; they take ``seconds / speed`` on it.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import Callable, Protocol


class Clock(Protocol):
    """What the service needs to know about time; ``now`` is Unix time in seconds."""

    def now(self) -> float: ...

    def advance(self, wall_seconds: float) -> None: ...

    async def wait_until(self, moment: float) -> None: ...


class _Sleepers:
    """Lets coroutines sleep towards a moment and look again whenever the clock was moved."""

    def __init__(self) -> None:
        self._sleepers: set[asyncio.Future[None]] = set()

    def wake_all(self) -> None:
        for sleeper in self._sleepers:
            if not sleeper.done():
                sleeper.set_result(None)

    async def sleep(self, wall_seconds: float) -> None:
        """Sleep so long, or until the clock is moved."""
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.add(sleeper)
        try:
            await asyncio.wait_for(sleeper, wall_seconds)
        except asyncio.TimeoutError:
            pass
        finally:
            self._sleepers.discard(sleeper)


class WallClock:
    """Real time plus whatever ``advance`` added."""

    def __init__(self, real: Callable[[], float] = time.time) -> None:
        self._real = real
        self._offset = 0.0
        self._wakers = _Sleepers()

    def now(self) -> float:
        return self._real() + self._offset

    def advance(self, wall_seconds: float) -> None:
        self._offset += wall_seconds
        self._wakers.wake_all()

    async def wait_until(self, moment: float) -> None:
        while self.now() < moment:
            # an hour at most, so that a stepped system clock is noticed
            await self._wakers.sleep(min(moment - self.now(), 3600.0))


class ManualClock:
    """Stands still until ``advance`` moves it: tests decide what time it is."""

    def __init__(self, start: float) -> None:
        self._now = float(math.floor(start))
        self._wakers = _Sleepers()

    def now(self) -> float:
        return self._now

    def advance(self, wall_seconds: float) -> None:
        self._now += wall_seconds
        self._wakers.wake_all()

    async def wait_until(self, moment: float) -> None:
        while self._now < moment:
            await self._wakers.sleep(3600.0)
