# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Queries for the records of a journal, as `history` shows them."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import Iterable, Iterator

from hook_runner.journal import database, rows
from hook_runner.journal.schema import UnusableJournal
from hook_runner.records import EventRecord

# seconds that another program may hold the file
READ_BUSY_TIMEOUT = 5.0


class JournalUnreadable(Exception):
    """The journal cannot be read; the text names the file and the reason."""


class JournalReader:
    """Finds records in the file and among those that the daemon has not written yet.

    Each query raises JournalUnreadable where the file cannot be read. `pending` are records in memory, which
    are newer than what the file has of them. Without a `connection` only these can be searched. `path` is for
    messages.

    Attributes:
        unreadable: a sentence for each record whose content `record` could not read.
    """

    def __init__(self, path: str, connection: sqlite3.Connection | None, pending: Iterable[EventRecord] = ()) -> None:
        self.unreadable: list[str] = []
        self._path = path
        self._connection = connection
        self._pending = {record.id: record for record in pending}

    @classmethod
    def open(cls, path: str) -> JournalReader:
        """Open the file without changing it, whether a daemon writes it or not. Raises JournalUnreadable."""
        try:
            return cls(path, database.open_for_reading(path, READ_BUSY_TIMEOUT))
        except (OSError, sqlite3.Error, UnusableJournal) as error:
            raise JournalUnreadable(f"the journal {path} cannot be read: {error}") from None

    def records(self, limit: int, event_id: str | None = None) -> list[EventRecord]:
        """Return the newest records, newest first, of all events or of one (in any letter case)."""
        found = [self.record(record_id) for record_id in self.ids(limit, event_id)]
        return [record for record in found if record is not None]

    def ids(self, limit: int, event_id: str | None = None, before: int | None = None) -> list[int]:
        """Return the numbers of the newest records, newest first, of all events or of one (in any letter case).

        With `before`, only smaller numbers count, to continue where an earlier answer ended.
        """
        key = None if event_id is None else event_id.casefold()
        found = {
            record.id
            for record in self._pending.values()
            if key in (None, record.key) and (before is None or record.id < before)
        }
        with self._reading() as connection:
            if connection is not None:
                found.update(rows.newest_ids(connection, limit, key, before))
        return sorted(found, reverse=True)[:limit]

    def record(self, record_id: int) -> EventRecord | None:
        """Return the record of this number; None where `unreadable` has got a sentence about its content instead."""
        with self._reading() as connection:
            if record_id in self._pending or connection is None:
                return self._pending.get(record_id)
            try:
                return rows.load(connection, record_id)
            except ValueError as error:
                self.unreadable.append(str(error))
        return None

    def keys_beginning(self, start: str, limit: int) -> list[str]:
        """Return the keys of events (their ids with letter case folded) that begin with `start`."""
        keys = {record.key for record in self._pending.values() if record.key.startswith(start)}
        with self._reading() as connection:
            if connection is not None:
                keys.update(rows.keys_beginning(connection, start, limit))
        return sorted(keys)[:limit]

    def close(self) -> None:
        """Close a file that `open` opened."""
        if self._connection is not None:
            self._connection.close()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        try:
            yield self._connection
        except sqlite3.Error as error:
            raise JournalUnreadable(f"the journal {self._path} cannot be read: {error}") from None
