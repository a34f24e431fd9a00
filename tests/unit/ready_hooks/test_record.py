# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.core.event import from_environment
from ready_hooks.core.hook import Run
from ready_hooks.core.record import Record

BEFORE, AFTER = {"units": ["a.service"]}, {"units": ["a.service", "b.service"]}


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    yield Record(str(tmp_path / "records"), "web", "systemd-units")


def test_remove_twice_succeeds(record: Record) -> None:
    record.save(BEFORE)
    record.remove()
    record.remove()
    assert record.load() is None


def test_record_that_is_not_replaced_is_an_error_and_the_last_one_stays(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_paths: object, **_folders: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    record.save(BEFORE)
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(HookError, match="No space left on device"):
        record.save(AFTER)
    assert record.load() == BEFORE


def test_lock_of_another_run_ends_with_the_time(record: Record) -> None:
    with record.locked(Deadline(60)):
        now = [0.0]
        deadline = Deadline(5, lambda: now[0], lambda duration: now.__setitem__(0, now[0] + duration))
        with pytest.raises(OutOfTime), record.locked(deadline):
            pass
    assert now[0] == 4.5


def test_lock_in_a_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("", encoding="utf-8")
    record = Record(str(tmp_path / "records"), "web", "haproxy")
    with pytest.raises(HookError, match="^" + str(tmp_path / "records")), record.locked(Deadline(0)):
        pass


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_folders_are_private_with_any_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        Record(str(tmp_path / "state" / "records"), "web", "haproxy").save(BEFORE)
    finally:
        os.umask(before)
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in ("state", "state/records")} == {0o700}


def test_save_is_what_load_returns_and_only_root_reads_it(record: Record) -> None:
    assert record.load() is None
    record.save(BEFORE, "E1")
    record.save(AFTER)
    assert record.load() == AFTER
    folder = os.path.dirname(record.path)
    assert (os.stat(record.path).st_mode & 0o777, os.stat(folder).st_mode & 0o777) == (0o600, 0o700)
    assert os.listdir(folder) == ["web.json"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\0\0\0",
        b"\xff\xfe{}",
        b'{"version": 2, "use": "systemd-units", "data": {}}',
        b'{"version": 1, "use": "haproxy", "data": {}}',
        b'{"version": 1, "use": "systemd-units", "data": 7}',
        b'{"version": 1, "use": "systemd-units"}',
    ],
)
def test_damaged_record_is_an_error_and_stays(record: Record, content: bytes) -> None:
    record.save(BEFORE)
    Path(record.path).write_bytes(content)
    with pytest.raises(HookError, match="not usable"):
        record.load()
    assert Path(record.path).read_bytes() == content


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_folder_that_other_users_can_write_is_refused(record: Record, mode: int) -> None:
    record.save(BEFORE)
    Path(record.path).parent.chmod(mode)
    for use in (record.load, lambda: record.save(AFTER), lambda: record.locked(Deadline(0)).__enter__()):
        with pytest.raises(HookError, match="other users can change"):
            use()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("given", ["file", "folder", "link"])
def test_record_that_another_user_can_change_is_refused(tmp_path: Path, given: str) -> None:
    link, folder = tmp_path / "link", tmp_path / "records"
    record = Record(str(link), "web", "haproxy")
    folder.mkdir(mode=0o700)
    link.symlink_to(folder)
    record.save(BEFORE)
    os.chown({"file": folder / "web.json", "folder": folder, "link": link}[given], 4711, 4711, follow_symlinks=False)
    with pytest.raises(HookError, match="belongs to user 4711"):
        record.load()


def test_record_that_cannot_be_shortened_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "records").write_text("not a folder", encoding="utf-8")
    record = Record(str(tmp_path / "records"), "web", "haproxy")
    run = Run("web", {}, from_environment({}), Deadline(60), record, dry_run=False)
    with pytest.raises(HookError):
        run.remember({"servers": {}})
    run.shorten_record({"servers": {}})
    assert "the record cannot be written" in capsys.readouterr().err
