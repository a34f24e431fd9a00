# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Access by others: readers, programs that lock the file, and folders that cannot be written."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

import pytest

from hook_runner.journal.journal import Journal
from hook_runner.journal.reader import JournalReader, JournalUnreadable
from support.daemon.child_processes import in_child
from support.daemon.record_factory import add_step, after, close_record, end_step, everything, make_record

OTHER_USER = 65534


@pytest.fixture
def path(tmp_path: Path) -> str:
    for folder in (tmp_path, *tmp_path.parents):  # the other user has to reach the file
        if folder.stat().st_uid == os.geteuid() and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o055)
    return str(tmp_path / "state" / "journal.db")


def as_another_user(path: str) -> None:
    """Continue as a user who may read the journal but not write it."""
    if os.geteuid() != 0:
        os._exit(77)
    os.chmod(os.path.dirname(path), 0o755)
    os.chmod(path, 0o644)
    os.setgroups([])
    os.setegid(OTHER_USER)
    os.seteuid(OTHER_USER)


def checked(status: int) -> None:
    if status == 77:
        pytest.skip("to become another user needs root")
    assert status == 0


def test_reader_finds_records_of_the_running_daemon(path: str) -> None:
    journal = Journal.open(path, print)
    record = make_record(journal.next_id())
    journal.save(record)
    reader = JournalReader.open(path)
    for number in range(60):
        record.timeline.append(record.timeline[0]._replace(at=after(number)))
        assert journal.save(record)
        assert everything(reader.records(5)[0]) == everything(record)
    reader.close()
    assert journal.save(record)
    journal.close()


def test_the_group_of_the_folder_can_neither_read_nor_lock_the_journal(path: str) -> None:
    """A process that can read the file can hold a lock that keeps the daemon from writing."""
    if os.geteuid() != 0:
        pytest.skip("to become another user needs root")
    os.mkdir(os.path.dirname(path), 0o750)
    os.chown(os.path.dirname(path), 0, OTHER_USER)
    journal = Journal.open(path, print)
    journal.save(make_record(journal.next_id()))

    def work() -> None:
        os.setgroups([OTHER_USER])
        os.setegid(OTHER_USER)
        os.seteuid(OTHER_USER)
        for suffix in ("", "-wal", "-shm"):
            with pytest.raises(PermissionError):
                os.open(path + suffix, os.O_RDONLY)

    assert in_child(work) == 0
    assert {os.stat(path + suffix).st_mode & 0o777 for suffix in ("", "-wal", "-shm")} == {0o600}
    journal.close()


def test_access_that_a_group_was_given_is_removed(path: str) -> None:
    journal = Journal.open(path, print)
    journal.save(make_record(journal.next_id()))
    for suffix in ("", "-wal", "-shm"):
        os.chmod(path + suffix, 0o640)
    again = Journal.open(path, print)
    again.save(make_record(again.next_id()))
    assert {os.stat(path + suffix).st_mode & 0o777 for suffix in ("", "-wal", "-shm")} == {0o600}
    again.close()
    journal.close()


def test_reader_of_an_empty_file_fails_with_the_reason(path: str) -> None:
    os.mkdir(os.path.dirname(path))
    Path(path).touch()
    with pytest.raises(JournalUnreadable, match="nothing has been written into it"):
        JournalReader.open(path)


def test_reader_without_permission_fails_with_the_reason(path: str) -> None:
    journal = Journal.open(path, print)

    def work() -> None:
        os.setgroups([])
        os.setegid(OTHER_USER)
        os.seteuid(OTHER_USER)
        with pytest.raises(JournalUnreadable, match="Permission denied"):
            JournalReader.open(path)

    if os.geteuid() != 0:
        pytest.skip("to become another user needs root")
    assert in_child(work) == 0
    journal.close()


