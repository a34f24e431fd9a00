# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Priority for a measurement on a machine on which other programs run. Without root nothing changes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

# the scheduler shares the cores among sessions; the priority of a process counts only inside its session
_SESSION = Path("/proc/self/autogroup")


@contextlib.contextmanager
def highest() -> Iterator[None]:
    """Give this process, its children and its session the highest normal priority while the block runs."""
    with contextlib.suppress(PermissionError):
        os.nice(-20)
    session = _SESSION.read_text().split()[-1] if _SESSION.exists() else ""
    with contextlib.suppress(OSError):
        _SESSION.write_text("-20")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            _SESSION.write_text(session)


@contextlib.contextmanager
def real_time(pid: int) -> Iterator[None]:
    """Let all threads of a process run as soon as they can while the block runs.

    A server with one thread otherwise waits for the time slices of other programs, and one with a thread for
    each connection does not: a latency would be a property of the scheduler.
    """
    with contextlib.suppress(PermissionError):
        _set(pid, os.SCHED_RR, 1)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            _set(pid, os.SCHED_OTHER, 0)


def _set(pid: int, policy: int, priority: int) -> None:
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setscheduler(int(thread), policy, os.sched_param(priority))
