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

_HOUR = 3600.0


class Clock:
    """Real time plus the seconds that ``advance`` added, and those by which the system clock was set back.

    The clock of IMDS is that of the host of a VM: it does not go back with the clock of the VM.
    """

    def __init__(self, real: Callable[[], float] = time.time) -> None:
        self._real = real
        self._latest = -math.inf
        self._offset = 0.0
        # each is set when the clock is moved
        self._waiting: set[asyncio.Event] = set()

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
        for each in self._waiting:
            each.set()

    async def wait_until(self, moment: float) -> None:
        """Return when the clock has reached ``moment``."""
        while self.now() < moment:
            await self.wait(moment, asyncio.Event())

    async def wait(self, moment: float, wake_up: asyncio.Event) -> None:
        """Return when ``wake_up`` is set, which is cleared, or when the clock may have reached ``moment``."""
        left = moment - self.now()
        timer = asyncio.get_running_loop().call_later(self._longest_wait(left) if left > 0 else 0, wake_up.set)
        self._waiting.add(wake_up)
        try:
            await asyncio.sleep(0)  # also if it is set already
            await wake_up.wait()
        finally:
            timer.cancel()
            self._waiting.discard(wake_up)
            wake_up.clear()

    def _longest_wait(self, wall_seconds: float) -> float:
        """Return the real seconds after which a coroutine that waits for ``wall_seconds`` looks at the clock again."""
        # the system clock may be set during the wait
        return min(wall_seconds, _HOUR)


class ManualClock(Clock):
    """A clock that only ``advance`` moves, for tests."""

    def __init__(self, start: float) -> None:
        super().__init__(lambda: float(math.floor(start)))

    def _longest_wait(self, wall_seconds: float) -> float:
        return _HOUR
