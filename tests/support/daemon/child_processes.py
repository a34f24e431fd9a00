# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Child processes for the tests of the records: they die, have no disk space, or may not write."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest


def in_child(work: Callable[[], None]) -> int:
    """Run `work` in a child process; return 0, 1 if it raised, or minus the signal that ended it."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def on_small_disk(folder: Path, size: int, work: Callable[[], None]) -> None:
    """Run `work` in a process that has a file system of `size` bytes at a new folder; skip the test if it cannot."""
    folder.mkdir()

    def mounted() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        private, new_namespace = 0x40000 | 0x4000, 0x20000
        if libc.unshare(new_namespace) or libc.mount(None, b"/", None, private, None):
            os._exit(77)
        if libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, b"size=%d" % size):
            os._exit(77)
        work()

    if (status := in_child(mounted)) == 77:
        pytest.skip("a file system of a test's own needs root and mount namespaces")
    assert status == 0


def fill_up(path: Path) -> None:
    """Write to a file until the disk takes no more."""
    with open(path, "ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                pass
