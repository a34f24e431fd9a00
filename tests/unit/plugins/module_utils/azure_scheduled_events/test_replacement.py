# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replacing a file, and reading it, while another process uses it."""

from __future__ import annotations

import errno
import subprocess
import sys
import threading

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import replacement


class Time:
    """A clock that only sleep() moves."""

    def __init__(self):
        self.now = 100.0
        self.pauses = 0

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.pauses += 1
        self.now += seconds


class InUse:
    """An action that fails until the clock has reached a time, as Windows fails for an open file."""

    def __init__(self, time, until, number=errno.EACCES):
        self.time, self.until, self.number = time, until, number

    def __call__(self):
        if self.time.now < self.until:
            raise OSError(self.number, "in use")
        return "done"


def is_in_use(error):
    return error.errno == errno.EACCES


def retried(time, action):
    return replacement.retried(action, is_in_use, time.clock, time.sleep)


def test_action_that_succeeds_is_not_followed_by_a_pause():
    time = Time()
    assert retried(time, InUse(time, 0.0)) == "done" and time.pauses == 0


def test_action_on_a_file_in_use_is_repeated_until_it_succeeds():
    time = Time()
    assert retried(time, InUse(time, 100.5)) == "done" and 100.5 <= time.now < 100.52


def test_action_on_a_file_that_stays_in_use_raises_after_a_second():
    time = Time()
    with pytest.raises(OSError) as refused:
        retried(time, InUse(time, 1000.0))
    assert refused.value.errno == errno.EACCES and 101.0 <= time.now < 101.02


def test_another_error_is_raised_at_once():
    time = Time()
    with pytest.raises(OSError) as refused:
        retried(time, InUse(time, 1000.0, errno.ENOSPC))
    assert refused.value.errno == errno.ENOSPC and time.pauses == 0


def test_file_is_replaced_and_read(tmp_path):
    draft, path = tmp_path / "draft", tmp_path / "file"
    for text in ("first", "second"):
        draft.write_text(text, encoding="ascii")
        replacement.replace_file(str(draft), str(path))
        assert replacement.read_file(str(path), "ascii") == text and not draft.exists()


def test_failed_replacement_keeps_both_files(tmp_path):
    draft, path = tmp_path / "draft", tmp_path / "folder"
    draft.write_text("new", encoding="ascii")
    path.mkdir()
    with pytest.raises(OSError):
        replacement.replace_file(str(draft), str(path))
    assert draft.read_text(encoding="ascii") == "new" and path.is_dir()
    with pytest.raises(FileNotFoundError):
        replacement.replace_file(str(tmp_path / "absent"), str(tmp_path / "file"))


def test_unreadable_file_raises(tmp_path):
    with pytest.raises(FileNotFoundError):
        replacement.read_file(str(tmp_path / "absent"), "ascii")
    (tmp_path / "file").write_text("\u00fc", encoding="utf-8")
    with pytest.raises(ValueError):
        replacement.read_file(str(tmp_path / "file"), "ascii")


def test_file_that_a_reader_has_open_is_replaced_when_the_reader_closes_it(tmp_path):
    draft, path = tmp_path / "draft", tmp_path / "file"
    path.write_text("old", encoding="ascii")
    draft.write_text("new", encoding="ascii")
    with open(path, encoding="ascii") as reader:
        closing = threading.Timer(0.2, reader.close)
        closing.start()
        replacement.replace_file(str(draft), str(path))
        # Windows waits for the reader, other systems do not
        assert reader.closed or sys.platform != "win32"
        closing.join()
    assert path.read_text(encoding="ascii") == "new"


@pytest.mark.skipif(sys.platform != "win32", reason="only Windows refuses to replace a file that is open")
def test_file_that_a_reader_keeps_open_is_not_replaced(tmp_path):
    draft, path = tmp_path / "draft", tmp_path / "file"
    path.write_text("old", encoding="ascii")
    draft.write_text("new", encoding="ascii")
    with open(path, encoding="ascii"), pytest.raises(PermissionError):
        replacement.replace_file(str(draft), str(path))
    assert path.read_text(encoding="ascii") == "old" and draft.read_text(encoding="ascii") == "new"


READER = """
import importlib.util, sys, time

spec = importlib.util.spec_from_file_location("replacement", sys.argv[1])
replacement = importlib.util.module_from_spec(spec)
spec.loader.exec_module(replacement)
print("ready", flush=True)
reads, text = 0, ""
while text != "end":
    text = replacement.read_file(sys.argv[2], "ascii")
    assert text == "end" or (len(text) == 1000 and len(set(text)) == 1), text
    reads += 1
    # without a pause a busy machine may never let the writer in
    time.sleep(0.002)
print(reads)
"""


def test_file_is_whole_for_a_process_that_reads_it_all_the_time(tmp_path):
    draft, path = tmp_path / "draft", tmp_path / "file"
    path.write_text("x" * 1000, encoding="ascii")
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, replacement.__file__, str(path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    limit = threading.Timer(60.0, reader.kill)
    limit.start()
    try:
        assert reader.stdout.readline().strip() == b"ready"
        for number in range(60):
            draft.write_text(str(number % 10) * 1000, encoding="ascii")
            replacement.replace_file(str(draft), str(path))
        draft.write_text("end", encoding="ascii")
        replacement.replace_file(str(draft), str(path))
        output, errors = reader.communicate()
    finally:
        limit.cancel()
        reader.kill()
        reader.wait()
    assert (reader.returncode, errors) == (0, b"") and int(output) > 0
