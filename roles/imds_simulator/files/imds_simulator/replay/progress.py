# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Where a replay is, and the dates that it shows."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..recording.json_strings import Path, replace_strings
from ..times import http_date
from .timeline import Timeline, moment


class Position(NamedTuple):
    """A place in the recording: seconds from its first answer, and the round, from 0."""

    seconds: float
    round: int


class Progress:
    """Maps times of the simulator's clock to positions and dates.

    Args:
        timeline: the recording.
        started: Unix time at which the replay began, in seconds.
        speed: seconds of the recording per second of the clock.
        loop: begin again at the end.
        shifted: dates count from the present; otherwise they are those of the recording.
    """

    def __init__(self, timeline: Timeline, started: float, speed: float, loop: bool, shifted: bool) -> None:
        self._timeline = timeline
        self._started = started
        self._loop = loop
        self.speed = speed
        self.shifted = shifted

    def position(self, now: float) -> Position:
        """Return the position at ``now``; without loop it stays at the end."""
        passed = max(0.0, now - self._started) * self.speed
        length = self._timeline.length
        if self._loop:
            return Position(passed % length, int(passed // length))
        return Position(min(passed, length), 0)

    def is_finished(self, now: float) -> bool:
        """Return True if the end of the recording has passed."""
        return not self._loop and self.position(now).seconds >= self._timeline.length

    def clock_time(self, seconds: float, turn: int) -> float:
        """Return the time of the clock at ``seconds`` of the round ``turn``."""
        return self._started + (turn * self._timeline.length + seconds) / self.speed

    def date(self, now: float) -> str:
        """Return the header Date."""
        if self.shifted:
            return http_date(now)
        return http_date(self._timeline.began + self.position(now).seconds)

    def body(self, body: bytes, turn: int) -> bytes:
        """Return a document with its dates in NotBefore; other bytes stay as they are.

        A shifted date is rounded up to a whole second.
        """
        if not self.shifted:
            return body

        def replace(path: Path, value: str) -> str:
            date = moment(value) if path[-1:] == ("NotBefore",) else None
            if date is None:
                return value
            return http_date(math.ceil(self.clock_time(date - self._timeline.began, turn)))

        try:
            return replace_strings(body.decode("utf-8"), replace).encode("utf-8", "surrogatepass")
        except (ValueError, IndexError, OverflowError):
            # recorded as it came: it may be cut off, for example
            return body
