# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Finds and ends all descendants of a process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time

_SET_CHILD_SUBREAPER = 36
_PROC = "/proc"
# seconds between SIGTERM and SIGKILL
_GRACE = 2.0
_PAUSE = 0.02


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose parent exits, so that they are found.

    Linux only.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(ancestor: int) -> list[int]:
    """Return the descendants of a process; empty on a system without /proc."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir(_PROC)
    except OSError:
        return []
    for name in names:
        if name.isdecimal():
            # the process may exit before it is read
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"{_PROC}/{name}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
                if state not in (b"Z", b"X"):
                    children.setdefault(int(parent), []).append(int(name))
    found: list[int] = []
    waiting = [ancestor]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def end_descendants(first: int) -> None:
    """End all descendants of this process with SIGTERM, and after _GRACE seconds with SIGKILL.

    The process group of the first descendant is ended on systems without /proc too.
    """
    asked: set[int] = set()
    began = time.monotonic()
    while True:
        _reap()
        left = descendants(os.getpid())
        late = time.monotonic() - began >= _GRACE or not os.path.isdir(_PROC + "/self")
        if not left and (late or asked):
            break
        if not asked or late:
            with contextlib.suppress(OSError):
                os.killpg(first, signal.SIGKILL if late else signal.SIGTERM)
            asked.add(first)
        for pid in left:
            if late or pid not in asked:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
                asked.add(pid)
        if time.monotonic() - began >= 5 * _GRACE:
            break  # the kernel cannot end a process that waits for a dead disk
        time.sleep(_PAUSE)
    _reap()


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
