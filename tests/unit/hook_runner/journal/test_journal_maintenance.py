# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Maintenance while nothing is saved: pending records are written, and a lost file is replaced."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hook_runner.journal import journal as journal_module
from hook_runner.journal.journal import BUSY_TIMEOUT, CHECK_INTERVAL, REOPEN_INTERVAL, Journal
from hook_runner.journal.known_records import OWN_KEYS, RECENT, KnownRecords
from hook_runner.journal.reader import JournalReader
from hook_runner.journal.record_index import RecordIndex
from hook_runner.records import EventRecord
from support.daemon.child_processes import die, in_child
from support.daemon.journal_damage import (
    DAMAGE,
    remove_all,
)
from support.daemon.record_factory import add_step, after, close_record, end_step, everything, make_record


class Clock:
    """Monotonic seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "journal.db")


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def journal(path: str, clock: Clock, said: list[str]) -> Iterator[Journal]:
    journal = Journal.open(path, said.append, clock)
    yield journal
    journal.close()


def lock(path: str) -> sqlite3.Connection:
    """Hold the journal's write lock until the connection is closed."""
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    return holder


def read_anew(path: str) -> list[EventRecord]:
    """Return the open records that a daemon would find that starts now, from a copy of the file."""
    copy = path + ".copy"
    for suffix in ("", "-wal"):
        if os.path.exists(path + suffix):
            shutil.copyfile(path + suffix, copy + suffix)
    found = Journal.open(copy, print)
    records = found.open_records()
    found.close()
    os.unlink(copy)
    return records


def test_journal_that_was_locked_is_written_by_itself(
    journal: Journal, clock: Clock, path: str, said: list[str]
) -> None:
    assert (journal.degraded_since, journal.due()) == (None, float("inf"))
    holder = lock(path)
    record = make_record(journal.next_id())
    assert not journal.save(record) and journal.degraded_since == clock.now
    journal.note("vm", "vm1")
    assert journal.due() == REOPEN_INTERVAL
    began, clock.now = clock.now, clock.now + REOPEN_INTERVAL
    assert journal.due() == 0.0
    journal.maintain()
    assert journal.write_error is not None and journal.degraded_since == began
    holder.close()
    journal.maintain()  # too soon after the last attempt
    assert journal.write_error is not None and not journal.is_durable()
    clock.now += REOPEN_INTERVAL
    journal.maintain()
    assert journal.is_durable() and journal.degraded_since is None and journal.due() == CHECK_INTERVAL
    assert [everything(each) for each in read_anew(path)] == [everything(record)]
    assert len(said) == 2 and "is written again" in said[1]


def test_approval_makes_the_journal_try_again(journal: Journal, clock: Clock, path: str) -> None:
    holder = lock(path)
    assert not journal.save(make_record(journal.next_id()))
    holder.close()
    assert not journal.is_durable()
    journal.maintain(urgent=True)
    assert journal.is_durable()
    holder = lock(path)
    assert not journal.save(make_record(journal.next_id()))
    holder.close()
    clock.now += REOPEN_INTERVAL
    assert journal.is_durable()


