# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The request budget of a VM (docs/reference/scheduled-events.md 1.7.1): at most so many in any one second of real time."""

from __future__ import annotations

from collections import deque


class RateLimit:
    """Remembers the last accepted requests of every client."""

    def __init__(self) -> None:
        self._recent: dict[str, deque[float]] = {}

    def allows(self, client: str, limit: int, moment: float) -> bool:
        """Whether ``client`` may ask at ``moment`` (any clock that only goes forward); refused ones do not count."""
        recent = self._recent.get(client)
        if recent is None or recent.maxlen != limit:
            recent = self._recent[client] = deque(recent or (), maxlen=limit)
        if len(recent) == limit and moment - recent[0] < 1.0:
            return False
        recent.append(moment)
        return True
