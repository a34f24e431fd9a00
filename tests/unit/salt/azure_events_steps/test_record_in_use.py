# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The record of a preparation while another process of Windows keeps its file open."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from azure_events_steps.configuration import parse_configuration
from azure_events_steps.minion import Minion
from azure_events_steps.record import PREPARED, Reason, Record
from support.salt import step_calls

_GENERIC_READ, _FILE_SHARE_DELETE, _OPEN_EXISTING = 0x80000000, 4, 3
RECORD = Record(PREPARED, "boot", 1, "digest", "2026-11-21T12:00:00Z", "", (Reason("C7061BAC"),))


@contextlib.contextmanager
def open_without_other_readers(path: str) -> Iterator[None]:
    """Keep a file open as a backup does: others may rename it, but not read it."""
    kernel = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined, unused-ignore]
    kernel.CreateFileW.restype = ctypes.c_void_p
    handle = kernel.CreateFileW(path, _GENERIC_READ, _FILE_SHARE_DELETE, None, _OPEN_EXISTING, 0, None)
    assert handle not in (None, ctypes.c_void_p(-1).value)
    try:
        yield
    finally:
        kernel.CloseHandle(ctypes.c_void_p(handle))


@pytest.mark.skipif(sys.platform != "win32", reason="other systems do not refuse to open a file in use")
@pytest.mark.parametrize("quarantine", [False, True])
def test_record_in_use_does_not_count_as_damaged(tmp_path: Path, quarantine: bool) -> None:
    minion = Minion(str(tmp_path), parse_configuration(None), step_calls.raises)
    minion.file.write(RECORD)
    with open_without_other_readers(minion.file.path), pytest.raises(PermissionError):
        minion.readable_record(quarantine)
    assert minion.readable_record() == RECORD
