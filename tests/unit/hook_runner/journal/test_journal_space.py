# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A full disk: the reserved room suffices for an event, and larger records are written later."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hook_runner.journal.journal import Journal
from hook_runner.journal.reader import JournalReader
from hook_runner.records import EventRecord
from support.daemon.child_processes import die, fill_up, in_child, on_small_disk, without_room
from support.daemon.record_factory import (
    add_step,
    after,
    close_record,
    end_step,
    everything,
    last_occurrence,
    make_record,
)


def an_event(journal: Journal, event_id: str = "E-1") -> EventRecord:
    """Save an event from its appearance to its end, with four hooks of the longest output that is stored."""
    record = make_record(journal.next_id(), event_id)
    assert journal.save(record), journal.write_error
    for number in range(4):
        step = add_step(record, journal.next_id(), hook=f"{number}0-hook")
        assert journal.save(record), journal.write_error
        end_step(record, step, "x" * 4096)
        assert journal.save(record), journal.write_error
    close_record(record)
    assert journal.save(record), journal.write_error
    return record


def run_on_small_disk(folder: Path, size: int, work: Callable[[], None]) -> None:
    status = on_small_disk(str(folder), size, work)
    if status == 77:
        pytest.skip("a file system of a test's own needs root and mount namespaces")
    assert status == 0


def test_event_is_written_to_its_end_on_a_disk_that_filled_up(tmp_path: Path) -> None:
    path = str(tmp_path / "journal.db")

    def work() -> None:
        said: list[str] = []
        journal = Journal.open(path, said.append)
        assert fill_up(str(tmp_path / "filler")) > 0
        record = an_event(journal)
        assert said == [] and journal.write_error is None
        reader = JournalReader.open(path)
        assert [everything(each) for each in reader.records(10)] == [everything(record)]
        reader.close()
        die()

    status = on_small_disk(str(tmp_path), 4 << 20, work)
    if status == 77:
        pytest.skip("a file system of a test's own needs root and mount namespaces")
    assert status == -9


def test_event_is_written_to_its_end_where_files_must_not_grow(tmp_path: Path) -> None:
    path = str(tmp_path / "journal.db")

    def work() -> None:
        journal = Journal.open(path, print)
        without_room(max(os.path.getsize(path + suffix) for suffix in ("", "-wal")))
        an_event(journal)
        die()

    assert in_child(work) == -9
    journal = Journal.open(path, print)
    assert [len(record.steps) for record in journal.reader().records(10)] == [4]
    journal.close()


def test_record_that_does_not_fit_is_kept_and_written_when_there_is_room(tmp_path: Path) -> None:
    path, filler = str(tmp_path / "journal.db"), str(tmp_path / "filler")

    def work() -> None:
        said: list[str] = []
        journal = Journal.open(path, said.append)
        small, large = (
            make_record(journal.next_id(), "small"),
            make_record(journal.next_id(), "large", resources=("n" * 3_000_000,)),
        )
        fill_up(filler)
        for number in range(3):
            large.timeline.append(large.timeline[0]._replace(at=after(number)))
            assert not journal.save(large)
        assert journal.write_error is not None and "full" in journal.write_error
        assert len(said) == 1  # once, not for each attempt
        assert journal.reader().records(10) == [large] and last_occurrence(journal, "large") == 1
        os.unlink(filler)
        assert journal.save(small)
        assert journal.write_error is None and "is written again" in said[-1]
        journal.close()
        again = Journal.open(path, said.append)
        assert [everything(record) for record in again.open_records()] == [everything(small), everything(large)]
        again.close()

    run_on_small_disk(tmp_path, 16 << 20, work)


def test_record_is_kept_while_files_must_not_grow_and_written_later(tmp_path: Path) -> None:
    """The same without a separate file system; here SQLite reports an I/O error."""
    path = str(tmp_path / "journal.db")

    def work() -> None:
        said: list[str] = []
        journal = Journal.open(path, said.append)
        large = make_record(journal.next_id(), resources=("n" * 1_000_000,))
        without_room(max(os.path.getsize(path + suffix) for suffix in ("", "-wal")))
        assert not journal.save(large)
        assert journal.write_error is not None and len(said) == 1
        assert journal.save(make_record(journal.next_id(), "small")) and journal.write_error is not None
        without_room(1 << 30)
        assert journal.save(large) and journal.write_error is None
        journal.close()
        again = Journal.open(path, said.append)
        assert {record.event.event_id for record in again.open_records()} == {"E-1", "small"}
        again.close()

    assert in_child(work) == 0


def test_records_are_read_at_a_start_on_a_full_disk(tmp_path: Path) -> None:
    path, filler = str(tmp_path / "journal.db"), str(tmp_path / "filler")

    def work() -> None:
        journal = Journal.open(path, print)
        record = make_record(journal.next_id())
        end_step(record, add_step(record, journal.next_id()))
        journal.save(record)
        journal.close()
        fill_up(filler)
        said: list[str] = []
        now = [0.0]
        again = Journal.open(path, said.append, clock=lambda: now[0])
        (found,) = again.open_records()
        assert everything(found) == everything(record)
        assert said
        close_record(found)
        saved = again.save(found)
        assert saved == (again.write_error is None)
        os.unlink(filler)
        now[0] += 5
        assert again.save(found) and again.write_error is None
        again.close()
        reader = JournalReader.open(path)
        assert [everything(each) for each in reader.records(10)] == [everything(found)]
        reader.close()

    run_on_small_disk(tmp_path, 4 << 20, work)


def test_first_start_on_a_full_disk_works_from_memory_until_there_is_room(tmp_path: Path) -> None:
    folder, filler = tmp_path / "state", str(tmp_path / "filler")
    path = str(folder / "journal.db")

    def work() -> None:
        folder.mkdir()
        fill_up(filler)
        said: list[str] = []
        now = [0.0]
        journal = Journal.open(path, said.append, clock=lambda: now[0])
        record = make_record(journal.next_id())
        assert not journal.save(record)
        assert journal.write_error is not None and said
        assert journal.open_records() == [record] and journal.reader().records(5) == [record]
        os.unlink(filler)
        assert not journal.save(record)  # too early for another attempt
        now[0] += 5
        assert journal.save(record) and journal.write_error is None
        journal.close()
        again = Journal.open(path, said.append)
        assert [everything(each) for each in again.open_records()] == [everything(record)]
        again.close()

    run_on_small_disk(tmp_path, 4 << 20, work)


def test_memory_is_bounded_while_the_disk_is_full(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    journal = Journal.open(str(tmp_path / "state" / "journal.db"), print)
    for number in range(50):
        record = make_record(journal.next_id(), f"E-{number}")
        close_record(record)
        assert not journal.save(record)
        journal.prune(5)
    assert [record.event.event_id for record in journal.reader().records(100)] == [
        f"E-{number}" for number in range(49, 44, -1)
    ]
    journal.close()
