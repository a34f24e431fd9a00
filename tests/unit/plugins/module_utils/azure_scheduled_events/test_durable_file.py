# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are written, read and locked by processes that are killed, and on a disk that takes no more."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
import time

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import durable_file

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes, links and descriptors of folders")
WINDOWS = pytest.mark.skipif(sys.platform != "win32", reason="only Windows refuses to replace a file that is open")

# the file alone, as in a program without the helper
CHILD = """
import importlib.util, os, sys, time

spec = importlib.util.spec_from_file_location("durable_file", sys.argv[1])
durable_file = importlib.util.module_from_spec(spec)
spec.loader.exec_module(durable_file)
path = sys.argv[2]
"""

WRITER = """
for number in range(int(sys.argv[3]), 1000000):
    durable_file.write(path, b"%d\\n" % number * 1000)
    print(number, flush=True)
"""

KILLED_WITH_A_DRAFT = """
with durable_file.replacing(path) as draft:
    with open(draft, "w") as file:
        file.write("half")
    os._exit(9)
"""

READER = """
print("ready", flush=True)
reads, content = 0, b""
while content != b"end":
    content = durable_file.read(path)
    assert content == b"end" or (len(content) == 1000 and len(set(content)) == 1), content
    reads += 1
    # without a pause a busy machine may never let the writer in
    time.sleep(0.002)
print(reads)
"""

LOCKER = """
descriptor = os.open(path, os.O_RDWR)
assert durable_file.lock(descriptor)
print("locked", flush=True)
time.sleep(300)
"""

WITHOUT_ROOM = """
import resource, signal

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
try:
    durable_file.write(path, b"x" * 100)
except OSError as error:
    print(error.errno)
"""


def start(program, *arguments):
    command = [sys.executable, "-c", CHILD + program, durable_file.__file__, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class Time:
    """A clock that only sleep() moves."""

    def __init__(self):
        self.now = 100.0

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.mark.parametrize(
    "until, number, result, ends",
    [
        (100.5, errno.EACCES, "done", 100.5),
        (1000.0, errno.EACCES, errno.EACCES, 101.0),
        (1000.0, errno.ENOSPC, errno.ENOSPC, 100.0),
    ],
    ids=["free soon", "in use", "another error"],
)
def test_action_on_a_file_in_use_is_repeated_for_a_second(until, number, result, ends):
    time = Time()

    def action():
        if time.now < until:
            raise OSError(number, "as Windows fails for an open file")
        return "done"

    try:
        found = durable_file.retried(action, lambda error: error.errno == errno.EACCES, time.clock, time.sleep)
    except OSError as error:
        found = error.errno
    assert found == result and ends <= time.now < ends + 0.02


def test_write_replaces_the_file_and_leaves_no_other(tmp_path):
    path = tmp_path / "file"
    for content in (b"first", b"second\r\n\x00"):
        durable_file.write(str(path), content)
        assert durable_file.read(str(path)) == content
    assert os.listdir(str(tmp_path)) == ["file"]


def test_write_into_the_current_folder_needs_no_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    durable_file.write("file", b"content")
    assert durable_file.read("file") == b"content"
    for _time in range(2):
        durable_file.remove("file")
        assert os.listdir(str(tmp_path)) == []


@POSIX
@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_write_sets_the_mode_with_any_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        durable_file.write(str(tmp_path / "private"), b"")
        durable_file.write(str(tmp_path / "public"), b"", mode=0o644)
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"private": 0o600, "public": 0o644}


@POSIX
@pytest.mark.skipif(sys.platform != "win32" and os.geteuid() != 0, reason="only root can give a file away")
def test_write_gives_the_file_to_its_owner(tmp_path):
    durable_file.write(str(tmp_path / "file"), b"", owner=(12345, 54321))
    found = (tmp_path / "file").stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (12345, 54321, 0o600)


