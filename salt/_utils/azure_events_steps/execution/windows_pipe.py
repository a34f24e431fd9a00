# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""A pipe of Windows whose reader never waits."""

from __future__ import annotations

import ctypes
import msvcrt
import os
import sys
from ctypes import wintypes

assert sys.platform == "win32"

# bytes that a writer may be ahead of the reader
_SIZE = 1024 * 1024

_kernel = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel.CreatePipe.argtypes = (wintypes.PHANDLE, wintypes.PHANDLE, wintypes.LPVOID, wintypes.DWORD)
_kernel.PeekNamedPipe.argtypes = (
    wintypes.HANDLE,
    wintypes.LPVOID,
    wintypes.DWORD,
    wintypes.LPVOID,
    wintypes.LPDWORD,
    wintypes.LPVOID,
)


class OutputPipe:
    """A pipe for the output of other processes.

    Attributes:
        write_end: its descriptor for them; this process closes it with `close_write_end`.

    Raises:
        OSError: Windows refuses the pipe.
    """

    def __init__(self) -> None:
        read, write = wintypes.HANDLE(), wintypes.HANDLE()
        if not _kernel.CreatePipe(ctypes.byref(read), ctypes.byref(write), None, _SIZE):
            raise ctypes.WinError(ctypes.get_last_error())
        self._read_end = msvcrt.open_osfhandle(int(read.value or 0), os.O_RDONLY)
        self.write_end = msvcrt.open_osfhandle(int(write.value or 0), 0)
        self._writing = True

    def close_write_end(self) -> None:
        """Close the end for writing in this process."""
        if self._writing:
            self._writing = False
            os.close(self.write_end)

    def read(self) -> bytes | None:
        """Return the bytes that are there; None if all writers have closed the pipe, and it is empty."""
        available = wintypes.DWORD()
        handle = msvcrt.get_osfhandle(self._read_end)
        if not _kernel.PeekNamedPipe(handle, None, 0, None, ctypes.byref(available), None):
            return None
        return os.read(self._read_end, available.value) if available.value else b""

    def close(self) -> None:
        """Close both ends in this process."""
        self.close_write_end()
        os.close(self._read_end)
