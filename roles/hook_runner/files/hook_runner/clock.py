# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The server's clock, to which NotBefore refers."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import Callable, Optional

# a Date header, and the monotonic time of its arrival
Date = tuple[Optional[datetime], float]

# answers in a row that must agree before a date that contradicts this clock is accepted
ANSWERS_NEEDED = 3

_SECOND = timedelta(seconds=1)
# seconds by which a date may differ from this clock: it has whole seconds, and an answer takes time
_TOLERANCE = 5.0
# the same while the reference is the host's own clock, which may be wrong
_TOLERANCE_OF_HOST = 300.0
# seconds by which agreeing dates may differ, and a date from this clock before it is worth a round of the main loop
_AGREEMENT = 2.0
# seconds: smaller differences are not logged, nor is more than one line in this interval
_WORTH_LOGGING = 60.0
_LOG_INTERVAL = 600.0
# a running server sends no other years; arithmetic at the ends of the calendar would overflow
_YEARS = range(2000, 2201)


def wall_clock() -> datetime:
    """Return the time of this host's own clock, aware and in UTC."""
    return datetime.now(timezone.utc)


class ServerClock:
    """The server's clock, advanced by this host's monotonic clock between two answers.

    Therefore the remaining time is right also on a host whose own clock is wrong, or is set. Before
    the first answer with a date this is the host's own clock.

    A single odd date changes nothing, because it could end hooks that have time left. A date that
    differs from this clock by more than some seconds (from the host's own clock by more than some
    minutes) counts when several answers agree.
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], datetime] = wall_clock
    ) -> None:
        self.monotonic = monotonic
        self._wall = wall
        # the server's time at a moment of the monotonic clock; one value, since the poller's thread
        # reads it as well
        self._reference: tuple[datetime, float] | None = None
        # the last dates that contradict this clock and agree with each other, each with its time of arrival
        self._doubted: list[tuple[datetime, float]] = []
        self._logged_at = float("-inf")

    @property
    def is_doubtful(self) -> bool:
        """Return True if the latest date counts only when further answers agree."""
        return bool(self._doubted)

    def doubts(self, server_time: datetime | None, at: float) -> bool:
        """Return True if one answer with this date, at this monotonic time, does not set the clock.

        For any thread.
        """
        return self.differs(server_time, at, _TOLERANCE_OF_HOST if self._reference is None else _TOLERANCE)

    def differs(self, server_time: datetime | None, at: float, seconds: float = _AGREEMENT) -> bool:
        """Return True if a date, which arrived at this monotonic time, is more than some seconds away from this clock.

        For any thread. A date of an impossible year never is.
        """
        if server_time is None or server_time.year not in _YEARS:
            return False
        return abs((server_time - self.at(at)).total_seconds()) > seconds

    def synchronise(self, server_time: datetime | None, at: float) -> str | None:
        """Take the date of an answer that arrived at this monotonic time; return a warning for the log, or None.

        1. An answer without a date changes nothing, and neither does a date of an impossible year.
        2. A date that contradicts this clock counts when ANSWERS_NEEDED answers in a row agree.
        3. Any other date sets this clock. It has whole seconds and means any moment of its second. Therefore
           this clock moves no farther than into that second: an exact date could move it back by almost one
           second with each answer, and a hook would seem to end before it began.
        """
        if server_time is None:
            return None
        if server_time.year not in _YEARS:
            return self._log_oddity(f"a date of the year {server_time.year}", "it is ignored", at)
        if self.doubts(server_time, at):
            return self._weigh(server_time, at)
        self._doubted = []
        soonest, latest = server_time, server_time + _SECOND
        self._reference = (soonest if self._reference is None else min(max(self.at(at), soonest), latest), at)
        return None

    def _weigh(self, server_time: datetime, at: float) -> str | None:
        """Count the answers that agree on a date that contradicts this clock; accept the date after enough.

        An answer that does not agree with those before it is the first of a new count. Only such a first one
        gives a warning, and only if it is more than _WORTH_LOGGING seconds off.
        """
        ahead = (server_time - self.at(at)).total_seconds()
        if self._doubted:
            date, arrived = self._doubted[0]
            if abs((server_time - date).total_seconds() - (at - arrived)) > _AGREEMENT:
                self._doubted = []
        self._doubted.append((server_time, at))
        if len(self._doubted) >= ANSWERS_NEEDED:
            self._doubted, self._reference = [], (server_time, at)
            return None
        if len(self._doubted) > 1 or abs(ahead) <= _WORTH_LOGGING:
            return None
        what = f"a date that is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} what was expected"
        return self._log_oddity(what, f"it counts when {ANSWERS_NEEDED} answers in a row agree", at)

    def _log_oddity(self, what: str, remedy: str, at: float) -> str | None:
        if at - self._logged_at < _LOG_INTERVAL:
            return None
        self._logged_at = at
        return f"IMDS: the answer has {what}; {remedy}"

    def at(self, monotonic: float) -> datetime:
        """Return the time at a moment of the monotonic clock, aware and in UTC."""
        reference = self._reference
        if reference is None:
            return self._wall() - timedelta(seconds=self.monotonic() - monotonic)
        date, at = reference
        return date + timedelta(seconds=monotonic - at)

    def now(self) -> datetime:
        """Return the present time, aware and in UTC."""
        return self.at(self.monotonic())