@POSIX
def test_folder_of_a_descriptor_is_used_also_when_another_has_its_name(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    descriptor = os.open(str(folder), os.O_RDONLY)
    try:
        folder.rename(tmp_path / "moved")
        folder.mkdir()
        durable_file.write("file", b"content", dir_fd=descriptor)
        assert durable_file.read("file", descriptor) == b"content"
        assert (tmp_path / "moved" / "file").read_bytes() == b"content"
        durable_file.remove("file", descriptor)
    finally:
        os.close(descriptor)
    assert os.listdir(str(folder)) == os.listdir(str(tmp_path / "moved")) == []


@POSIX
def test_link_is_replaced_by_write_and_refused_by_read(tmp_path):
    secret, path = tmp_path / "secret", tmp_path / "file"
    secret.write_text("secret")
    secret.chmod(0o600)
    path.symlink_to(secret)
    with pytest.raises(OSError) as refused:
        durable_file.read(str(path))
    assert refused.value.errno == errno.ELOOP
    durable_file.write(str(path), b"figures", mode=0o644)
    assert (secret.read_text(), stat.S_IMODE(secret.stat().st_mode)) == ("secret", 0o600)
    assert (path.is_symlink(), path.read_text()) == (False, "figures")


def test_file_that_exists_is_not_created(tmp_path):
    path = tmp_path / "file"
    path.write_text("before", encoding="ascii")
    with pytest.raises(FileExistsError):
        durable_file.create(str(path), b"content")
    assert path.read_text(encoding="ascii") == "before"


@POSIX
def test_link_is_replaced_by_a_new_one(tmp_path):
    path = tmp_path / "link"
    path.symlink_to("first")
    with durable_file.replacing(str(path)) as draft:
        os.symlink("second", draft)
    assert os.readlink(str(path)) == "second" and os.listdir(str(tmp_path)) == ["link"]


@pytest.mark.parametrize("place", ["file", "absent/file"])
def test_failed_write_leaves_no_draft_and_names_the_file(tmp_path, place):
    (tmp_path / "file" / "below").mkdir(parents=True)
    path = str(tmp_path / place)
    with pytest.raises(OSError) as raised:
        durable_file.write(path, b"content")
    assert (raised.value.filename, raised.value.filename2) == (path, None)
    assert isinstance(raised.value, FileNotFoundError) is (place == "absent/file")
    assert os.listdir(str(tmp_path)) == ["file"] and (tmp_path / "file" / "below").is_dir()


@POSIX
def test_disk_that_takes_no_more_keeps_the_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("before")
    with start(WITHOUT_ROOM, path) as child:
        output, errors = child.communicate(timeout=60)
    assert (int(output), errors) == (errno.EFBIG, b"")
    assert os.listdir(str(tmp_path)) == ["file"] and path.read_text() == "before"


@POSIX
@pytest.mark.parametrize("by_descriptor", [False, True])
def test_content_is_on_the_disk_before_the_name_is(tmp_path, monkeypatch, by_descriptor):
    done = []
    replace, sync = os.replace, os.fsync

    def noted_replace(*paths, **folders):
        done.append("rename")
        replace(*paths, **folders)

    def noted_sync(descriptor):
        found = os.fstat(descriptor)
        done.append("folder" if os.path.samestat(found, tmp_path.stat()) else found.st_size)
        sync(descriptor)

    monkeypatch.setattr(os, "replace", noted_replace)
    monkeypatch.setattr(os, "fsync", noted_sync)
    folder = os.open(str(tmp_path), os.O_RDONLY) if by_descriptor else None
    path = "file" if by_descriptor else str(tmp_path / "file")
    try:
        durable_file.write(path, b"content", dir_fd=folder)
        assert done == [len(b"content"), "rename", "folder"]
        durable_file.remove(path, folder)
        assert done[3:] == ["folder"]
    finally:
        if folder is not None:
            os.close(folder)


def test_killed_writer_loses_nothing_that_it_has_written(tmp_path):
    path = tmp_path / "file"
    written = 0
    for writes in range(1, 9):
        with start(WRITER, path, written + 1) as child:
            told = [child.stdout.readline() for _number in range(writes)]
            child.kill()
            told += child.stdout.read().splitlines(keepends=True)
        known = int([line for line in told if line.endswith(b"\n")][-1])
        content = path.read_bytes()
        written = int(content.split(b"\n")[0])
        assert content == b"%d\n" % written * 1000 and written in (known, known + 1)


@pytest.mark.parametrize("age", [3600, -3600], ids=["old", "made before the clock was set back"])
def test_draft_of_a_killed_process_is_removed_when_it_is_old(tmp_path, age):
    path, other = tmp_path / "file", tmp_path / "other"
    with start(KILLED_WITH_A_DRAFT, path) as child:
        assert child.wait(60) == 9
    (draft,) = tmp_path.iterdir()
    durable_file.write(str(path), b"content")
    # it may be that of a process that still writes
    assert draft.read_text() == "half"
    other.touch()
    for each in (draft, other):
        os.utime(str(each), (time.time() - age, time.time() - age))
    durable_file.write(str(path), b"content")
    assert sorted(os.listdir(str(tmp_path))) == ["file", "other"]


@POSIX
def test_old_draft_of_a_link_is_removed(tmp_path):
    path = tmp_path / "link"
    with pytest.raises(KeyboardInterrupt), durable_file.replacing(str(path)) as draft:
        os.symlink("absent", draft)
        raise KeyboardInterrupt
    assert os.listdir(str(tmp_path)) == []
    os.symlink("absent", draft)
    os.utime(draft, (0, 0), follow_symlinks=False)
    durable_file.write(str(path), b"content")
    assert os.listdir(str(tmp_path)) == ["link"]


def test_file_that_a_reader_has_open_is_replaced_when_the_reader_closes_it(tmp_path):
    path = tmp_path / "file"
    path.write_text("old", encoding="ascii")
    with open(path, encoding="ascii") as reader:
        closing = threading.Timer(0.2, reader.close)
        closing.start()
        durable_file.write(str(path), b"new")
        # Windows waits for the reader, other systems do not
        assert reader.closed or sys.platform != "win32"
        closing.join()
    assert path.read_text(encoding="ascii") == "new"


@WINDOWS
def test_file_that_a_reader_keeps_open_is_not_replaced(tmp_path):
    path = tmp_path / "file"
    path.write_text("old", encoding="ascii")
    with open(path, encoding="ascii"), pytest.raises(PermissionError):
        durable_file.write(str(path), b"new")
    assert path.read_text(encoding="ascii") == "old" and os.listdir(str(tmp_path)) == ["file"]


def test_file_is_whole_for_a_process_that_reads_it_all_the_time(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1000)
    reader = start(READER, path)
    limit = threading.Timer(60.0, reader.kill)
    limit.start()
    try:
        assert reader.stdout.readline().strip() == b"ready"
        for number in range(60):
            durable_file.write(str(path), b"%d" % (number % 10) * 1000)
        durable_file.write(str(path), b"end")
        output, errors = reader.communicate()
    finally:
        limit.cancel()
        reader.kill()
        reader.wait()
    assert (reader.returncode, errors) == (0, b"") and int(output) > 0


def test_value_of_a_json_file_is_read(tmp_path):
    path = tmp_path / "file"
    with pytest.raises(FileNotFoundError):
        durable_file.read_json(str(path))
    durable_file.write(str(path), b'{"number": 7}')
    assert durable_file.read_json(str(path)) == {"number": 7}


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"\xff\xfe{}", b"\0\0\0", b"[" * 100000], ids=range(6))
def test_damaged_json_file_is_set_aside(tmp_path, content):
    path = tmp_path / "file"
    path.with_name("file.damaged").write_text("an earlier one")
    path.write_bytes(content)
    with pytest.raises(ValueError):
        durable_file.read_json(str(path))
    assert durable_file.set_aside(str(path)) == str(path) + ".damaged"
    assert os.listdir(str(tmp_path)) == ["file.damaged"]
    assert path.with_name("file.damaged").read_bytes() == content


