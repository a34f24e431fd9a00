# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Saving and loading records without faults."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from hook_runner.journal.journal import Journal
from hook_runner.journal.reader import JournalReader, JournalUnreadable
from hook_runner.records import SKIPPED, Cause, TimelineEntry
from support.daemon.record_factory import (
    NOON,
    add_step,
    after,
    close_record,
    end_step,
    everything,
    last_occurrence,
    make_record,
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "journal.db")


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def journal(path: str, said: list[str]) -> Iterator[Journal]:
    journal = Journal.open(path, said.append)
    yield journal
    journal.close()


def test_file_and_folder_are_made_and_closed_to_others(journal: Journal, path: str, said: list[str]) -> None:
    journal.save(make_record(journal.next_id()))
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    assert [stat.S_IMODE(os.stat(path + suffix).st_mode) for suffix in ("", "-wal", "-shm")] == [0o600] * 3
    assert said == [] and journal.write_error is None


def test_record_is_loaded_as_it_was_saved(journal: Journal, path: str) -> None:
    record = make_record(journal.next_id())
    step = add_step(record, journal.next_id())
    assert journal.save(record)
    end_step(record, step)
    skipped = add_step(record, journal.next_id(), hook="20-late", state=SKIPPED)
    skipped.cause, skipped.reason = Cause.NO_TIME, "too little time is left"
    assert journal.save(record)
    journal.close()
    again = Journal.open(path, print)
    assert [everything(each) for each in again.open_records()] == [everything(record)]
    again.close()


def test_closed_record_is_not_open_and_is_remembered(journal: Journal, path: str) -> None:
    record = make_record(journal.next_id())
    end_step(record, add_step(record, journal.next_id()))
    journal.save(record)
    close_record(record)
    assert journal.save(record)
    assert journal.open_records() == []
    journal.close()
    again = Journal.open(path, print)
    assert again.open_records() == []
    assert [everything(each) for each in again.reader().records(10)] == [everything(record)]
    again.close()


@pytest.mark.parametrize(
    "odd",
    ["half \ud800 of a pair", "nothing \0 inside", "\x1b[2J\r\n\t", "\U0001f600 ü \u202e", "", "n" * 1_000_000],
    ids=["half surrogate", "NUL", "control characters", "beyond ASCII", "empty", "1 MB"],
)
def test_odd_texts_are_loaded_as_they_were_saved(journal: Journal, path: str, odd: str) -> None:
    record = make_record(
        journal.next_id(), "id" + odd, resources=(odd, "web-1"), description=odd, source=odd, event_type=odd
    )
    step = add_step(record, journal.next_id(), hook=odd)
    end_step(record, step, output=odd)
    step.reason = record.approval_reason = record.approval_asked_by = odd
    record.timeline.append(TimelineEntry(NOON, odd, odd))
    assert journal.save(record)
    journal.close()
    again = Journal.open(path, print)
    assert [everything(each) for each in again.open_records()] == [everything(record)]
    assert last_occurrence(again, record.key) == 1
    assert [each.id for each in again.reader().records(5, "ID" + odd)] == [record.id]
    again.close()


@pytest.mark.parametrize(
    "moment",
    [
        NOON,
        NOON.replace(microsecond=0),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
        NOON.astimezone(timezone(timedelta(hours=5, minutes=45))),
    ],
    ids=str,
)
def test_times_are_loaded_as_they_were_saved(journal: Journal, path: str, moment: datetime) -> None:
    record = make_record(journal.next_id(), not_before=moment)
    record.first_seen = moment
    record.timeline.append(TimelineEntry(moment, "now", ""))
    journal.save(record)
    journal.close()
    again = Journal.open(path, print)
    (found,) = again.open_records()
    assert [found.first_seen, found.event.not_before, found.timeline[-1].at] == [moment] * 3
    assert found.first_seen.utcoffset() == moment.utcoffset()
    again.close()


def test_unknown_fields_of_an_event_stay_unknown(journal: Journal, path: str) -> None:
    unknown: dict[str, Any] = {
        "resource_type": None,
        "not_before": None,
        "description": None,
        "source": None,
        "duration": None,
        "resources": (),
    }
    record = make_record(journal.next_id(), **unknown)
    journal.save(record)
    journal.close()
    again = Journal.open(path, print)
    assert again.open_records()[0].event == record.event
    again.close()


def test_numbers_are_never_used_again(path: str) -> None:
    used: list[int] = []
    for _start in range(4):
        journal = Journal.open(path, print)
        for _number in range(50):
            used.append(journal.next_id())
        record = make_record(journal.next_id())
        add_step(record, journal.next_id())
        used += [record.id, record.steps[0].id]
        journal.save(record)
        journal.close()
    assert len(set(used)) == len(used)


