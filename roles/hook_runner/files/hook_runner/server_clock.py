# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What time it is by the server's clock, which is the one that NotBefore is meant by."""

from __future__ import annotations

import os
import time
from datetime import datetime, timedelta, timezone
from typing import Callable, Optional

from hook_runner.sessions import boot_id

_SECOND = timedelta(seconds=1)


def wall_clock() -> datetime:
    """This host's own idea of the time, aware and in UTC."""
    return datetime.now(timezone.utc)


class ServerClock:
    """The server's clock, carried on by this host's monotonic one from one answer to the next.

    So a host whose own clock is wrong, or is set meanwhile, still knows how much time is left. Before the first answer
    with a date it is this host's own clock.

    Args:
        monotonic: seconds that never go back.
        wall: the host's own clock.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], datetime] = wall_clock) -> None:
        self.monotonic = monotonic
        self._wall = wall
        self._heard: Optional[datetime] = None
        self._heard_at = 0.0

    def heard(self, server_time: Optional[datetime], at: float) -> None:
        """An answer said so; ``at``: when it came, by the monotonic clock. None changes nothing.

        A date has whole seconds and stands for all of its second. So this clock moves no farther than into that second:
        taken as it is, each answer could move it back by most of one, and a hook would seem to end before it began.
        """
        if server_time is not None:
            soonest, latest = server_time, server_time + _SECOND
            self._heard = soonest if self._heard is None else min(max(self.at(at), soonest), latest)
            self._heard_at = at

    def remember(self, path: str) -> None:
        """Leave in a file what the server's clock was, for the next process on this host. Raises OSError."""
        if self._heard is not None:
            draft = path + ".new"
            with open(draft, "w", encoding="ascii") as file:
                file.write("%s\n%r\n%s\n" % (boot_id().decode("ascii"), self._heard_at, self._heard.isoformat()))
            os.replace(draft, path)

    def recall(self, path: str) -> None:
        """Go on from what an earlier process left, if the host has not been started since: its monotonic clock went on."""
        try:
            with open(path, encoding="ascii") as file:
                boot, at, heard = file.read(500).split()
            if boot == boot_id().decode("ascii") and 0 <= float(at) <= self.monotonic():
                self._heard, self._heard_at = datetime.fromisoformat(heard), float(at)
        except (OSError, ValueError):
            pass  # then it is told with the next answer

    def is_set(self) -> bool:
        """Whether the server has told its time, so that this is more than the host's own idea of it."""
        return self._heard is not None

    def at(self, monotonic: float) -> datetime:
        """The time at a moment of the monotonic clock, aware and in UTC."""
        if self._heard is None:
            return self._wall() - timedelta(seconds=self.monotonic() - monotonic)
        return self._heard + timedelta(seconds=monotonic - self._heard_at)

    def now(self) -> datetime:
        """The time now, aware and in UTC."""
        return self.at(self.monotonic())
