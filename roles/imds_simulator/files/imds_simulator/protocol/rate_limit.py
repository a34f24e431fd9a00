# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The limit of requests in any one second of real time (docs/reference/scheduled-events.md 1.7.1)."""

from __future__ import annotations

from collections import deque


class RateLimit:
    """Keeps the times of the accepted requests of each client in the last second."""

    def __init__(self) -> None:
        self._recent: dict[str, deque[float]] = {}

    def allows(self, client: str, limit: int, moment: float) -> bool:
        """Return True, and count the request, if ``client`` is below ``limit``, in requests per second.

        ``moment`` is the time in seconds of any monotonic clock. Refused requests do not count.
        """
        recent = self._recent.get(client)
        if recent is None:
            recent = self._recent[client] = deque()
        # by time, because a limit may be greater than the memory
        while recent and moment - recent[0] >= 1.0:
            recent.popleft()
        if len(recent) >= limit:
            return False
        recent.append(moment)
        return True
