# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The limit of requests in any one second of real time (docs/reference/scheduled-events.md 1.7.1)."""

from __future__ import annotations

from collections import defaultdict, deque


class RateLimit:
    """Keeps the times of the requests of each client in the last second."""

    def __init__(self) -> None:
        self._recent: defaultdict[str, deque[float]] = defaultdict(deque)

    def allows(self, client: str, limit: int, moment: float, *, strict: bool) -> bool:
        """Count a request and return True if ``client`` is within ``limit``, in requests per second.

        ``moment`` is the time in seconds of any monotonic clock. If ``strict``, a request above the limit is refused,
        and does not count.
        """
        recent = self._recent[client]
        # by time, because a limit may be greater than the memory
        while recent and moment - recent[0] >= 1.0:
            recent.popleft()
        if strict and len(recent) >= limit:
            return False
        recent.append(moment)
        return len(recent) <= limit
