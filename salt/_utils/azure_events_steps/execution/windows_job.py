# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""A job object of Windows: processes that end together, with all processes that they start."""

from __future__ import annotations

import ctypes
import sys
import time
from ctypes import wintypes

assert sys.platform == "win32"

# of process creation: the process does not run before it is in the job
CREATE_SUSPENDED = 0x4

_KILL_ON_JOB_CLOSE = 0x2000
_ACCOUNTING_CLASS, _LIMITS_CLASS = 1, 9
# rights to a process: to end it, to put it into a job, to resume it
_RIGHTS = 0x0001 | 0x0100 | 0x0800
_EXIT_CODE = 1
_PAUSE = 0.02


class _Accounting(ctypes.Structure):
    """JOBOBJECT_BASIC_ACCOUNTING_INFORMATION."""

    _fields_ = [
        ("times", ctypes.c_longlong * 4),
        ("page_faults", wintypes.DWORD),
        ("processes", wintypes.DWORD),
        ("active_processes", wintypes.DWORD),
        ("ended_processes", wintypes.DWORD),
    ]


class _Limits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = [
        ("user_times", ctypes.c_longlong * 2),
        ("flags", wintypes.DWORD),
        ("working_set_sizes", ctypes.c_size_t * 2),
        ("active_processes", wintypes.DWORD),
        ("affinity", ctypes.c_size_t),
        ("priority_class", wintypes.DWORD),
        ("scheduling_class", wintypes.DWORD),
        ("io_counters", ctypes.c_ulonglong * 6),
        ("memory_sizes", ctypes.c_size_t * 4),
    ]


_kernel = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel.CreateJobObjectW.restype = wintypes.HANDLE
_kernel.CreateJobObjectW.argtypes = (wintypes.LPVOID, wintypes.LPCWSTR)
_kernel.SetInformationJobObject.argtypes = (wintypes.HANDLE, ctypes.c_int, wintypes.LPVOID, wintypes.DWORD)
_kernel.QueryInformationJobObject.argtypes = (
    wintypes.HANDLE,
    ctypes.c_int,
    wintypes.LPVOID,
    wintypes.DWORD,
    wintypes.LPVOID,
)
_kernel.AssignProcessToJobObject.argtypes = (wintypes.HANDLE, wintypes.HANDLE)
_kernel.TerminateJobObject.argtypes = (wintypes.HANDLE, wintypes.UINT)
_kernel.OpenProcess.restype = wintypes.HANDLE
_kernel.OpenProcess.argtypes = (wintypes.DWORD, wintypes.BOOL, wintypes.DWORD)
_kernel.CloseHandle.argtypes = (wintypes.HANDLE,)
_ntdll = ctypes.WinDLL("ntdll")
_ntdll.NtResumeProcess.argtypes = (wintypes.HANDLE,)
_ntdll.NtResumeProcess.restype = ctypes.c_long


class Job:
    """A job that ends its processes when it is closed, or when this process exits.

    Raises:
        OSError: Windows refuses the job.
    """

    def __init__(self) -> None:
        # without security attributes no other process inherits the handle
        self._handle = _checked(_kernel.CreateJobObjectW(None, None))
        self._set_flags(_KILL_ON_JOB_CLOSE)

    def start(self, pid: int) -> None:
        """Put a suspended process of this process into the job, and resume it.

        After an OSError the process is still suspended.
        """
        process = _checked(_kernel.OpenProcess(_RIGHTS, False, pid))
        try:
            _checked(_kernel.AssignProcessToJobObject(self._handle, process))
            status = _ntdll.NtResumeProcess(process)
            if status < 0:
                raise OSError(f"the process cannot be resumed: status 0x{status & 0xFFFFFFFF:08x}")
        finally:
            _kernel.CloseHandle(process)

    def end(self, timeout: float) -> None:
        """End all processes, and wait at most ``timeout`` seconds for their end."""
        _checked(_kernel.TerminateJobObject(self._handle, _EXIT_CODE))
        ends = time.monotonic() + timeout
        while self._active_processes() and time.monotonic() < ends:
            time.sleep(_PAUSE)

    def release(self) -> None:
        """Let the processes that still run outlive the job."""
        self._set_flags(0)

    def close(self) -> None:
        """Close the job, which ends its processes unless it has released them."""
        _kernel.CloseHandle(self._handle)

    def _set_flags(self, flags: int) -> None:
        limits = _Limits(flags=flags)
        _checked(
            _kernel.SetInformationJobObject(self._handle, _LIMITS_CLASS, ctypes.byref(limits), ctypes.sizeof(limits))
        )

    def _active_processes(self) -> int:
        found = _Accounting()
        _checked(
            _kernel.QueryInformationJobObject(
                self._handle, _ACCOUNTING_CLASS, ctypes.byref(found), ctypes.sizeof(found), None
            )
        )
        return int(found.active_processes)


def _checked(result: int) -> int:
    if not result:
        raise ctypes.WinError(ctypes.get_last_error())
    return result
