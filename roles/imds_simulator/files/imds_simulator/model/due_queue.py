# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Which of many things is due next: a heap in which things may be moved."""

from __future__ import annotations

import heapq
import math


class DueQueue:
    """Moments by number. Moving a number leaves its old entry in the heap, to be skipped when it comes up."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int]] = []
        self._moments: dict[int, float] = {}

    def schedule(self, number: int, moment: float) -> None:
        """Plan ``number`` for ``moment``; infinity takes it off the agenda."""
        if self._moments.get(number, math.inf) == moment:
            return
        if math.isinf(moment):
            del self._moments[number]
        else:
            self._moments[number] = moment
            heapq.heappush(self._heap, (moment, number))

    def next(self) -> tuple[float, int]:
        """(moment, number) of what is due first, the lower number when two are due together; (infinity, -1) for nothing."""
        while self._heap and self._moments.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0] if self._heap else (math.inf, -1)
