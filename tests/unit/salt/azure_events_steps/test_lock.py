# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The lock between the jobs of a minion, and their record while another process has it open."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from azure_events_steps import lock
from azure_events_steps.configuration import parse_configuration
from azure_events_steps.minion import Minion
from azure_events_steps.record import PREPARED, Reason, Record
from support.salt.steps import raises

NAME = lock.PREPARATION
_GENERIC_READ, _FILE_SHARE_DELETE, _OPEN_EXISTING = 0x80000000, 4, 3
RECORD = Record(PREPARED, "boot", 1, "digest", "2026-11-21T12:00:00Z", "", (Reason("C7061BAC"),))


@pytest.mark.parametrize("note", ["C7061BAC", "", "two\nlines", "\u00fc\u6f22\x1a\udc80"])
def test_note_is_read_while_the_lock_is_held(tmp_path: Path, note: str) -> None:
    assert lock.holder_of(str(tmp_path), NAME) is None
    with lock.acquire(str(tmp_path), NAME, 1) as held:
        assert held is not None
        held.note("a longer note of the holder before")
        held.note(note)
        assert lock.holder_of(str(tmp_path), NAME) == note.encode("utf-8", "backslashreplace").decode()
    assert lock.holder_of(str(tmp_path), NAME) is None


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
    minion = Minion(str(tmp_path), parse_configuration(None), raises)
    minion.file.write(RECORD)
    with open_without_other_readers(minion.file.path), pytest.raises(PermissionError):
        minion.readable_record(quarantine)
    assert minion.readable_record() == RECORD
