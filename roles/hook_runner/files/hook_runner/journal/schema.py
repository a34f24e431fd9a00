# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The tables of the journal, and the migration of older journals.

Times are ISO 8601 texts with their offset. A text that UTF-8 cannot hold is a blob: see rows.py.
"""

from __future__ import annotations

import sqlite3
from typing import Callable

# MIGRATIONS[n] turns version n into version n + 1; version 0 is an empty file. Released entries are
# never edited: a new version is a new entry at the end.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
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
            closed_at TEXT,
            event TEXT NOT NULL -- JSON; last, so that a search by the other columns does not read it
        )
        """,
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
            output TEXT NOT NULL
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
    ),
)

# Columns that later releases have added without a new version number: (table, column, declaration).
# An older program neither reads nor writes them, and its rows get the default; therefore a downgraded
# daemon continues with the same journal.
ADDED_COLUMNS = (
    ("records", "approval_error", "TEXT NOT NULL DEFAULT ''"),
    ("steps", "boot", "TEXT NOT NULL DEFAULT ''"),
    ("steps", "void", "TEXT NOT NULL DEFAULT ''"),
    ("steps", "cause", "TEXT NOT NULL DEFAULT ''"),
)
# 0.1.0 had no causes, and decided by how a reason begins which of these steps another NotBefore
# runs again: (cause, state, beginning).
CAUSES_OF_0_1_0 = (
    ("no-time", "skipped", "too little time is left"),
    ("deadline", "timeout", "the event may start"),
)
# Tables and indexes that were added in the same way; an older program does not use them.
ADDITIONS = (
    "CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS records_by_key ON records (key)",
)

# queries with all columns: they fail for a file of another program with the same version
PROBE_QUERIES = (
    "SELECT id, key, life, first_seen, first_type, first_status, concerned, seen_started, gone_at, outcome, approval,"
    " approval_reason, approval_attempts, approval_asked_by, approval_forced, closed_at, event, approval_error"
    " FROM records LIMIT 0",
    "SELECT id, record, stage, hook, attempt, state, reason, started_at, ended_at, exit_status, output, boot, void,"
    " cause FROM steps LIMIT 0",
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
    """Check that the file can be read and migrated.

    Raises:
        UnusableJournal: it cannot.
        sqlite3.Error: that is unknown, because the file cannot be read now.
    """
    try:
        version = schema_version(connection)
        if version > len(MIGRATIONS):
            text = f"it has version {version}, and this program knows versions up to {len(MIGRATIONS)}"
            raise UnusableJournal(f"version-{version}", text)
        # "main": the check of all databases makes a temporary one, whose pages would stay in memory
        found = connection.execute("PRAGMA main.quick_check(1)").fetchone()[0]
        foreign = version <= 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if is_corruption(error):
            raise UnusableJournal("corrupt", str(error)) from None
        raise
    if found != "ok":
        raise UnusableJournal("corrupt", str(found).replace("\n", " "))
    if foreign:
        raise UnusableJournal("corrupt", "it is a database of another program")


def migrate(connection: sqlite3.Connection, commit: Callable[[], None]) -> None:
    """Bring the tables to the current version in one transaction; an error leaves them unchanged.

    Args:
        connection: open for writing.
        commit: ends the transaction.

    Raises:
        UnusableJournal: a table or a column is missing that its version has.
        sqlite3.Error: the file cannot be written.
    """
    missing = [
        table
        for table, _column, _declaration in ADDED_COLUMNS
        if schema_version(connection) and not _columns(connection, table)
    ]
    if missing:
        raise UnusableJournal("corrupt", f"no such table: {missing[0]}")
    if schema_version(connection) < len(MIGRATIONS) or not is_current(connection):
        connection.execute("BEGIN IMMEDIATE")
        try:
            _add_missing(connection)
            commit()
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    for query in PROBE_QUERIES:
        try:
            connection.execute(query)
        except sqlite3.OperationalError as error:
            if str(error).startswith("no such"):
                raise UnusableJournal("corrupt", str(error)) from None
            raise


def _add_missing(connection: sqlite3.Connection) -> None:
    for statements in MIGRATIONS[schema_version(connection) :]:
        for statement in statements:
            connection.execute(statement)
    for table, column, declaration in ADDED_COLUMNS:
        if column not in _columns(connection, table):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} {declaration}")
    for statement in ADDITIONS:
        connection.execute(statement)
    for values in CAUSES_OF_0_1_0:
        connection.execute("UPDATE steps SET cause = ? WHERE cause = '' AND state = ? AND reason LIKE ? || '%'", values)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def is_current(connection: sqlite3.Connection) -> bool:
    """Return True if the file has everything that this program adds to the tables of its version."""
    if any(column not in _columns(connection, table) for table, column, _declaration in ADDED_COLUMNS):
        return False
    for _cause, *values in CAUSES_OF_0_1_0:
        if connection.execute(
            "SELECT 1 FROM steps WHERE cause = '' AND state = ? AND reason LIKE ? || '%' LIMIT 1", values
        ).fetchone():
            return False
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master").fetchall()}
    return {"notes", "records_by_key"} <= names


def _columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    return frozenset(row[1] for row in connection.execute(f"PRAGMA table_info({table})").fetchall())


def is_corruption(error: sqlite3.Error) -> bool:
    """Return True if SQLite found the content of the file damaged, as opposed to an error that may pass."""
    # SQLite raises "file is not a database" and "malformed" as this class, all other errors as
    # subclasses
    return error.__class__ is sqlite3.DatabaseError
