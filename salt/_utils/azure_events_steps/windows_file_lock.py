# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""An exclusive lock on an open file, on Windows."""

from __future__ import annotations

import ctypes
import msvcrt
import sys
from ctypes import wintypes

assert sys.platform == "win32"

# Windows denies access to locked bytes; this one is far behind the content of any file with a lock
_BYTE = 1 << 30
_ERROR_LOCK_VIOLATION = 33

# msvcrt.locking has no errno for a lock of another descriptor under Wine
_kernel = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel.LockFile.argtypes = (wintypes.HANDLE, wintypes.DWORD, wintypes.DWORD, wintypes.DWORD, wintypes.DWORD)


def try_lock(fd: int) -> bool:
    """Lock the file until it is closed; return False if another descriptor has the lock."""
    if _kernel.LockFile(msvcrt.get_osfhandle(fd), _BYTE, 0, 1, 0):
        return True
    code = ctypes.get_last_error()
    if code != _ERROR_LOCK_VIOLATION:
        raise ctypes.WinError(code)
    return False
