# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A priority queue whose entries can be rescheduled."""

from __future__ import annotations

import heapq
import math


class DueQueue:
    """Moments by number.

    A rescheduled number leaves its old entry in the heap; ``next`` skips that entry.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int]] = []
        self._moments: dict[int, float] = {}

    def schedule(self, number: int, moment: float) -> None:
        """Schedule ``number`` for ``moment``; infinity removes it from the queue."""
        if self._moments.get(number, math.inf) == moment:
            return
        if math.isinf(moment):
            del self._moments[number]
        else:
            self._moments[number] = moment
            heapq.heappush(self._heap, (moment, number))

    def next(self) -> tuple[float, int]:
        """Return (moment, number) of the first entry; (infinity, -1) when the queue is empty.

        Of two entries with the same moment the lower number comes first.
        """
        while self._heap and self._moments.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0] if self._heap else (math.inf, -1)
