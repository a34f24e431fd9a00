# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Ends all processes of a network namespace, also those in a session of their own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import time
from collections.abc import Iterator

# linux/sockios.h
_SIOCGSKNS = 0x894C
# processes may fork between two searches; one that the kernel cannot end (state D) must not hold up the caller
_SEARCHES = 200
# real seconds between two searches
_INTERVAL = 0.02


def network_of(sock: socket.socket) -> int:
    """Return the inode of the network namespace of ``sock``.

    The user has to own its user namespace, or to have CAP_NET_ADMIN; OSError otherwise.
    """
    descriptor = fcntl.ioctl(sock, _SIOCGSKNS)
    try:
        return os.fstat(descriptor).st_ino
    finally:
        os.close(descriptor)


def kill_processes(network: int) -> None:
    """Kill all processes in ``network``, the inode of a network namespace, until there is none, for some seconds."""
    for _search in range(_SEARCHES):
        found = list(_processes(network))
        if not found:
            return
        for process in found:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_INTERVAL)


def _processes(network: int) -> Iterator[int]:
    for name in os.listdir("/proc"):
        # ended in the meantime, or of another user
        with contextlib.suppress(OSError):
            if name.isdecimal() and os.stat(f"/proc/{name}/ns/net").st_ino == network:
                yield int(name)