def test_numbers_are_not_used_again_after_the_clock_went_back(path: str) -> None:
    journal = Journal.open(path, print, wall=lambda: 2_000_000_000)
    record = make_record(journal.next_id())
    add_step(record, journal.next_id())
    journal.save(record)
    journal.close()
    again = Journal.open(path, print, wall=lambda: 0)
    assert again.next_id() > record.steps[0].id
    again.close()


def test_numbers_are_not_used_again_after_the_file_was_lost(path: str) -> None:
    journal = Journal.open(path, print)
    before = journal.next_id()
    journal.close()
    os.unlink(path)
    time.sleep(0.01)
    again = Journal.open(path, print)
    assert again.next_id() > before
    again.close()


def test_last_occurrence_counts_closed_and_open_records(journal: Journal) -> None:
    first, second = make_record(journal.next_id()), make_record(journal.next_id())
    second.occurrence = 2
    close_record(first)
    assert last_occurrence(journal, "e-1") == 0
    journal.save(first)
    assert last_occurrence(journal, "e-1") == 1
    journal.save(second)
    assert (last_occurrence(journal, "e-1"), last_occurrence(journal, "e-2")) == (2, 0)


def test_records_come_newest_first_and_of_one_event_in_any_letter_case(journal: Journal) -> None:
    ids: dict[str, list[int]] = {}
    for name in ("A", "B", "A", "C"):
        record = make_record(journal.next_id(), name)
        ids.setdefault(name, []).append(record.id)
        journal.save(record)
    assert [record.event.event_id for record in journal.reader().records(3)] == ["C", "A", "B"]
    assert [record.id for record in journal.reader().records(10, "a")] == ids["A"][::-1]
    assert journal.reader().records(10, "none") == []


def test_pruning_keeps_the_newest_closed_ones_and_every_open_one(journal: Journal, path: str) -> None:
    for number in range(6):
        record = make_record(journal.next_id(), f"E-{number}")
        end_step(record, add_step(record, journal.next_id()))
        if number != 1:
            close_record(record)
        journal.save(record)
    journal.prune(2)
    assert [record.event.event_id for record in journal.reader().records(10)] == ["E-5", "E-4", "E-1"]
    connection = journal._connection  # shows that the other tables have no rows left
    assert connection is not None
    assert connection.execute("SELECT count(*) FROM steps").fetchone() == (3,)
    assert connection.execute("SELECT count(DISTINCT record) FROM timeline").fetchone() == (3,)


def test_file_keeps_a_bounded_size(journal: Journal, path: str) -> None:
    sizes = []
    for _event in range(90):
        record = make_record(journal.next_id())
        end_step(record, add_step(record, journal.next_id()), "x" * 4096)
        journal.save(record)
        close_record(record)
        journal.save(record)
        journal.prune(20)
        sizes.append(sum(os.path.getsize(path + suffix) for suffix in ("", "-wal", "-shm")))
    assert len(journal.reader().records(1000)) == 20
    assert max(sizes[45:]) == max(sizes[:45])


def test_only_what_changed_is_written(journal: Journal, path: str) -> None:
    record = make_record(journal.next_id())
    for number in range(30):
        end_step(record, add_step(record, journal.next_id(), hook=f"{number:02d}-hook"), "x" * 4096)
    journal.save(record)
    connection = journal._connection
    assert connection is not None
    before = connection.total_changes
    record.timeline.append(TimelineEntry(after(9), "changed", ""))
    record.steps[7].reason = "another"
    journal.save(record)
    assert connection.total_changes - before == 3


def test_saving_costs_little_more_than_reaching_the_disk(journal: Journal, tmp_path: Path) -> None:
    record = make_record(journal.next_id())
    own, disk = [], []
    with open(tmp_path / "plain", "wb", buffering=0) as plain:
        for number in range(60):
            record.timeline.append(TimelineEntry(after(number), "changed", "something"))
            start = time.perf_counter()
            journal.save(record)
            own.append(time.perf_counter() - start)
            start = time.perf_counter()
            plain.write(bytes(16384))
            os.fdatasync(plain.fileno())
            disk.append(time.perf_counter() - start)
    assert sorted(own)[30] < 0.005 + 3 * sorted(disk)[30]


def test_reader_without_a_journal_fails_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(JournalUnreadable, match="journal.db cannot be read: .*No such file"):
        JournalReader.open(str(tmp_path / "journal.db"))


def test_two_open_records_of_an_event_that_came_back_are_both_loaded(journal: Journal, path: str) -> None:
    ended, again = make_record(journal.next_id()), make_record(journal.next_id())
    ended.gone_at, again.occurrence = NOON, 2
    assert journal.save(ended) and journal.save(again)
    journal.close()
    after_restart = Journal.open(path, print)
    assert [everything(record) for record in after_restart.open_records()] == [everything(ended), everything(again)]
    after_restart.close()
