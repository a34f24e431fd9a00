# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""A lock between the jobs of one minion.

The kernel releases it when the last process exits that has its descriptor: the job, and while a step runs the
supervisor of the step, which ends the processes of a killed job.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Callable, Iterator

from azure_events_watch import durable_file

PREPARATION = "preparation.lock"
APPROVAL = "approval.lock"

_MAX_NOTE_BYTES = 4096
# Windows would otherwise change the ends of lines
_OPEN = os.O_RDWR | getattr(os, "O_BINARY", 0)


class Lock:
    """A lock that this process holds.

    Attributes:
        fd: its descriptor, which a forked process must close that may stay after the job.
        waited: seconds that it took to get the lock.
    """

    def __init__(self, fd: int, waited: float) -> None:
        self.fd = fd
        self.waited = waited

    def note(self, text: str) -> None:
        """Write the event that the holder works on, for `holder_of`; ignore a full disk."""
        with contextlib.suppress(OSError):
            os.ftruncate(self.fd, 0)
            os.lseek(self.fd, 0, os.SEEK_SET)
            os.write(self.fd, text.encode("utf-8", "backslashreplace")[:_MAX_NOTE_BYTES])


@contextlib.contextmanager
def acquire(
    folder: str,
    name: str,
    timeout: float,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Lock | None]:
    """Hold the lock of that name, or yield None if another process holds it for ``timeout`` seconds."""
    began = time.monotonic()
    fd = os.open(os.path.join(folder, name), _OPEN | os.O_CREAT, 0o600)
    try:
        if not durable_file.lock(fd, timeout, sleep=sleep):
            yield None
            return
        lock = Lock(fd, time.monotonic() - began)
        try:
            yield lock
        finally:
            lock.note("")
    finally:
        os.close(fd)


def holder_of(folder: str, name: str) -> str | None:
    """Return the note of the lock's holder, or None if no process holds the lock."""
    try:
        fd = os.open(os.path.join(folder, name), _OPEN)
    except OSError:
        return None
    try:
        if durable_file.lock(fd):
            return None
        os.lseek(fd, 0, os.SEEK_SET)
        return os.read(fd, _MAX_NOTE_BYTES).decode("utf-8", "replace")
    finally:
        os.close(fd)
