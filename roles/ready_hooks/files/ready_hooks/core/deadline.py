# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The time limit of a run: that of the caller in HOOK_SECONDS, or one of the command line."""

from __future__ import annotations

import time
from typing import Callable

# share of the caller's limit, and most seconds, that stay free: the hook ends itself with its
# message before the caller ends it without one
_RESERVED_SHARE, _MOST_RESERVED = 0.1, 3.0


class Deadline:
    """The end of a run, which itself uses a little less than `limit`.

    `limit` and `sleep` are in seconds; `clock` returns monotonic seconds.
    """

    def __init__(
        self,
        limit: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._end = clock() + limit - min(_MOST_RESERVED, limit * _RESERVED_SHARE)

    def left(self) -> float:
        """Return the seconds until the end; 0 after it."""
        return max(0.0, self._end - self._clock())

    def wait_until(self, condition: Callable[[], bool], most: float | None = None, interval: float = 0.5) -> bool:
        """Wait until the condition holds; return False if it does not within the time.

        The condition is called at least once, and a last time at the end. `most` is in seconds, by default all that
        are left; `interval` is the seconds between two calls.
        """
        end = self._end if most is None else min(self._end, self._clock() + most)
        while not condition():
            left = end - self._clock()
            if left <= 0:
                return False
            self._sleep(min(interval, left))
        return True

    def pause(self, duration: float) -> bool:
        """Sleep for these seconds; return False, after a shorter sleep, if the run has less time left."""
        self._sleep(min(duration, self.left()))
        return self.left() > 0
