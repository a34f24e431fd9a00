# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Changes of the journal's file by other programs while it is open."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hook_runner.journal.open_file import FileState, OpenFile


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "journal.db")


@pytest.fixture
def file(path: str) -> Iterator[OpenFile]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE numbers (number INTEGER)")
    opened = OpenFile(path, connection, None, 0.0)
    yield opened
    opened.close()


def write_a_row(path: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO numbers VALUES (1)")


def replace(path: str) -> None:
    Path(path + ".new").write_bytes(Path(path).read_bytes())
    os.replace(path + ".new", path)


@pytest.mark.parametrize(
    "change, state",
    [
        (lambda path: None, FileState.UNCHANGED),
        (write_a_row, FileState.CHANGED),
        (replace, FileState.REPLACED),
        (os.unlink, FileState.REPLACED),
    ],
    ids=["none", "written", "replaced", "removed"],
)
def test_state_of_the_file_shows_a_change_by_another_program(
    file: OpenFile, path: str, change: Callable[[str], None], state: FileState
) -> None:
    change(path)
    assert file.state() is state
    assert file.state() is state


def test_own_transactions_leave_the_file_unchanged(file: OpenFile) -> None:
    for number in range(10):  # the log is copied into the file in between
        file.connection.execute("INSERT INTO numbers VALUES (?)", (number,))
        file.note_own_write()
        assert file.state() is FileState.UNCHANGED


def test_broken_file_stays_broken_after_a_transaction(file: OpenFile) -> None:
    file.mark_broken()
    file.note_own_write()
    assert file.state() is FileState.BROKEN
