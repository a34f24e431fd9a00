# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Poll interval, retry delays (docs/reference/scheduled-events.md 1.6) and rate limit of requests to IMDS."""

from __future__ import annotations

import collections
import random
import time
from typing import Callable, NamedTuple, TypeVar

from .errors import ImdsError
from .imds import Imds

T = TypeVar("T")

REQUESTS_PER_SECOND = 5
# a call repeats its request once if the server had closed the connection
_REPEATS_PER_CALL = 1

_UPDATE_WINDOW = 70.0
# seconds after the first error in a row, without jitter, and after an error that is not retryable
_FIRST_DELAY = 1.0
_AFTER_REFUSAL = 30.0


class Retries(NamedTuple):
    """Delays after errors, in seconds.

    Attributes:
        growth: factor by which each error in a row after the first makes the delay longer.
        growths: how often the delay grows.
        jitter: largest random part, as a fraction of the delay.
        longest: limit of each delay, also of one that the server requests (Retry-After).
        longest_with_event: the same while an event is known.
        updating: delay after 410 (IMDS is being updated); None for the delay of any other error.
        refusals: how many errors in a row that are not retryable (400, 401, 403, 405) count as any other error first.
    """

    growth: float = 2.0
    growths: int = 10
    jitter: float = 0.25
    longest: float = 30.0
    longest_with_event: float = 10.0
    updating: float | None = 10.0
    refusals: int = 0


# for a call of a module or a function
SELDOM = Retries()
# For a process that polls all the time. A Preempt gives 30 seconds of notice; therefore delays stay
# short until IMDS has refused several requests: 1 to 2 seconds at first, growing to 2.5 to 5.
WATCHING = Retries(growth=1.25, growths=4, jitter=1.0, longest=5.0, longest_with_event=5.0, updating=None, refusals=3)


class Pacer:
    """Paces the calls of one client: rate limit, and the delay before the next poll.

    Args:
        imds: the client; it must not have a second pacer.
        interval: seconds between polls while IMDS gives good answers.
        clock: monotonic seconds.
        sleep: waits some seconds.
        jitter: returns a number from 0 up to 1.
        retries: delays after errors; the default is for modules and Salt (docs/bounds.md).
    """

    def __init__(
        self,
        imds: Imds,
        interval: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
        retries: Retries = SELDOM,
    ) -> None:
        self.imds = imds
        self.clock = clock
        self.sleep = sleep
        self._interval = interval
        self._jitter = jitter
        self._retries = retries
        self._refusals_in_a_row = 0
        self._sent: collections.deque[float] = collections.deque(maxlen=REQUESTS_PER_SECOND)
        self.error: ImdsError | None = None
        self.errors_in_a_row = 0
        self.failing_since: float | None = None

    def call(self, method: Callable[..., T], *args: object, within: float | None = None) -> T:
        """Return the result of a method of the client, called as soon as the rate limit allows; note its success.

        ``within`` is in seconds, for the call and the wait before it.

        Raises:
            ImdsError: the method raised it.
        """
        started = self.clock()
        self._wait_for_rate_limit()
        if within is not None:
            within -= self.clock() - started
        before = self.imds.requests_sent
        try:
            answer = method(*args, within=within)
        except ImdsError as error:
            self.failed(error)
            raise
        finally:
            self._sent.extend([self.clock()] * (self.imds.requests_sent - before))
        self.succeeded()
        return answer

    def succeeded(self) -> None:
        """Note a good answer."""
        self.error = None
        self.errors_in_a_row = self._refusals_in_a_row = 0
        self.failing_since = None

    def failed(self, error: ImdsError) -> None:
        """Note an error."""
        self.error = error
        self.errors_in_a_row += 1
        self._refusals_in_a_row = 0 if error.retryable else self._refusals_in_a_row + 1
        if self.failing_since is None:
            self.failing_since = self.clock()

    def delay(self, event_known: bool = False) -> float:
        """Return the seconds before the next poll; they are fewer while an event is known."""
        error = self.error
        if error is None:
            return self._interval
        retries = self._retries
        if self._refusals_in_a_row > retries.refusals:
            return max(_AFTER_REFUSAL, self._interval)
        longest = retries.longest_with_event if event_known else retries.longest
        if error.retry_after is not None:
            return max(min(error.retry_after, longest), _FIRST_DELAY)
        if error.status == 410 and retries.updating is not None:
            return retries.updating
        grown: float = _FIRST_DELAY * retries.growth ** min(self.errors_in_a_row - 1, retries.growths)
        return min(grown * (1.0 + retries.jitter * self._jitter()), longest)

    def is_outage(self) -> bool:
        """Return True if calls fail, and not only with 410 within an update's window of 70 s (reference 1.6)."""
        if self.error is None or self.failing_since is None:
            return False
        return self.error.status != 410 or self.clock() - self.failing_since >= _UPDATE_WINDOW

    def _wait_for_rate_limit(self) -> None:
        free = max(0, REQUESTS_PER_SECOND - self.imds.versions_of_a_poll - _REPEATS_PER_CALL)
        if len(self._sent) > free:
            wait = self._sent[-1 - free] + 1.0 - self.clock()
            if wait > 0:
                self.sleep(wait)
