# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""SIGKILL and power loss at any point: each saved record is complete, and no other record is there."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hook_runner.journal.journal import Journal
from hook_runner.records import RUNNING, EventRecord
from support.daemon.child_processes import die, in_child, start_child
from support.daemon.record_factory import add_step, close_record, end_step, everything, make_record

IDS = (1, 2)


class Deadly(Journal):
    """A journal whose process is killed at one of its commits."""

    countdown: float | None = None

    def _commit(self, connection: sqlite3.Connection) -> None:
        if self.countdown is not None:
            self.countdown -= 0.5
            if self.countdown == 0:
                die()
        super()._commit(connection)
        if self.countdown is not None:
            self.countdown -= 0.5
            if self.countdown == 0:
                die()


def states_of_a_record() -> Iterator[EventRecord]:
    """One event from its appearance to its end, as it is at each save."""
    record = make_record(IDS[0])
    yield record
    step = add_step(record, IDS[1])
    yield record
    end_step(record, step)
    yield record
    close_record(record)
    yield record


def states() -> list[dict[str, Any] | None]:
    """The possible contents of the journal: nothing, or the record after one of the saves."""
    return [None, *(everything(record) for record in states_of_a_record())]


def kill_at(path: str, countdown: float) -> int:
    """Return how many saves had ended before the process was killed."""
    reading, writing = os.pipe()

    def work() -> None:
        journal = Deadly.open(path, print)
        assert isinstance(journal, Deadly)
        journal.countdown = countdown
        for record in states_of_a_record():
            assert journal.save(record)
            os.write(writing, b".")

    assert in_child(work) == -9
    os.close(writing)
    with open(reading, "rb") as done:
        return len(done.read())


def found_in(path: str) -> dict[str, Any] | None:
    said: list[str] = []
    journal = Journal.open(path, said.append)
    records = journal.reader().records(10)
    assert said == [] and journal.write_error is None and len(records) <= 1
    assert [each.id for each in journal.open_records()] == [each.id for each in records if each.closed_at is None]
    journal.close()
    return everything(records[0]) if records else None


@pytest.mark.parametrize("number", range(1, 5))
def test_killed_before_a_commit_leaves_the_state_before_it(tmp_path: Path, number: int) -> None:
    path = str(tmp_path / "journal.db")
    assert kill_at(path, number - 0.5) == number - 1
    assert found_in(path) == states()[number - 1]


@pytest.mark.parametrize("number", range(1, 5))
def test_killed_after_a_commit_leaves_the_state_after_it(tmp_path: Path, number: int) -> None:
    path = str(tmp_path / "journal.db")
    assert kill_at(path, number) == number - 1
    assert found_in(path) == states()[number]


@pytest.mark.parametrize("countdown", [0.5, 1, 1.5, 2, 2.5, 3])
def test_killed_while_the_file_is_made(tmp_path: Path, countdown: float) -> None:
    """The commits of opening: the tables, and the reserve, taken and returned."""
    path = str(tmp_path / "journal.db")

    def work() -> None:
        Deadly.countdown = countdown
        Deadly.open(path, print)

    assert in_child(work) == -9
    assert found_in(path) is None
    assert [name for name in os.listdir(tmp_path) if "corrupt" in name] == []


def test_step_that_ran_when_the_process_was_killed_is_known_to_have_begun(tmp_path: Path) -> None:
    path = str(tmp_path / "journal.db")
    kill_at(path, 2)
    journal = Journal.open(path, print)
    assert [(step.id, step.state) for step in journal.open_records()[0].steps] == [(IDS[1], RUNNING)]
    journal.close()


def test_log_without_its_end_gives_an_earlier_state(tmp_path: Path) -> None:
    """Power loss: the last writes may be cut, or replaced by any bytes, at any place."""
    path = str(tmp_path / "journal.db")
    kill_at(path, 4)
    log = Path(path + "-wal").read_bytes()
    ends = [0, 1, 31, 32, 33, 56, 4152, len(log) - 1, *range(4152, len(log), 9973)]
    seen = set()
    for number, end in enumerate(ends):
        for rest in (b"", os.urandom(200), bytes(200)):
            copy = tmp_path / (f"copy-{number}-{len(rest) + rest[:1].count(0)}")
            copy.mkdir(exist_ok=True)
            shutil.copy(path, copy / "journal.db")
            (copy / "journal.db-wal").write_bytes(log[:end] + rest)
            found = found_in(str(copy / "journal.db"))
            assert found in states()
            seen.add(states().index(found))
            shutil.rmtree(copy)
    assert len(seen) > 1


def test_log_without_its_index_is_read(tmp_path: Path) -> None:
    path = str(tmp_path / "journal.db")
    kill_at(path, 3)
    os.unlink(path + "-shm")
    assert found_in(path) == states()[3]


def test_every_acknowledged_record_survives_a_kill(tmp_path: Path) -> None:
    """Not at a commit but at random times, while the log is checkpointed repeatedly."""
    path = str(tmp_path / "journal.db")
    for round_number in range(15):
        reading, writing = os.pipe()

        def work(to_parent: int = writing) -> None:
            journal = Journal.open(path, print)
            record = (journal.open_records() or [make_record(IDS[0])])[0]
            assert journal.save(record)
            while True:
                record.timeline.append(
                    record.timeline[0]._replace(what=f"number-{len(record.timeline)}", detail="x" * 3000)
                )
                assert journal.save(record)
                os.write(to_parent, b"%8d" % len(record.timeline))

        child = start_child(work)
        os.close(writing)
        with open(reading, "rb") as pipe:
            first = pipe.read(8)
            time.sleep(0.003 * round_number)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            acknowledged = int((first + pipe.read())[-8:])
        found = found_in(path) if round_number % 3 == 0 else None  # mostly the next process finds the files of this one
        if found is not None:
            names = [entry.what for entry in found["timeline"]]
            assert names == ["appeared", *(f"number-{number}" for number in range(1, len(names)))]
            assert acknowledged <= len(names) <= acknowledged + 1


def test_repeated_kills_lose_and_repeat_nothing(tmp_path: Path) -> None:
    """Each start adds one line to the timeline and dies at another point of it."""
    path = str(tmp_path / "journal.db")
    journal = Journal.open(path, print)
    journal.save(make_record(IDS[0]))
    journal.close()
    for start in range(12):

        def work(dies_after: bool = bool(start % 2)) -> None:
            journal = Deadly.open(path, print)
            assert isinstance(journal, Deadly)
            (record,) = journal.open_records()
            record.timeline.append(record.timeline[0]._replace(what=f"start-{len(record.timeline)}"))
            journal.countdown = 1 if dies_after else 0.5
            journal.save(record)

        assert in_child(work) == -9
    found = found_in(path)
    assert found is not None
    assert [entry.what for entry in found["timeline"]] == ["appeared", *(f"start-{number}" for number in range(1, 7))]
