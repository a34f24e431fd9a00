# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""An exclusive lock on an open file, on Windows."""

from __future__ import annotations

import errno
import msvcrt
import os
import sys

assert sys.platform == "win32"

# Windows denies access to locked bytes; this one is far behind the content of any file with a lock
_BYTE = 1 << 30
_LOCKED = (errno.EACCES, errno.EDEADLOCK)


def try_lock(fd: int) -> bool:
    """Lock the file until it is closed; return False if another descriptor has the lock."""
    os.lseek(fd, _BYTE, os.SEEK_SET)
    try:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
    except OSError as error:
        if error.errno not in _LOCKED:
            raise
        return False
    return True