def test_waiting_for_another_program_is_bounded(
    journal: Journal, clock: Clock, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten seconds of a program that holds the file cost at most two waits, however often a record is saved."""
    waits: list[float] = []
    begin = Journal._begin

    def counted(self: Journal, connection: sqlite3.Connection) -> None:
        waits.append(self._busy_timeout())
        monkeypatch.setattr(journal_module, "BUSY_TIMEOUT", 0.001)  # the test counts waits; it need not wait
        try:
            begin(self, connection)
        finally:
            monkeypatch.setattr(journal_module, "BUSY_TIMEOUT", BUSY_TIMEOUT)

    monkeypatch.setattr(Journal, "_begin", counted)
    holder = lock(path)
    record = make_record(journal.next_id())
    for _tenth in range(100):
        assert not journal.save(record)
        journal.maintain(urgent=True)
        clock.now += 0.1
    holder.close()
    assert len(waits) == 200 and sum(waits) == 2 * BUSY_TIMEOUT


def test_failed_query_does_not_last(journal: Journal, clock: Clock, path: str) -> None:
    """Nothing is pending when pruning fails: the error ends as soon as the file can be written."""
    record = make_record(journal.next_id())
    close_record(record)
    assert journal.save(record)
    holder = lock(path)
    journal.prune(0)
    assert journal.write_error is not None
    clock.now += REOPEN_INTERVAL
    journal.maintain()
    assert journal.write_error is not None
    holder.close()
    clock.now += REOPEN_INTERVAL
    journal.maintain()
    assert journal.write_error is None


@pytest.mark.skipif(os.geteuid() != 0, reason="to become another user needs root")
@pytest.mark.parametrize("shared_memory", [True, False], ids=["with -shm", "without -shm"])
def test_journal_that_was_read_only_at_the_start_is_written_after_that(clock: Clock, shared_memory: bool) -> None:
    """A crash left records in the log only, and the file is read-only when the daemon starts again."""
    with tempfile.TemporaryDirectory() as folder:  # the folder of pytest is closed to other users
        os.chmod(folder, 0o755)
        start_after_a_crash(folder + "/state/journal.db", clock, shared_memory)


def start_after_a_crash(path: str, clock: Clock, shared_memory: bool) -> None:
    records = [make_record(1, "E-1"), make_record(10, "E-2")]

    def crash() -> None:
        journal = Journal.open(path, print)
        for record in records:
            end_step(record, add_step(record, record.id + 1))
            assert journal.save(record)
        close_record(records[1])
        assert journal.save(records[1])
        die()

    def start_again() -> None:
        os.chmod(os.path.dirname(path), 0o555)
        for suffix in ("", "-wal", *(["-shm"] if shared_memory else [])):
            os.chmod(path + suffix, 0o444)
        os.seteuid(65534)
        said: list[str] = []
        journal = Journal.open(path, said.append, clock)
        assert journal.write_error is not None and journal.is_known and journal.degraded_since == clock.now
        (found,) = journal.open_records()
        assert found.id == 1 and len(found.steps) == 1
        new = make_record(journal.next_id(), "E-3")
        assert not journal.save(new)
        close_record(found)
        assert not journal.save(found)
        os.seteuid(0)
        os.chmod(os.path.dirname(path), 0o755)
        for suffix in ("", "-wal", *(["-shm"] if shared_memory else [])):
            os.chmod(path + suffix, 0o640)
        clock.now += REOPEN_INTERVAL
        journal.maintain()
        assert journal.write_error is None, journal.write_error
        assert [each.id for each in journal.open_records()] == [new.id] and journal.take_late_records() == []
        die()

    assert in_child(crash) == -9
    assert os.path.getsize(path + "-wal")
    if not shared_memory:
        os.unlink(path + "-shm")
    assert in_child(start_again) == -9
    history = Journal.open(path, print).reader().records(10)
    assert [(each.event.event_id, each.closed_at is None, len(each.steps)) for each in history] == [
        ("E-3", True, 0),
        ("E-2", False, 1),
        ("E-1", False, 1),
    ]


@pytest.mark.parametrize("damage", list(DAMAGE))
def test_known_records_are_written_into_a_new_file_at_once(
    damage: str, journal: Journal, clock: Clock, path: str
) -> None:
    """Also records without changes, with all runs and the timeline."""
    records = [make_record(journal.next_id(), f"E-{number}") for number in range(3)]
    for record in records:
        end_step(record, add_step(record, journal.next_id()))
        assert journal.save(record)
    close_record(records[2])
    assert journal.save(records[2])
    journal.note("vm", "vm1")
    clock.now += REOPEN_INTERVAL
    DAMAGE[damage](path)
    journal.maintain()
    assert journal.write_error is None
    assert [everything(each) for each in read_anew(path)] == [everything(record) for record in records[:2]]
    history = JournalReader.open(path)
    assert [everything(each) for each in history.records(10)] == [everything(record) for record in records[::-1]]
    history.close()
    fresh = Journal.open(path, print)
    assert fresh.noted("vm") == "vm1"


@pytest.mark.parametrize("damage", list(DAMAGE))
def test_damage_between_two_saves_loses_nothing(damage: str, journal: Journal, clock: Clock, path: str) -> None:
    record = make_record(journal.next_id())
    step = add_step(record, journal.next_id())
    assert journal.save(record)
    clock.now += REOPEN_INTERVAL
    DAMAGE[damage](path)
    end_step(record, step)
    assert journal.save(record) and journal.write_error is None
    assert [everything(each) for each in read_anew(path)] == [everything(record)]


def test_repeated_damage_is_repaired_each_time(journal: Journal, clock: Clock, path: str) -> None:
    record = make_record(journal.next_id())
    assert journal.save(record)
    for damage in DAMAGE.values():
        clock.now += REOPEN_INTERVAL
        damage(path)
        journal.maintain()
        assert journal.write_error is None
        assert [everything(each) for each in read_anew(path)] == [everything(record)]


def test_record_that_an_older_copy_of_the_file_has_open_stays_closed(journal: Journal, clock: Clock, path: str) -> None:
    records = [make_record(journal.next_id(), f"E-{number}") for number in range(30)]
    for record in records:
        assert journal.save(record)
    for suffix in ("", "-wal"):
        shutil.copyfile(path + suffix, path + ".old" + suffix)
    old = sqlite3.connect(path + ".old")
    old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    old.close()
    for record in records[1:]:
        close_record(record)
        assert journal.save(record)
    clock.now += REOPEN_INTERVAL
    os.replace(path + ".old", path)
    journal.maintain()
    assert journal.write_error is None and journal.take_late_records() == []
    assert [each.id for each in read_anew(path)] == [records[0].id]


def test_folder_with_files_in_place_of_the_journal_is_not_moved(journal: Journal, clock: Clock, path: str) -> None:
    record = make_record(journal.next_id())
    assert journal.save(record)
    remove_all(path)
    os.mkdir(path)
    Path(path, "file").touch()
    journal.maintain()
    assert "a folder that is not empty" in (journal.write_error or "") and Path(path, "file").exists()
    shutil.rmtree(path)
    clock.now += REOPEN_INTERVAL
    journal.maintain()
    assert journal.write_error is None and [each.id for each in read_anew(path)] == [record.id]


def test_reading_by_others_is_no_change(journal: Journal, clock: Clock, path: str) -> None:
    journal.save(make_record(journal.next_id()))
    before = journal.files_opened
    for _time in range(3):
        reader = JournalReader.open(path)
        reader.records(10)
        reader.close()
        other = sqlite3.connect(path)
        other.execute("SELECT count(*) FROM records").fetchone()
        other.close()
        clock.now += REOPEN_INTERVAL
        journal.maintain()
        assert journal.save(make_record(journal.next_id()))
    assert journal.files_opened == before == 1


def test_file_whose_mtime_changes_by_itself_is_not_reopened_at_each_save(
    journal: Journal, clock: Clock, path: str, said: list[str]
) -> None:
    record = make_record(journal.next_id())
    for number in range(100):
        os.utime(path, ns=(number, number))
        record.timeline.append(record.timeline[0]._replace(at=after(number)))
        assert journal.save(record)
        clock.now += 0.1
    assert 2 <= journal.files_opened <= 3 and said == []


def test_known_records_do_not_grow_with_the_events_of_the_past() -> None:
    known = KnownRecords()
    for number in range(OWN_KEYS + 50):
        record = make_record(number, f"E-{number}")
        close_record(record)
        known.add(record)
        known.pending.discard(record.id)
    assert len(known.recent) == RECENT and not known.open
    superseded = [number for number in range(OWN_KEYS + 50) if known.supersedes(make_record(0, f"E-{number}"))]
    assert superseded == list(range(50, OWN_KEYS + 50))


def test_index_finds_by_event_and_clears() -> None:
    index = RecordIndex()
    first, second, other = make_record(1, "E-1"), make_record(2, "E-1"), make_record(3, "E-2")
    for record in (first, second, other, first):
        index.add(record)
    assert list(index) == [second, other, first] and {each.id for each in index.of("e-1")} == {1, 2} and len(index) == 3
    for number in (1, 2, 2):
        index.discard(number)
    assert index.of("e-1") == [] and 1 not in index and 3 in index
    index.clear()
    assert not index and list(index) == []