def test_reader_in_the_middle_of_reading_does_not_stop_the_daemon(path: str) -> None:
    journal = Journal.open(path, print)
    record = make_record(journal.next_id())
    journal.save(record)
    slow = sqlite3.connect(path, isolation_level=None)
    slow.execute("BEGIN")
    slow.execute("SELECT count(*) FROM records").fetchone()
    for number in range(100):
        record.timeline.append(record.timeline[0]._replace(at=after(number)))
        assert journal.save(record)
    slow.execute("COMMIT")
    slow.close()
    journal.close()


def test_program_that_holds_the_file_delays_saving_and_loses_nothing(path: str) -> None:
    said: list[str] = []
    journal = Journal.open(path, said.append)
    record = make_record(journal.next_id())
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    start = time.monotonic()
    assert not journal.save(record)
    assert time.monotonic() - start < 2
    assert journal.write_error is not None and "locked" in journal.write_error
    holder.execute("ROLLBACK")
    holder.close()
    step = add_step(record, journal.next_id())
    end_step(record, step)
    assert journal.save(record) and journal.write_error is None
    reader = JournalReader.open(path)
    assert everything(reader.records(1)[0]) == everything(record)
    reader.close()
    journal.close()


def test_records_in_a_read_only_folder_are_read(path: str) -> None:
    journal = Journal.open(path, print)
    record = make_record(journal.next_id())
    end_step(record, add_step(record, journal.next_id()))
    journal.save(record)
    journal.close()

    def work() -> None:
        as_another_user(path)
        now = [0.0]
        said: list[str] = []
        journal = Journal.open(path, said.append, clock=lambda: now[0])
        assert journal.write_error is not None and len(said) == 1
        (found,) = journal.open_records()
        assert everything(found) == everything(record)
        assert journal.next_id() > record.steps[0].id
        close_record(found)
        assert not journal.save(found)
        os.seteuid(0)
        assert not journal.save(found)
        now[0] += 5
        assert journal.save(found) and journal.write_error is None
        journal.close()

    checked(in_child(work))
    again = Journal.open(path, print)
    assert again.open_records() == [] and len(again.reader().records(5)) == 1
    again.close()


def test_journal_works_in_memory_while_its_folder_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    now = [0.0]
    said: list[str] = []
    path = str(tmp_path / "state" / "journal.db")
    journal = Journal.open(path, said.append, clock=lambda: now[0])
    record = make_record(journal.next_id())
    assert not journal.save(record)
    assert journal.open_records() == [record]
    (tmp_path / "state").unlink()
    now[0] += 5
    assert journal.save(record) and journal.write_error is None
    assert len(said) == 2 and "cannot be written" in said[0] and "is written again" in said[1]
    journal.close()


def test_numbers_stay_unique_when_the_file_comes_late(tmp_path: Path) -> None:
    path = str(tmp_path / "state" / "journal.db")
    old = Journal.open(path, print, wall=lambda: 2_000_000_000)
    record = make_record(old.next_id())
    old.save(record)
    old.close()
    (tmp_path / "state").rename(tmp_path / "away")
    (tmp_path / "state").write_text("")
    now = [0.0]
    journal = Journal.open(path, print, clock=lambda: now[0])
    other = make_record(journal.next_id(), "other")
    assert not journal.save(other)
    (tmp_path / "state").unlink()
    (tmp_path / "away").rename(tmp_path / "state")
    now[0] += 5
    assert journal.save(other)
    assert journal.next_id() > record.id
    assert {each.id for each in journal.reader().records(5)} == {record.id, other.id}
    journal.close()


def test_record_that_cannot_be_written_does_not_block_others(path: str) -> None:
    journal = Journal.open(path, print)
    impossible, good = make_record(journal.next_id()), make_record(journal.next_id())
    impossible.approval_attempts = 2**70
    assert not journal.save(impossible)
    assert journal.save(good)
    assert journal.write_error is not None
    impossible.approval_attempts = 1
    assert journal.save(impossible) and journal.write_error is None
    journal.close()
