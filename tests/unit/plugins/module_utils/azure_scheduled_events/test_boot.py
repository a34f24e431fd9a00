# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""The identity of the boot of this machine."""

from __future__ import annotations

import re
import struct
import subprocess
import sys

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import boot


def test_identity_is_the_same_in_every_process_of_a_boot():
    program = "import runpy, sys; print(runpy.run_path(sys.argv[1])['boot_id']())"
    other = subprocess.run(
        [sys.executable, "-c", program, boot.__file__], check=True, capture_output=True, stdin=subprocess.DEVNULL
    )
    assert boot.boot_id() == boot.boot_id() == other.stdout.decode("ascii").strip() != ""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc/sys/kernel/random/boot_id")
def test_identity_on_linux_is_that_of_the_kernel():
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", boot.boot_id())


@pytest.mark.skipif(sys.platform != "win32", reason="only Windows notes the time of the boot")
def test_identity_on_windows_has_the_time_of_the_boot():
    import ctypes
    import time

    uptime = ctypes.WinDLL("kernel32").GetTickCount64
    uptime.restype = ctypes.c_ulonglong
    prefix, _dash, ticks = boot.boot_id().partition("-")
    # units of 100 ns since 1601; the clock may have been set since the boot
    booted = int(ticks) / 1e7 - 11_644_473_600
    assert prefix == "windows" and abs(time.time() - uptime() / 1000 - booted) < 86_400


def time_of_day(booted, moved):
    return struct.pack("<qqqIIqq", booted, booted + 10**9, 0, 0, 0, moved, 0)


@pytest.mark.parametrize("jump", [36_000_000_000, -36_000_000_000, 1])
def test_identity_on_windows_stays_when_the_clock_is_set(jump):
    booted = 134_399_194_171_763_790
    before = boot.boot_of_time_of_day(time_of_day(booted, 0))
    assert boot.boot_of_time_of_day(time_of_day(booted + jump, jump)) == before != ""
    assert boot.boot_of_time_of_day(time_of_day(booted + jump, 0)) != before


def test_identity_on_windows_without_a_time_of_the_boot_is_empty():
    assert boot.boot_of_time_of_day(time_of_day(0, 0)) == ""
