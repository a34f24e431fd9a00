# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The tables of the journal.

Times are ISO 8601 texts with their offset. A text that UTF-8 cannot hold is a blob: see rows.py.
"""

from __future__ import annotations

import sqlite3
from typing import Callable

# the version of the tables below; a journal of another version is set aside
VERSION = 1
TABLES = (
    """
    CREATE TABLE records (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL,
        life INTEGER NOT NULL,
        first_seen TEXT NOT NULL,
        first_type TEXT NOT NULL,
        first_status TEXT NOT NULL,
        concerned INTEGER NOT NULL,
        seen_started INTEGER NOT NULL,
        gone_at TEXT,
        outcome TEXT NOT NULL,
        approval TEXT NOT NULL,
        approval_reason TEXT NOT NULL,
        approval_attempts INTEGER NOT NULL,
        approval_asked_by TEXT NOT NULL,
        approval_forced INTEGER NOT NULL,
        approval_error TEXT NOT NULL,
        closed_at TEXT,
        event TEXT NOT NULL -- JSON; last, so that a search by the other columns does not read it
    )
    """,
    "CREATE INDEX records_by_key ON records (key)",
    """
    CREATE TABLE steps (
        id INTEGER PRIMARY KEY,
        record INTEGER NOT NULL REFERENCES records ON DELETE CASCADE,
        stage TEXT NOT NULL,
        hook TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        state TEXT NOT NULL,
        reason TEXT NOT NULL,
        started_at TEXT,
        ended_at TEXT,
        exit_status INTEGER,
        output TEXT NOT NULL,
        boot TEXT NOT NULL,
        void TEXT NOT NULL,
        cause TEXT NOT NULL,
        event_type TEXT NOT NULL
    )
    """,
    "CREATE INDEX steps_of_record ON steps (record)",
    """
    CREATE TABLE timeline (
        record INTEGER NOT NULL REFERENCES records ON DELETE CASCADE,
        position INTEGER NOT NULL,
        at TEXT NOT NULL,
        what TEXT NOT NULL,
        detail TEXT NOT NULL,
        PRIMARY KEY (record, position)
    ) WITHOUT ROWID
    """,
    "CREATE TABLE reserve (content BLOB)",
    "CREATE TABLE notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
)

# queries with all columns: they fail for a file of another program with the same version
PROBE_QUERIES = (
    "SELECT id, key, life, first_seen, first_type, first_status, concerned, seen_started, gone_at, outcome, approval,"
    " approval_reason, approval_attempts, approval_asked_by, approval_forced, closed_at, event, approval_error"
    " FROM records LIMIT 0",
    "SELECT id, record, stage, hook, attempt, state, reason, started_at, ended_at, exit_status, output, boot, void,"
    " cause, event_type FROM steps LIMIT 0",
    "SELECT record, position, at, what, detail FROM timeline LIMIT 0",
    "SELECT content FROM reserve LIMIT 0",
    "SELECT name, value FROM notes LIMIT 0",
)


class UnusableJournal(Exception):
    """The file is not a journal that this program can use, now or later.

    Attributes:
        label: part of the name of the quarantined file: "corrupt" or "version-7".
    """

    def __init__(self, label: str, text: str) -> None:
        super().__init__(text)
        self.label = label


def schema_version(connection: sqlite3.Connection) -> int:
    """Return the version of the tables; 0 for an empty file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check_usable(connection: sqlite3.Connection) -> None:
    """Check that the file is empty, or has the version of this program and can be read.

    Raises:
        UnusableJournal: it is not.
        sqlite3.Error: that is unknown, because the file cannot be read now.
    """
    try:
        version = schema_version(connection)
        if version not in (0, VERSION):
            text = f"it has version {version}, and this program knows version {VERSION} only"
            raise UnusableJournal(f"version-{version}", text)
        # "main": the check of all databases makes a temporary one, whose pages would stay in memory
        found = connection.execute("PRAGMA main.quick_check(1)").fetchone()[0]
        foreign = not version and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if is_corruption(error):
            raise UnusableJournal("corrupt", str(error)) from None
        raise
    if found != "ok":
        raise UnusableJournal("corrupt", str(found).replace("\n", " "))
    if foreign:
        raise UnusableJournal("corrupt", "it is a database of another program")


def create_tables(connection: sqlite3.Connection, commit: Callable[[], None]) -> None:
    """Create the tables of an empty file in one transaction; an error leaves it empty. Raises sqlite3.Error.

    `commit` ends the transaction.
    """
    if schema_version(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in TABLES:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        commit()
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def check_tables(connection: sqlite3.Connection) -> None:
    """Check that the file has all tables and columns.

    Raises:
        UnusableJournal: it does not.
        sqlite3.Error: that is unknown, because the file cannot be read now.
    """
    for query in PROBE_QUERIES:
        try:
            connection.execute(query)
        except sqlite3.OperationalError as error:
            if str(error).startswith("no such"):
                raise UnusableJournal("corrupt", str(error)) from None
            raise


def is_corruption(error: sqlite3.Error) -> bool:
    """Return True if SQLite found the content of the file damaged, as opposed to an error that may pass."""
    # SQLite raises "file is not a database" and "malformed" as this class, all other errors as
    # subclasses
    return error.__class__ is sqlite3.DatabaseError
