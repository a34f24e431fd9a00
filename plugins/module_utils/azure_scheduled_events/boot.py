# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The identity of the present boot, on Linux and Windows."""

from __future__ import annotations

import sys

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
# NtQuerySystemInformation: class SystemTimeOfDayInformation, and the size of its structure
_TIME_OF_DAY, _TIME_OF_DAY_SIZE = 3, 48


def boot_id() -> str:
    """Return a text that differs from boot to boot and stays the same within one; "" if the system has none."""
    return _of_windows() if sys.platform == "win32" else _of_linux()


def _of_linux() -> str:
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""


def _of_windows() -> str:
    import ctypes  # hardly any program asks for it

    answer = ctypes.create_string_buffer(_TIME_OF_DAY_SIZE)
    try:
        library = ctypes.WinDLL("ntdll")  # type: ignore[attr-defined, unused-ignore]
        status = library.NtQuerySystemInformation(_TIME_OF_DAY, answer, _TIME_OF_DAY_SIZE, None)
    except (OSError, AttributeError):
        return ""
    return boot_of_time_of_day(answer.raw) if status == 0 else ""


def boot_of_time_of_day(answer: bytes) -> str:
    """Return the identity of the boot in Windows' answer about the time of day.

    Windows moves the time of the boot along whenever the clock is set, and keeps the sum of these moves beside it. The
    identity is the time of the boot by the clock as it was then, in units of 100 ns; it is "" if the answer has no
    time of the boot. The answer is a structure SYSTEM_TIMEOFDAY_INFORMATION: BootTime at byte 0, BootTimeBias at byte
    32.
    """
    booted = int.from_bytes(answer[0:8], "little")
    moved = int.from_bytes(answer[32:40], "little", signed=True)
    return f"windows-{booted - moved}" if booted else ""
