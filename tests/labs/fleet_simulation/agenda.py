# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Virtual time: actions in the order of their times, and the same order for the same seed."""

from __future__ import annotations

import heapq
from collections.abc import Callable

Action = Callable[[], None]


class Agenda:
    """The actions to come; ``now``: virtual seconds since the start."""

    def __init__(self) -> None:
        self.now = 0.0
        self._queue: list[tuple[float, int, Action]] = []
        self._count = 0

    def at(self, moment: float, action: Action) -> None:
        """Run an action at this moment, or at once if the moment has passed."""
        self._count += 1
        heapq.heappush(self._queue, (max(moment, self.now), self._count, action))

    def after(self, seconds: float, action: Action) -> None:
        """Run an action after these virtual seconds."""
        self.at(self.now + seconds, action)

    def run_until(self, end: float) -> None:
        """Run the actions until this moment. An action may call this, too."""
        queue = self._queue
        while queue and queue[0][0] <= end:
            self.now, _count, action = heapq.heappop(queue)
            action()
        self.now = max(self.now, end)
