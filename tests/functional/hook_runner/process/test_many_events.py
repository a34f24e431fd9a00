# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Thousands of events in one document: the work for each is constant."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from azure_scheduled_events.document import EventDocument
from hook_runner.journal.journal import Journal
from hook_runner.journal.reader import JournalReader
from hook_runner.lifecycle.engine import Engine
from hook_runner.reporting.metrics import Metrics
from hook_runner.reporting.status import summary, to_dict, to_text
from support.daemon.effort import Effort, effort
from support.daemon.engine_harness import EngineHarness
from support.daemon.record_factory import (
    add_step,
    close_record,
    end_step,
    everything,
    last_occurrence,
    make_event,
    make_record,
)

FEW, MANY = 100, 1000
# work that grows with the events takes as many times the effort; work that grows with their square
# takes that many times more
AT_MOST = 1.1 * MANY / FEW
# lines of Python for one event of another VM, with some room; "stay" and "tick" come round again
# each second
LINES = {"appear": 450, "stay": 80, "tick": 25, "status": 300, "metrics": 30, "missing": 70, "gone": 350}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "journal.db")


def of_others(count: int) -> EventDocument:
    not_before = datetime(2100, 1, 1, tzinfo=UTC)
    return EventDocument(
        1, tuple(make_event(f"E-{number}", resources=("vm2",), not_before=not_before) for number in range(count))
    )


def engine_of(harness: EngineHarness) -> Engine:
    harness.configure(log_level="error", resource_name="vm1")
    return harness.start()


def connection_of(journal: Journal) -> sqlite3.Connection:
    connection = journal._connection
    assert connection is not None
    return connection


class Questions:
    """Counts what the journal asks its file."""

    def __init__(self, journal: Journal) -> None:
        self.asked: list[str] = []
        connection_of(journal).set_trace_callback(self.asked.append)

    def take(self) -> int:
        count = len(self.asked)
        self.asked.clear()
        return count


def efforts(harness: EngineHarness, count: int) -> dict[str, Effort]:
    """The cost of so many events of other VMs, which appear, stay as they are, are reported, and end."""
    engine, document = engine_of(harness), of_others(count)
    metrics = Metrics()

    def shown() -> bytes:
        metrics.update(engine, harness.health, False)
        return metrics.as_text()

    work: dict[str, Callable[[], Any]] = {
        "appear": lambda: engine.observe(document),
        "stay": lambda: engine.observe(document),
        "tick": engine.tick,
        "status": lambda: (
            to_text(to_dict(engine, harness.health, harness.clock, None)),
            summary(engine, harness.health),
        ),
        "metrics": shown,
        # one document without them may be that of another backend
        "missing": lambda: engine.observe(EventDocument(2, ())),
        "gone": lambda: engine.observe(EventDocument(3, (), sent_at=2.0)),
    }
    return {name: effort(each, connection_of(harness.journal)) for name, each in work.items()}


def test_effort_grows_with_the_events_and_not_with_their_square(make_vm: Callable[..., EngineHarness]) -> None:
    few, many = efforts(make_vm("vm1"), FEW), efforts(make_vm("vm2"), MANY)
    grown = [
        (name, counted, few[name], many[name])
        for name in few
        for counted in Effort._fields
        if getattr(many[name], counted) > AT_MOST * getattr(few[name], counted)
    ]
    assert grown == []
    assert {name: many[name].lines for name, lines in LINES.items() if many[name].lines > lines * MANY} == {}


def test_journal_is_asked_a_bounded_number_of_times(make_vm: Callable[..., EngineHarness]) -> None:
    harness = make_vm()
    engine, document = engine_of(harness), of_others(MANY)
    questions = Questions(harness.journal)
    engine.observe(document)
    assert questions.take() <= 3 * MANY
    engine.observe(document)
    assert questions.take() <= 10


def fill(path: str, count: int) -> Journal:
    """A journal with so many open records in memory and as many closed ones in its file."""
    journal = Journal.open(path, print)
    with journal.batch():
        for number in range(count):
            record = make_record(journal.next_id(), f"open-{number}")
            end_step(record, add_step(record, journal.next_id()))
            journal.save(record)
        for number in range(count):
            record = make_record(journal.next_id(), f"closed-{number}")
            close_record(record)
            journal.save(record)
    assert journal.write_error is None
    return journal


@pytest.fixture
def full(path: str) -> Iterator[Journal]:
    journal = fill(path, MANY)
    yield journal
    journal.close()


def questions_about_some(journal: Journal) -> Effort:
    def ask() -> None:
        for number in range(FEW):
            assert last_occurrence(journal, f"open-{number}") == 1
            assert last_occurrence(journal, f"none-{number}") == 0
            assert journal.last_of(f"none-{number}") is None

    return effort(ask, connection_of(journal))


def loading_some(journal: Journal) -> Effort:
    def load() -> None:
        for number in range(FEW):
            assert last_occurrence(journal, f"closed-{number}") == 1

    return effort(load, connection_of(journal))


def test_a_question_costs_the_same_in_a_journal_of_many_records(full: Journal, tmp_path: Path) -> None:
    short = fill(str(tmp_path / "short.db"), FEW)
    few, many = questions_about_some(short), questions_about_some(full)
    few_loaded, many_loaded = loading_some(short), loading_some(full)
    short.close()
    assert many.lines <= 1.1 * few.lines and many.instructions <= 1.1 * few.instructions
    assert many.lines <= 100 * FEW and many.instructions <= 500 * FEW
    assert many_loaded.lines <= 1.1 * few_loaded.lines and many_loaded.instructions <= 1.1 * few_loaded.instructions
    assert many_loaded.lines <= 200 * FEW and many_loaded.instructions <= 500 * FEW


def test_one_record_of_many_is_written_alone(full: Journal) -> None:
    questions = Questions(full)
    record = full.open_records()[5]
    add_step(record, full.next_id())
    assert full.save(record)
    assert questions.take() <= 8


def test_batch_is_one_transaction_and_ends_with_all_on_disk(path: str) -> None:
    journal = Journal.open(path, print)
    questions = Questions(journal)
    records = [make_record(journal.next_id(), f"E-{number}") for number in range(50)]
    with journal.batch():
        assert not any(journal.save(record) for record in records)
        journal.note("vm", "vm1")
        assert questions.take() == 0
    assert questions.asked.count("COMMIT") == 2  # the note, and the records
    journal.close()
    again = Journal.open(path, print)
    assert [everything(each) for each in again.open_records()] == [
        everything(each) for each in records
    ] and again.noted("vm") == "vm1"
    again.close()


def test_one_impossible_record_of_a_batch_does_not_hold_up_the_others(path: str) -> None:
    journal = Journal.open(path, print)
    records = [make_record(journal.next_id(), f"E-{number}") for number in range(5)]
    records[2].approval_attempts = 2**70
    with journal.batch():
        for record in records:
            journal.save(record)
    assert journal.write_error is not None
    reader = JournalReader.open(path)
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
    assert journal.reader().records(10) == []
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
    assert full.write_error is None and len(full.open_records()) == MANY
    assert len(commits) <= 4  # the tables, room for a full disk, the records
    reader = JournalReader.open(path)
    assert len(reader.records(MANY * 2)) == MANY + 10
    reader.close()
