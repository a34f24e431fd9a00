# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""A lock between the processes of one minion. The kernel releases it when its holder exits."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from typing import Callable, Iterator

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

PREPARATION = "preparation.lock"
APPROVAL = "approval.lock"

_PAUSE = 0.1
_MAX_NOTE_BYTES = 4096


class Lock:
    """A lock that this process holds.

    Attributes:
        fd: its descriptor, which a forked process that may outlive this one must close.
        waited: seconds that it took to get the lock.
    """

    def __init__(self, fd: int, waited: float) -> None:
        self.fd = fd
        self.waited = waited

    def note(self, text: str) -> None:
        """Write the event that the holder works on, for `holder_of`; ignore a full disk."""
        with contextlib.suppress(OSError):
            os.ftruncate(self.fd, 0)
            os.pwrite(self.fd, text.encode("utf-8", "backslashreplace")[:_MAX_NOTE_BYTES], 0)


@contextlib.contextmanager
def acquire(
    folder: str,
    name: str,
    timeout: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Lock | None]:
    """Hold the lock of that name, or yield None if another process holds it for ``timeout`` seconds."""
    if fcntl is None:
        raise OSError(errno.ENOSYS, "this system has no locks between processes (flock)")
    began = clock()
    fd = os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while not _try_lock(fd):
            if clock() - began >= timeout:
                yield None
                return
            sleep(_PAUSE)
        lock = Lock(fd, clock() - began)
        try:
            yield lock
        finally:
            lock.note("")
    finally:
        os.close(fd)


def holder_of(folder: str, name: str) -> str | None:
    """Return the note of the lock's holder, or None if no process holds the lock."""
    try:
        fd = os.open(os.path.join(folder, name), os.O_RDWR)
    except OSError:
        return None
    try:
        if fcntl is None or _try_lock(fd):
            return None
        return os.pread(fd, _MAX_NOTE_BYTES, 0).decode("utf-8", "replace")
    finally:
        os.close(fd)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
