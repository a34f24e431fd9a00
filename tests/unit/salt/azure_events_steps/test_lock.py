# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The lock between the jobs of a minion, on Linux and on Windows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from azure_events_steps import lock

NAME = lock.PREPARATION


def test_second_holder_waits_for_its_timeout_and_gets_nothing(tmp_path: Path) -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    with (
        lock.acquire(str(tmp_path), NAME, 1) as first,
        lock.acquire(str(tmp_path), NAME, 1, clock=lambda: now[0], sleep=sleep) as second,
    ):
        assert first is not None and second is None
    assert 1 <= now[0] < 1.5


@pytest.mark.parametrize("note", ["C7061BAC", "", "two\nlines", "\u00fc\u6f22\x1a\udc80"])
def test_note_is_read_while_the_lock_is_held(tmp_path: Path, note: str) -> None:
    with lock.acquire(str(tmp_path), NAME, 1) as held:
        assert held is not None
        held.note("a longer note of the holder before")
        held.note(note)
        assert lock.holder_of(str(tmp_path), NAME) == note.encode("utf-8", "backslashreplace").decode()
    assert lock.holder_of(str(tmp_path), NAME) is None


def test_lock_without_a_file_has_no_holder(tmp_path: Path) -> None:
    assert lock.holder_of(str(tmp_path), NAME) is None


def test_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    code = (
        "import sys, time; sys.path[:] = sys.argv[2:]; from azure_events_steps import lock\n"
        "with lock.acquire(sys.argv[1], lock.PREPARATION, 1) as held:\n"
        "    held.note('A'); print('held', flush=True); time.sleep(300)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path), *sys.path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline().strip() == b"held"
        assert lock.holder_of(str(tmp_path), NAME) == "A"
        holder.kill()
    with lock.acquire(str(tmp_path), NAME, 10) as held:
        assert held is not None
