# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""When the recorder sends its next request. Pure except for the times of the last requests.

See docs/reference/scheduled-events.md 1.6, 1.7.
"""

from __future__ import annotations

from collections import deque

# per second; the VM's other programs get the rest of the five that IMDS accepts
REQUESTS_PER_SECOND = 3
FIRST_ANSWER_TIMEOUT = 130.0
ANSWER_TIMEOUT = 10.0
# seconds between requests for instance metadata
INSTANCE_INTERVAL = 3600.0

_REFUSED = (400, 401, 403, 405)
_REFUSED_DELAY = 30.0
_UPDATING_DELAY = 10.0
_LONGEST_DELAY = 10.0
_LONGEST_RETRY_AFTER = 30.0


def delay(interval: float, status: int, failures: int, retry_after: str) -> float:
    """Return the seconds until the next poll.

    Args:
        interval: seconds between polls while answers are good.
        status: of the last answer; 0: there was none.
        failures: answers and missing answers in a row that were not 200 or 304.
        retry_after: the header of the last answer, or an empty text.
    """
    if failures == 0:
        return interval
    if status in _REFUSED:
        return max(interval, _REFUSED_DELAY)
    if retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 9:
        return max(interval, min(float(retry_after), _LONGEST_RETRY_AFTER))
    if status == 410:
        return max(interval, _UPDATING_DELAY)
    return max(interval, min(2.0 ** min(failures - 1, 10), _LONGEST_DELAY))


class RateLimit:
    """Delays requests so that they leave room for other programs of the VM."""

    def __init__(self) -> None:
        self._sent: deque[float] = deque(maxlen=REQUESTS_PER_SECOND)

    def wait(self, now: float) -> float:
        """Return the seconds to wait at ``now``, a monotonic time."""
        if len(self._sent) < REQUESTS_PER_SECOND:
            return 0.0
        return max(0.0, self._sent[0] + 1.0 - now)

    def sent(self, now: float) -> None:
        """Note a request that was sent at ``now``."""
        self._sent.append(now)
