# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The default ports of the simulator, for one test of this machine at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from support.wait import wait_until

# the control API, and two VMs
PORTS = (8168, 8169, 8170)
# seconds; the tests of all pages may wait for one another
TIMEOUT = 900.0


@contextlib.contextmanager
def default_ports() -> Iterator[None]:
    """Reserve the ports; other tests that call this wait. AssertionError if another program listens on one."""
    lock = Path(tempfile.gettempdir(), f"imds-simulator-default-ports-{os.geteuid()}")
    with lock.open("w") as file:
        wait_until(lambda: _is_locked(file.fileno()), "the lock of the default ports", timeout=TIMEOUT, pause=0.2)
        wait_until(lambda: all(map(_is_free, PORTS)), f"ports {PORTS} are free; end the program that listens there")
        yield


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) != 0
