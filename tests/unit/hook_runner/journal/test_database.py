# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Journals that are damaged, of another version or of another program: quarantined, logged and replaced."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from hook_runner.journal.journal import Journal
from hook_runner.journal.reader import JournalReader, JournalUnreadable
from support.daemon.child_processes import die, in_child
from support.daemon.record_factory import add_step, after, close_record, everything, make_record

NOON = 1795262400.0


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A closed journal with one open and 40 closed records."""
    path = str(tmp_path / "journal.db")
    journal = Journal.open(path, print)
    for number in range(41):
        record = make_record(journal.next_id(), f"E-{number}")
        add_step(record, journal.next_id()).output = "x" * 2000
        if number:
            close_record(record)
        assert journal.save(record)
    journal.close()
    return path


def open_at_noon(path: str, said: list[str]) -> Journal:
    return Journal.open(path, said.append, wall=lambda: NOON)


def quarantined(path: str) -> list[str]:
    folder, name = os.path.split(path)
    return sorted(entry for entry in os.listdir(folder) if entry.startswith((name + ".corrupt", name + ".version")))


def garble(path: str) -> None:
    def work() -> None:
        content = Path(path).read_bytes()
        Path(path).write_bytes(content[:4096] + random.Random(1).randbytes(len(content) - 4096))

    # by another process: closing a file releases all locks of a process, also SQLite's
    assert in_child(work) == 0


def write(content: bytes) -> Callable[[str], None]:
    def work(path: str) -> None:
        Path(path).write_bytes(content)

    return work


def cut(size: int) -> Callable[[str], None]:
    return lambda path: os.truncate(path, size)


def change(*statements: str) -> Callable[[str], None]:
    def work(path: str) -> None:
        connection = sqlite3.connect(path)
        connection.executescript(";".join(statements))
        connection.close()

    return work


def foreign(path: str) -> None:
    os.unlink(path)
    change("CREATE TABLE words (word TEXT)")(path)


@pytest.mark.parametrize(
    "breakage",
    [
        write(b"not a database" * 500),
        write(bytes(8192)),
        cut(50),
        cut(4096),
        cut(40000),
        garble,
        foreign,
        change("DROP TABLE steps"),
        change("ALTER TABLE steps RENAME COLUMN cause TO why"),
        change(
            "PRAGMA writable_schema = 1",
            "UPDATE sqlite_master SET sql = 'CREATE TABLE nonsense (' WHERE name = 'steps'",
        ),
        change("UPDATE records SET event = 'no JSON' WHERE closed_at IS NULL"),
        change("UPDATE records SET first_seen = 'yesterday' WHERE closed_at IS NULL"),
        change("UPDATE steps SET output = CAST(x'ff' AS TEXT)"),
    ],
    ids=[
        "text",
        "zeros",
        "50 bytes",
        "one page",
        "torn",
        "garbled",
        "foreign",
        "no table",
        "no column",
        "bad schema",
        "bad event",
        "bad time",
        "bad text",
    ],
)
def test_damaged_journal_is_quarantined_and_replaced(path: str, breakage: Callable[[str], None]) -> None:
    breakage(path)
    content = Path(path).read_bytes()
    said: list[str] = []
    journal = open_at_noon(path, said)
    assert quarantined(path) == ["journal.db.corrupt-20261121T120000Z"]
    assert Path(path + ".corrupt-20261121T120000Z").read_bytes() == content
    assert len(said) == 1 and path + ".corrupt-20261121T120000Z" in said[0] and "a new one begins" in said[0]
    assert journal.open_records() == [] and journal.write_error is None
    assert journal.save(make_record(journal.next_id()))
    journal.close()
    again = open_at_noon(path, said)
    assert len(again.open_records()) == 1 and len(said) == 1
    again.close()


def test_log_of_a_damaged_journal_is_quarantined_with_it(path: str) -> None:
    def work() -> None:
        journal = Journal.open(path, print)
        journal.save(make_record(journal.next_id(), "in-the-log"))
        die()

    assert in_child(work) == -9
    assert os.path.getsize(path + "-wal")
    os.truncate(path, 0)
    said: list[str] = []
    journal = open_at_noon(path, said)
    assert quarantined(path) == ["journal.db.corrupt-20261121T120000Z" + suffix for suffix in ("", "-shm", "-wal")]
    assert "it is missing or empty, and the log beside it is not" in said[0]
    assert journal.reader().records(10) == []
    journal.close()


def test_journal_of_another_version_is_quarantined_under_it(path: str) -> None:
    change("PRAGMA user_version = 7", "ALTER TABLE records ADD COLUMN colour TEXT")(path)
    said: list[str] = []
    journal = open_at_noon(path, said)
    assert quarantined(path) == ["journal.db.version-7-20261121T120000Z"]
    assert len(said) == 1 and "it has version 7, and this program knows version 1 only" in said[0]
    assert journal.open_records() == [] and journal.save(make_record(journal.next_id()))
    journal.close()
    kept = sqlite3.connect(path + ".version-7-20261121T120000Z")
    assert kept.execute("SELECT count(*) FROM records").fetchone() == (41,)
    kept.close()


def test_two_journals_quarantined_in_one_second_have_two_names(path: str) -> None:
    for _time in range(2):
        Path(path).write_bytes(b"nonsense")
        open_at_noon(path, []).close()
    assert quarantined(path) == ["journal.db.corrupt-20261121T120000Z", "journal.db.corrupt-20261121T120000Z-2"]


def test_quarantined_journals_are_bounded(path: str) -> None:
    for _time in range(9):
        Path(path).write_bytes(b"nonsense")
        open_at_noon(path, []).close()
    assert len(quarantined(path)) == 5


def test_journal_damaged_in_use_is_replaced_with_all_open_records(path: str) -> None:
    said: list[str] = []
    journal = open_at_noon(path, said)
    (old,) = journal.open_records()
    new = make_record(journal.next_id(), "new")
    assert journal.save(new)
    other_program = sqlite3.connect(path)  # its change requires the file to be read again
    other_program.execute("INSERT INTO reserve VALUES (1)")
    other_program.commit()
    other_program.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other_program.close()
    garble(path)
    for number in range(3):
        new.timeline.append(new.timeline[0]._replace(at=after(number)))
        assert journal.save(new)
    assert journal.write_error is None
    assert quarantined(path)[0] == "journal.db.corrupt-20261121T120000Z"
    journal.close()
    again = open_at_noon(path, said)
    assert [everything(record) for record in again.open_records()] == [everything(old), everything(new)]
    again.close()


@pytest.mark.parametrize("taken", [os.unlink, lambda path: os.rename(path, path + ".taken")], ids=["removed", "moved"])
def test_file_removed_in_use_is_replaced_with_all_open_records(path: str, taken: Callable[[str], None]) -> None:
    said: list[str] = []
    journal = open_at_noon(path, said)
    (old,) = journal.open_records()
    taken(path)
    new = make_record(journal.next_id(), "new")
    assert journal.save(new) and journal.write_error is None
    assert any("it was moved or removed" in text for text in said)
    journal.close()
    again = open_at_noon(path, said)
    assert [everything(record) for record in again.open_records()] == [everything(old), everything(new)]
    again.close()


def test_reader_leaves_out_and_reports_an_unreadable_record(path: str) -> None:
    change("UPDATE records SET event = 'no JSON' WHERE key = 'e-7'")(path)
    reader = JournalReader.open(path)
    assert len(reader.records(100)) == 40
    assert len(reader.unreadable) == 1 and "cannot be read" in reader.unreadable[0]
    reader.close()


@pytest.mark.parametrize(
    "breakage, words",
    [(write(b"nonsense" * 99), "not a database"), (change("PRAGMA user_version = 7"), "version 7")],
    ids=["corrupt", "newer"],
)
def test_reader_of_an_unusable_journal_fails_and_moves_nothing(
    path: str, breakage: Callable[[str], None], words: str
) -> None:
    breakage(path)
    with pytest.raises(JournalUnreadable, match=words):
        JournalReader.open(path)
    assert quarantined(path) == []
