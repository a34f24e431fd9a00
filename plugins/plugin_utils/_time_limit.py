# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A time limit for calls that may hang, such as a connection to a host that no longer exists."""

from __future__ import annotations

import contextlib
import glob
import os
import signal
import time
import typing as t


class TimeLimitExceeded(BaseException):
    """The time is up. It is not an Exception, so that handlers of other errors do not catch it."""


@contextlib.contextmanager
def time_limit(seconds: float) -> t.Iterator[None]:
    """Raise TimeLimitExceeded in the main thread after this time in seconds.

    An alarm that was set before, such as that of the task's option ``timeout``, remains in force. Other code in the
    block must not use SIGALRM.
    """
    left, started = signal.getitimer(signal.ITIMER_REAL)[0], time.monotonic()
    if 0 < left <= seconds:
        yield
        return

    def on_alarm(*_: object) -> None:
        raise TimeLimitExceeded()

    previous = signal.signal(signal.SIGALRM, on_alarm)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, previous)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, left - (time.monotonic() - started)))


def kill_children() -> None:
    """Kill the children of this process, such as an ssh client that hangs; without /proc they remain."""
    for path in glob.glob("/proc/self/task/*/children"):
        with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            for pid in file.read().split():
                os.kill(int(pid), signal.SIGKILL)
