# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""An exclusive lock on an open file, on POSIX systems."""

from __future__ import annotations

import fcntl


def try_lock(fd: int) -> bool:
    """Lock the file until it is closed; return False if another descriptor has the lock."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
