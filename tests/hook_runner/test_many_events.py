# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Thousands of events in one document, of which each is looked at once."""

from __future__ import annotations

import sqlite3
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
from azure_scheduled_events.document import EventDocument
from hook_runner.engine import Engine
from hook_runner.journal import Journal
from hook_runner.metrics import Metrics
from hook_runner.status import as_data, as_text, one_line
from journal_values import add_step, close_record, end_step, everything, make_event, make_record
from rig import Rig

FEW, MANY = 1000, 10_000
# a part of the work grows with the events, and none with their square; measuring is not exact
AT_MOST = 2.5 * MANY / FEW


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "journal.db")


def seconds(work: Callable[[], object]) -> float:
    """The time of this process that the work takes, which the machine's other work does not change."""
    began = time.process_time()
    work()
    return time.process_time() - began


def of_others(count: int) -> EventDocument:
    not_before = datetime(2100, 1, 1, tzinfo=timezone.utc)
    return EventDocument(1, tuple(make_event("E-%d" % number, resources=("vm2",), not_before=not_before) for number in range(count)))


def engine_of(rig: Rig) -> Engine:
    rig.configure(log_level="error", resource_name="vm1")
    return rig.start()


class Questions:
    """Counts what the journal asks its file."""

    def __init__(self, journal: Journal) -> None:
        self.asked: list[str] = []
        connection = journal._connection
        assert connection is not None
        connection.set_trace_callback(self.asked.append)

    def take(self) -> int:
        count = len(self.asked)
        self.asked.clear()
        return count


def costs(rig: Rig, count: int) -> dict[str, float]:
    """What it costs that so many events of other VMs appear, stay as they are, are reported, and end."""
    engine, document = engine_of(rig), of_others(count)
    metrics = Metrics(str(rig.folder / "metrics.prom"))
    work: dict[str, Callable[[], Any]] = {
        "appear": lambda: engine.observe(document),
        "stay": lambda: engine.observe(document),
        "tick": engine.tick,
        "status": lambda: (as_text(as_data(engine, rig.health, rig.clock, None)), one_line(engine, rig.health)),
        "metrics": lambda: metrics.write(engine, rig.health, False),
        "go": lambda: [engine.observe(EventDocument(2, ())) for _twice in range(2)],  # type: ignore[func-returns-value]
    }
    found = {name: seconds(each) for name, each in work.items()}
    engine.observe(EventDocument(3, ()))  # one document without an event may not be enough
    return found


def test_cost_grows_with_the_events_and_not_with_their_square(make_rig: Callable[..., Rig]) -> None:
    few, many = costs(make_rig("vm1"), FEW), costs(make_rig("vm2"), MANY)
    grown = {name: (few[name], many[name]) for name in few if many[name] > max(AT_MOST * few[name], 0.1)}
    assert grown == {}


def test_journal_is_asked_a_bounded_number_of_times(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig()
    engine, document = engine_of(rig), of_others(FEW)
    questions = Questions(rig.journal)
    engine.observe(document)
    assert questions.take() <= 3 * FEW
    engine.observe(document)
    assert questions.take() <= 10


@pytest.fixture
def full(path: str) -> Iterator[Journal]:
    """A journal with many open records in memory and as many closed ones in its file."""
    journal = Journal.open(path, print)
    with journal.batch():
        for number in range(MANY):
            record = make_record(journal.next_id(), "open-%d" % number)
            end_step(record, add_step(record, journal.next_id()))
            journal.save(record)
        for number in range(MANY):
            record = make_record(journal.next_id(), "closed-%d" % number)
            close_record(record)
            journal.save(record)
    assert journal.degraded is None
    yield journal
    journal.close()


def test_many_records_cost_little_each(full: Journal) -> None:
    def ask() -> None:
        for number in range(MANY):
            assert full.last_life("open-%d" % number) == full.last_life("closed-%d" % number) == 1
            assert full.last_life("none-%d" % number) == 0
            assert full.last_of("none-%d" % number) is None

    assert seconds(ask) < 2.0  # 0.3 s where it was written; 20 s where each question looks at all


def test_one_record_of_many_is_written_alone(full: Journal) -> None:
    questions = Questions(full)
    record = full.open_records()[5]
    add_step(record, full.next_id())
    assert full.save(record)
    assert questions.take() <= 8


def test_batch_is_one_transaction_and_ends_with_all_on_disk(path: str) -> None:
    journal = Journal.open(path, print)
    questions = Questions(journal)
    records = [make_record(journal.next_id(), "E-%d" % number) for number in range(50)]
    with journal.batch():
        assert not any(journal.save(record) for record in records)
        journal.note("vm", "vm1")
        assert questions.take() == 0
    assert questions.asked.count("COMMIT") == 2  # the note, and the records
    journal.close()
    again = Journal.open(path, print)
    assert [everything(each) for each in again.open_records()] == [everything(each) for each in records] and again.noted("vm") == "vm1"
    again.close()


def test_one_impossible_record_of_a_batch_does_not_hold_up_the_others(path: str) -> None:
    journal = Journal.open(path, print)
    records = [make_record(journal.next_id(), "E-%d" % number) for number in range(5)]
    records[2].approval_attempts = 2**70
    with journal.batch():
        for record in records:
            journal.save(record)
    assert journal.degraded is not None
    reader = Journal.read_only(path)
    assert {each.id for each in reader.records(10)} == {each.id for each in records} - {records[2].id}
    reader.close()
    journal.close()


def test_nothing_is_pruned_while_nothing_was_closed(path: str) -> None:
    journal = Journal.open(path, print)
    record = make_record(journal.next_id())
    close_record(record)
    journal.save(record)
    journal.prune(5)
    questions = Questions(journal)
    journal.prune(5)
    assert questions.take() == 0
    journal.prune(0)
    assert journal.records(10) == []
    journal.close()


def test_many_open_records_are_written_into_a_new_file_in_one_transaction(full: Journal, path: str) -> None:
    commits: list[sqlite3.Connection] = []
    commit = Journal._commit

    def counted(self: Journal, connection: sqlite3.Connection) -> None:
        commits.append(connection)
        commit(self, connection)

    setattr(full, "_commit", counted.__get__(full))
    for suffix in ("", "-wal", "-shm"):
        Path(path + suffix).unlink()
    full.maintain()
    assert full.degraded is None and len(full.open_records()) == MANY
    assert len(commits) <= 4  # the tables, room for a full disk, the records
    reader = Journal.read_only(path)
    assert len(reader.records(MANY * 2)) == MANY + 10
    reader.close()
