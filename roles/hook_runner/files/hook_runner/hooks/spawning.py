# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Starts a supervisor as a child process.

The child holds the run's lock from its first instruction, and inherits nothing else of the daemon.
`units` starts supervisors in units of systemd instead; `has_units` returns whether that is possible.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import sys
from collections.abc import Iterator

from hook_runner.clock import boot_id

SUPERVISOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "supervisor.py")
# sd_booted(3)
BOOTED = "/run/systemd/system"
SYSTEMD = "/run/systemd/private"


class HostEnds(OSError):
    """systemd does not start the supervisor's unit now, because it is ending all services."""


def has_units() -> bool:
    """Return True if systemd runs this host and lets this process start units."""
    return os.geteuid() == 0 and os.path.isdir(BOOTED) and os.path.exists(SYSTEMD)


@contextlib.contextmanager
def opened(folder: str) -> Iterator[tuple[int, int]]:
    """Open and lock the lock file of the run in this folder, and open its pipe of requests.

    Closes both afterwards. Raises OSError.
    """
    lock = _duplicate_above(os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    requests = -1
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(lock, boot_id() + b"\n")
        # read and write: there is always a reader, and no request is lost
        requests = _duplicate_above(os.open(os.path.join(folder, "requests"), os.O_RDWR | os.O_NONBLOCK))
        yield lock, requests
    finally:
        # closed and not unlocked: the supervisor shares the lock
        os.close(lock)
        if requests >= 0:
            os.close(requests)


def spawn_supervisor(folder: str, log: int = 2) -> int:
    """Start the supervisor of the run in this folder as a child, and return its process id.

    The lock is taken before the child starts; therefore the run is never without it. TERM is blocked until the
    supervisor can handle it; therefore an early TERM also ends the hook. `log` is the descriptor that gets the
    hook's output. Raises OSError if the process cannot be started.
    """
    with opened(folder) as (lock, requests):
        has_log = _is_open(log)
        given = [(os.POSIX_SPAWN_DUP2, log, 2)] if has_log else []
        given += [(os.POSIX_SPAWN_DUP2, lock, 3), (os.POSIX_SPAWN_DUP2, requests, 4)]
        nowhere = [
            (os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in ((0, 1) if has_log else (0, 1, 2))
        ]
        command = [sys.executable, "-I", "-S", SUPERVISOR, folder]
        return os.posix_spawn(
            sys.executable, command, {"LANG": "C.UTF-8"}, file_actions=[*given, *nowhere], setsigmask=(signal.SIGTERM,)
        )


def _duplicate_above(descriptor: int) -> int:
    """Return a duplicate with a number above the supervisor's descriptors; close the original."""
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    finally:
        os.close(descriptor)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError as error:
        return error.errno != errno.EBADF
    return True
