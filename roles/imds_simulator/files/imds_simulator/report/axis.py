# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The time axis: positions that are proportional to time, and round tick marks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

_STEPS = (
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400),
)
_MAX_TICKS = 10
# a run of one moment still has an axis
_SHORTEST = 1.0
_MARGIN = 0.03


class Axis(NamedTuple):
    """Maps moments from ``begins`` to ``ends`` to positions from ``left`` to ``right``."""

    begins: float
    ends: float
    left: float
    right: float

    def x(self, moment: float) -> float:
        """Return the position of ``moment``; moments outside of the axis are at its ends."""
        share = (min(max(moment, self.begins), self.ends) - self.begins) / (self.ends - self.begins)
        return round(self.left + share * (self.right - self.left), 2)

    def ticks(self, zero: float) -> list[float]:
        """Return moments that are round numbers of seconds before or after ``zero``."""
        step = self._step()
        first = math.ceil((self.begins - zero) / step)
        last = math.floor((self.ends - zero) / step)
        return [zero + number * step for number in range(first, last + 1)]

    def _step(self) -> float:
        span = self.ends - self.begins
        for step in _STEPS:
            if span / step <= _MAX_TICKS:
                return step
        return math.ceil(span / _MAX_TICKS / 86400) * 86400


def axis_over(moments: Iterable[float], left: float, right: float) -> Axis:
    """Return an axis that shows all ``moments``, of which there is at least one."""
    known = list(moments)
    begins, ends = min(known), max(known)
    margin = max(ends - begins, _SHORTEST) * _MARGIN
    return Axis(begins - margin, max(ends, begins + _SHORTEST) + margin, left, right)