def test_lock_ends_with_its_descriptor(tmp_path):
    path = str(tmp_path / "lock")
    first, second = (os.open(path, os.O_RDWR | os.O_CREAT) for _number in range(2))
    try:
        assert durable_file.lock(first)
        time = Time()
        assert not durable_file.lock(second, 0.0, time.clock, time.sleep) and time.now == 100.0
        assert not durable_file.lock(second, 5.0, time.clock, time.sleep)
        assert 105.0 <= time.now < 105.1
        os.close(first)
        assert durable_file.lock(second)
    finally:
        os.close(second)


def test_lock_of_a_killed_process_is_free(tmp_path):
    path = tmp_path / "lock"
    path.touch()
    descriptor = os.open(str(path), os.O_RDWR)
    try:
        with start(LOCKER, path) as child:
            assert child.stdout.readline().strip() == b"locked"
            assert not durable_file.lock(descriptor)
            child.kill()
        # the kernel of Windows may need a moment
        assert durable_file.lock(descriptor, 60.0)
    finally:
        os.close(descriptor)


@POSIX
def test_folder_is_locked(tmp_path):
    first, second = (os.open(str(tmp_path), os.O_RDONLY) for _number in range(2))
    try:
        assert durable_file.lock(first) and not durable_file.lock(second)
    finally:
        os.close(first)
        os.close(second)
