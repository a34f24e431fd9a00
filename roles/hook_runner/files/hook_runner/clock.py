# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The server's clock, by which NotBefore is meant, and the identity of this boot."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import Callable

from azure_scheduled_events.named_tuple import NamedTuple
from hook_runner.atomic_file import replace_file

# so many answers in a row have to agree before a date is believed that contradicts what this clock
# says
ANSWERS_NEEDED = 3

_SECOND = timedelta(seconds=1)
# seconds by which a date may differ from this clock: it has whole seconds, and an answer may be on
# its way for a while
_TOLERANCE = 5.0
# the same while this is the host's own clock, which may be wrong as well
_TOLERANCE_OF_HOST = 300.0
# seconds by which dates that agree may differ
_AGREEMENT = 2.0
# smaller differences are not worth a line in the log; nor is more than one line in so many seconds
_WORTH_LOGGING = 60.0
_LOG_INTERVAL = 600.0
# years outside of these are no dates of a running server, and the ends of the calendar do not bear
# any sum
_YEARS = range(2000, 2201)


def boot_id() -> bytes:
    """What tells one start of the host from another: process ids mean nothing after the next."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read().strip()
    except OSError:
        return b""


def wall_clock() -> datetime:
    """This host's own idea of the time, aware and in UTC."""
    return datetime.now(timezone.utc)


class _Doubted(NamedTuple):
    """A date that contradicted the clock, when it came, and how many answers in a row have said the same."""

    date: datetime
    at: float
    answers: int


class ServerClock:
    """The server's clock, carried on by this host's monotonic one from one answer to the next.

    Therefore a host whose own clock is wrong, or is set, still knows how much time is left. Before
    the first answer with a date it is this host's own clock.

    One answer with an odd date changes nothing, since it would end hooks that have time: a date
    that differs by more than some seconds from this clock (some minutes from the host's own one)
    counts when several answers agree.

    Args:
        monotonic: seconds that never go back.
        wall: the host's own clock.
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], datetime] = wall_clock
    ) -> None:
        self.monotonic = monotonic
        self._wall = wall
        # the server's time at a moment of the monotonic clock; one value, since the poller's thread
        # reads it as well
        self._reference: tuple[datetime, float] | None = None
        self._doubted: _Doubted | None = None
        self._said_at = float("-inf")

    @property
    def is_doubtful(self) -> bool:
        """Whether the latest answer had a date that needs more answers that agree before it counts."""
        return self._doubted is not None

    def doubts(self, server_time: datetime | None, at: float) -> bool:
        """Return True if one answer with this date, at this monotonic time, does not set the clock. For any thread."""
        if server_time is None or server_time.year not in _YEARS:
            return False
        tolerance = _TOLERANCE_OF_HOST if self._reference is None else _TOLERANCE
        return abs((server_time - self.at(at)).total_seconds()) > tolerance

    def synchronise(self, server_time: datetime | None, at: float) -> str | None:
        """Take the date of an answer; ``at``: when it came, by the monotonic clock. None changes nothing.

        Returns a warning about an odd date that is worth a line in the log, else None.

        A date has whole seconds and stands for all of its second. So this clock moves no farther
        than into that second: taken as it is, each answer could move it back by most of one, and a
        hook would seem to end before it began.
        """
        if server_time is None:
            return None
        if server_time.year not in _YEARS:
            return self._log_oddity(f"a date of the year {server_time.year}", "it is ignored", at)
        if self.doubts(server_time, at):
            return self._weigh(server_time, at)
        self._doubted = None
        soonest, latest = server_time, server_time + _SECOND
        self._reference = (soonest if self._reference is None else min(max(self.at(at), soonest), latest), at)
        return None

    def _weigh(self, server_time: datetime, at: float) -> str | None:
        """Count the answers that agree on a date which contradicts this clock, and believe them when they are enough."""
        ahead = (server_time - self.at(at)).total_seconds()
        doubted = self._doubted
        if doubted is not None:
            apart = (server_time - doubted.date).total_seconds() - (at - doubted.at)
            doubted = doubted._replace(answers=doubted.answers + 1) if abs(apart) <= _AGREEMENT else None
        doubted = doubted or _Doubted(server_time, at, 1)
        if doubted.answers >= ANSWERS_NEEDED:
            self._doubted, self._reference = None, (server_time, at)
            return None
        self._doubted = doubted
        if doubted.answers > 1 or abs(ahead) <= _WORTH_LOGGING:
            return None
        what = f"a date that is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} what was expected"
        return self._log_oddity(what, f"it counts when {ANSWERS_NEEDED} answers in a row agree", at)

    def _log_oddity(self, what: str, remedy: str, at: float) -> str | None:
        if at - self._said_at < _LOG_INTERVAL:
            return None
        self._said_at = at
        return f"IMDS: the answer has {what}; {remedy}"

    def save(self, path: str) -> None:
        """Leave in a file what the server's clock was, for the next process on this host. Raises OSError."""
        if self._reference is not None:
            date, at = self._reference
            text = f"{boot_id().decode('ascii')}\n{at!r}\n{date.isoformat()}\n"
            replace_file(path, text.encode("ascii"), 0o600)

    def restore(self, path: str) -> None:
        """Go on from what an earlier process left, if the host has not been started since: its monotonic clock went on."""
        try:
            with open(path, encoding="ascii") as file:
                boot, at, heard = file.read(500).split()
            date = datetime.fromisoformat(heard)
            if (
                boot == boot_id().decode("ascii")
                and 0 <= float(at) <= self.monotonic()
                and date.tzinfo
                and date.year in _YEARS
            ):
                self._reference = date, float(at)
        except (OSError, ValueError):
            pass  # then it is told with the next answer

    def is_synchronised(self) -> bool:
        """Whether the server has told its time, so that this is more than the host's own idea of it."""
        return self._reference is not None

    def at(self, monotonic: float) -> datetime:
        """The time at a moment of the monotonic clock, aware and in UTC."""
        reference = self._reference
        if reference is None:
            return self._wall() - timedelta(seconds=self.monotonic() - monotonic)
        date, at = reference
        return date + timedelta(seconds=monotonic - at)

    def now(self) -> datetime:
        """The time now, aware and in UTC."""
        return self.at(self.monotonic())
