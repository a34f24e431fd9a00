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
from typing import Callable


class Clock:
    """Real time plus the seconds that ``advance`` added, and those by which the system clock was set back.

    The clock of IMDS is that of the host of a VM: it does not go back with the clock of the VM.
    """

    def __init__(self, real: Callable[[], float] = time.time) -> None:
        self._real = real
        self._latest = -math.inf
        self._offset = 0.0
        self._sleepers: set[asyncio.Future[None]] = set()

    def now(self) -> float:
        """Return the Unix time in seconds."""
        real = self._real()
        if real < self._latest:
            self._offset += self._latest - real
        self._latest = real
        return real + self._offset

    def advance(self, wall_seconds: float) -> None:
        """Move the clock forward and wake the coroutines that wait for it."""
        self._offset += wall_seconds
        for sleeper in self._sleepers:
            if not sleeper.done():
                sleeper.set_result(None)

    async def wait_until(self, moment: float) -> None:
        """Return when the clock has reached ``moment``."""
        while self.now() < moment:
            # the system clock may be set while this sleeps
            await self._sleep(min(moment - self.now(), 3600.0))

    async def wait(self, moment: float, wake_up: asyncio.Event) -> None:
        """Return when the clock has reached ``moment``, or when ``wake_up`` is set, which is cleared."""
        waits = [asyncio.ensure_future(each) for each in (self.wait_until(moment), wake_up.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        wake_up.clear()

    async def _sleep(self, wall_seconds: float) -> None:
        """Sleep for ``wall_seconds``, or until the clock is moved."""
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.add(sleeper)
        try:
            await asyncio.wait_for(sleeper, wall_seconds)
        except asyncio.TimeoutError:
            pass
        finally:
            self._sleepers.discard(sleeper)


class ManualClock(Clock):
    """A clock that only ``advance`` moves, for tests."""

    def __init__(self, start: float) -> None:
        super().__init__(lambda: float(math.floor(start)))

    async def wait_until(self, moment: float) -> None:
        """Return when the clock has reached ``moment``."""
        while self.now() < moment:
            await self._sleep(3600.0)
