# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The time limit of a run: that of the caller in HOOK_SECONDS, or one of the command line."""

from __future__ import annotations

import time
from typing import Callable

from ready_hooks.core.errors import HookError

# share of the caller's limit, and most seconds, that stay free: the hook ends itself with its
# message before the caller ends it without one
_RESERVED_SHARE, _MOST_RESERVED = 0.1, 3.0
# share of what is left, and least and most seconds, that a wait leaves for what the hook does next; at most a half
_SHARE_FOR_NEXT, _LEAST_FOR_NEXT, _MOST_FOR_NEXT = 0.1, 2.0, 5.0


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

    def retry_until(self, condition: Callable[[], bool], most: float | None = None, interval: float = 0.5) -> bool:
        """Wait as `wait_until` does; a HookError of the condition means that it does not hold yet.

        A workload restarts, or another one of its servers takes over, while a hook waits for it. The wait ends by
        `wait_limit(most)`: otherwise the last call would have no time, and fail for that reason. Raises the HookError
        of the last call.
        """
        errors: list[HookError] = []

        def holds() -> bool:
            errors.clear()
            try:
                return condition()
            except HookError as error:
                errors.append(error)
                return False

        is_met = self.wait_until(holds, self.wait_limit(most), interval)
        if errors:
            raise errors[0]
        return is_met

    def answer_limit(self, most: float, least: float = 0.5) -> float:
        """Return the seconds for one answer: those that are left, but `most`, and `least` for an undo at the end."""
        return max(least, min(most, self.left()))

    def wait_limit(self, wanted: float | None) -> float:
        """Return the seconds that a wait may last: those wanted, or what is left, without a part for the next step."""
        left = self.left()
        left -= min(max(_LEAST_FOR_NEXT, left * _SHARE_FOR_NEXT), _MOST_FOR_NEXT, left / 2)
        return left if wanted is None else min(wanted, left)

    def pause(self, duration: float) -> bool:
        """Sleep for these seconds; return False, after a shorter sleep, if the run has less time left."""
        self._sleep(min(duration, self.left()))
        return self.left() > 0
