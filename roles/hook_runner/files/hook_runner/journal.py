# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon's memory on disk: every record, before and after each step, so that a restart goes on where the last one ended."""

from __future__ import annotations

import sqlite3
import time
from datetime import datetime, timezone
from typing import Callable, Optional

from hook_runner import journal_file, rows
from hook_runner.records import INTERRUPTED, RUNNING, Entry, Record
from hook_runner.schema import Unusable, is_corruption

# seconds between two attempts to open a file that could not be opened
PAUSE = 5.0
# seconds that another program may hold the file: at the start, where nothing is known without it, and later, when IMDS is asked every second
PATIENCE_AT_START = 5.0
PATIENCE = 0.5

# what is wrong with one record only, so that the others can be written
OF_ONE_RECORD = (ValueError, OverflowError, sqlite3.DataError, sqlite3.IntegrityError, sqlite3.InterfaceError)


class JournalUnreadable(Exception):
    """The journal cannot be read; the text says which one and why."""


class Journal:
    """Keeps records in a file, and in memory for as long as the file cannot take them.

    Make one with `open` or `read_only`.

    Attributes:
        degraded: a sentence while something is not on disk; None while all is.
        unreadable: a sentence for each record that `records` had to leave out.
        is_known: whether the file was read since the start, or held nothing that could be read. An empty list of records
            means nothing before that.
    """

    def __init__(self, path: str, say: Callable[[str], None], clock: Callable[[], float], wall: Callable[[], float]) -> None:
        self.degraded: Optional[str] = None
        self.unreadable: list[str] = []
        self.is_known = False
        self._path = path
        self._say = say
        self._clock = clock
        self._wall = wall
        self._connection: Optional[sqlite3.Connection] = None
        self._writable = False
        self._may_write = True
        self._identity: Optional[tuple[int, int]] = None
        self._tried_at = 0.0
        self._last_id = int(wall() * 1000)
        # open records are written anew when the file turns out to be another one
        self._open: dict[int, Record] = {}
        self._pending: dict[int, Record] = {}
        # the events of which this process knows more than a file that comes back
        self._own_keys: set[str] = set()
        self._was_asked = False
        self._late: list[Record] = []
        self._entries_written: dict[int, int] = {}
        self._steps_written: dict[int, tuple[rows.Value, ...]] = {}
        self._notes: dict[str, str] = {}
        self._notes_pending: dict[str, str] = {}

    @classmethod
    def open(
        cls,
        path: str,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> Journal:
        """The journal of the one daemon that writes it. Never fails: see `degraded`.

        Args:
            path: the file; made where there is none, kept aside where it is of no use.
            say: takes a sentence whenever there is something to know.
            clock, wall: seconds that never go back, and seconds since 1970.
        """
        journal = cls(path, say, clock, wall)
        journal._attach(PATIENCE_AT_START)
        return journal

    @classmethod
    def read_only(cls, path: str) -> Journal:
        """The journal for whoever only looks at it, beside the daemon or without one. Raises JournalUnreadable."""
        journal = cls(path, lambda text: None, time.monotonic, time.time)
        journal.degraded = "the journal %s is open for reading only" % path
        journal._may_write = False
        try:
            journal._connection = journal_file.open_for_reading(path, PATIENCE_AT_START)
        except (OSError, sqlite3.Error, Unusable) as error:
            raise JournalUnreadable("the journal %s cannot be read: %s" % (path, error)) from None
        return journal

    def next_id(self) -> int:
        """A number for a record or a step that no other one ever had.

        Numbers begin at the time in milliseconds, so that they are new even where the journal was lost and run folders were not.
        """
        self._last_id += 1
        return self._last_id

    def save(self, record: Record) -> bool:
        """Write the record in one transaction; False where it is in memory only, until the next save that works."""
        # an end that is not written would have its event recovered from once more: it is not put off
        is_end = record.closed_at is not None and record.id in self._open
        self._pending.pop(record.id, None)
        self._pending[record.id] = record
        self._own_keys.add(record.key)
        if record.closed_at is None:
            self._open[record.id] = record
        else:
            self._open.pop(record.id, None)
        self._write_pending(at_once=is_end)
        return record.id not in self._pending

    def note(self, name: str, value: str) -> None:
        """Remember something that is not about one event, such as this VM's name; kept in memory for as long as the file cannot take it."""
        if self._notes.get(name) != value:
            self._notes[name] = self._notes_pending[name] = value
            self._write_pending(at_once=False)

    def noted(self, name: str) -> str:
        """What was noted last under this name, also by an earlier process; "" where nothing was."""
        return self._notes.get(name, "")

    def open_records(self) -> list[Record]:
        """The records of events that are not over, or not recovered from, in the order of their beginning."""
        self._was_asked = True
        return [self._open[record_id] for record_id in sorted(self._open)]

    def retry(self) -> None:
        """Try to read the file now, where that failed: see `is_known`."""
        if not self.is_known:
            self._attach(PATIENCE)

    def late_records(self) -> list[Record]:
        """Open records that came to light after `open_records` was asked, since the file could not be read before; each of them once."""
        if not self.is_known and self._clock() - self._tried_at >= PAUSE:
            self.retry()
        late, self._late = self._late, []
        return [record for record in late if record.id in self._open]

    def last_life(self, key: str) -> int:
        """The number of the last life of the event of this key; 0 where it is unknown."""
        lives = [record.life for record in (*self._open.values(), *self._pending.values()) if record.key == key]
        if self._connection is not None:
            try:
                lives.append(rows.last_life(self._connection, key))
            except sqlite3.Error as error:
                self._degrade(error)
        return max(lives, default=0)

    def records(self, limit: int, event_id: Optional[str] = None) -> list[Record]:
        """The newest records, newest first, of all events or of one (in any letter case). Raises JournalUnreadable."""
        self.unreadable = []
        found = [self.record(record_id) for record_id in self.ids(limit, event_id)]
        return [record for record in found if record is not None]

    def ids(self, limit: int, event_id: Optional[str] = None, before: Optional[int] = None) -> list[int]:
        """The numbers of the newest records, newest first, of all events or of one. Raises JournalUnreadable.

        before: only smaller numbers, to go on where an earlier answer ended.
        """
        key = None if event_id is None else event_id.casefold()
        pending = [record.id for record in self._pending.values() if key in (None, record.key)]
        found = {record_id for record_id in pending if before is None or record_id < before}
        try:
            if self._connection is not None:
                found.update(rows.newest_ids(self._connection, limit, key, before))
        except sqlite3.Error as error:
            raise JournalUnreadable("the journal %s cannot be read: %s" % (self._path, error)) from None
        return sorted(found, reverse=True)[:limit]

    def record(self, record_id: int) -> Optional[Record]:
        """A record by its number; None where its content makes no sense: see `unreadable`. Raises JournalUnreadable."""
        known = self._pending.get(record_id)
        if known is not None or self._connection is None:
            return known
        try:
            return rows.load(self._connection, record_id)
        except ValueError as error:
            self.unreadable.append(str(error))
            return None
        except sqlite3.Error as error:
            raise JournalUnreadable("the journal %s cannot be read: %s" % (self._path, error)) from None

    def keys_beginning(self, start: str, limit: int) -> list[str]:
        """The keys of events (their ids with letter case folded) that begin so. Raises JournalUnreadable."""
        keys = {record.key for record in self._pending.values() if record.key.startswith(start)}
        try:
            if self._connection is not None:
                keys.update(rows.keys_beginning(self._connection, start, limit))
        except sqlite3.Error as error:
            raise JournalUnreadable("the journal %s cannot be read: %s" % (self._path, error)) from None
        return sorted(keys)[:limit]

    def prune(self, keep: int) -> None:
        """Forget closed records but the newest `keep`; what cannot be done now is done the next time."""
        closed = sorted(record_id for record_id, record in self._pending.items() if record.closed_at is not None)
        for record_id in closed[: max(0, len(closed) - keep)]:
            del self._pending[record_id]
        connection = self._connection
        if connection is None or not self._writable:
            return
        try:
            connection.execute("BEGIN IMMEDIATE")
            rows.prune(connection, keep)
            self._commit(connection)
        except sqlite3.Error as error:
            _roll_back(connection)
            self._degrade(error)

    def close(self) -> None:
        """Write what is left, and close the file."""
        if self._pending:
            self._write_pending(at_once=True)
        self._detach()

    def _write_pending(self, at_once: bool) -> None:
        """Write all that is not on disk yet, into another file where this one is broken or gone."""
        for _attempt in range(2):
            connection = self._ready(at_once)
            if connection is None:
                return
            try:
                problem = self._write_all(connection)
            except sqlite3.Error as error:
                _roll_back(connection)
                self._degrade(error)
                if not is_corruption(error):
                    return
                self._detach()
                at_once = True
                continue
            if problem is None:
                self._recover()
            else:
                self._degrade(problem)
            return

    def _write_all(self, connection: sqlite3.Connection) -> Optional[Exception]:
        """Write each pending record; returns what was wrong with single ones, raises sqlite3.Error where it is the file."""
        problem = None
        if self._notes_pending:
            connection.execute("BEGIN IMMEDIATE")
            for name, value in self._notes_pending.items():
                rows.save_note(connection, name, value)
            self._commit(connection)
            self._notes_pending.clear()
        # the latest first: a large one that finds no room must not keep a small one out
        for record in reversed(list(self._pending.values())):
            try:
                self._write(connection, record)
            except OF_ONE_RECORD as error:
                _roll_back(connection)
                problem = error
        return problem

    def _write(self, connection: sqlite3.Connection, record: Record) -> None:
        connection.execute("BEGIN IMMEDIATE")
        rows.save_record(connection, record)
        steps = {step.id: rows.step_row(record, step) for step in record.steps}
        for step_id, row in steps.items():
            if self._steps_written.get(step_id) != row:
                rows.save_step(connection, row)
        known = self._entries_written.get(record.id)
        rows.save_entries(connection, record, rows.entries_of(connection, record.id) if known is None else known)
        self._commit(connection)
        del self._pending[record.id]
        if record.closed_at is None:
            self._entries_written[record.id] = len(record.timeline)
            self._steps_written.update(steps)
        else:
            self._entries_written.pop(record.id, None)
            for step_id in steps:
                self._steps_written.pop(step_id, None)

    def _commit(self, connection: sqlite3.Connection) -> None:
        """The one place where something becomes lasting: tests stop the world before and after it."""
        connection.execute("COMMIT")

    def _ready(self, at_once: bool) -> Optional[sqlite3.Connection]:
        """The connection if it writes into the file that has the journal's name; opens it if it is time to try."""
        if self._writable:
            if self._identity == journal_file.identity(self._path):
                return self._connection
            self._degrade("it was moved or removed while it was in use")
            at_once = True
        if self._may_write and (at_once or self._clock() - self._tried_at >= PAUSE):
            self._attach(PATIENCE)
        return self._connection if self._writable else None

    def _attach(self, patience: float) -> None:
        """Open the file; where it cannot be written, at least for reading: a full disk still tells what was done before."""
        self._tried_at = self._clock()
        # first, since SQLite's locks belong to the process: closing one connection could take away those of the next
        self._detach()
        try:
            self._connection = journal_file.open_for_writing(self._path, self._say, self._commit, self._wall(), patience)
            self._connection.execute("PRAGMA busy_timeout = %d" % (PATIENCE * 1000))
            self._writable, self._identity = True, journal_file.identity(self._path)
        except (OSError, sqlite3.Error, Unusable) as error:
            self._degrade(error)
            try:
                self._connection = journal_file.open_for_reading(self._path, patience)
            except (OSError, sqlite3.Error, Unusable) as reason:
                self.is_known = self.is_known or journal_file.holds_nothing(reason)
                return
        try:
            self._last_id = max(self._last_id, rows.last_id(self._connection))
            self._take_in(self._connection)
        except sqlite3.Error as error:
            self._writable = False  # so that it is opened, and read, once more
            self._degrade(error)
        for record in self._open.values():
            self._pending.setdefault(record.id, record)
        self._notes_pending = dict(self._notes)

    def _take_in(self, connection: sqlite3.Connection) -> None:
        """Learn the file's open records and notes. Raises sqlite3.Error."""
        if self._may_write:
            self._notes = {**rows.notes(connection), **self._notes}
        for record_id in rows.open_ids(connection):
            if record_id in self._open or record_id in self._pending:
                continue
            try:
                record = rows.load(connection, record_id)
            except ValueError as error:
                self._degrade(error)  # in a file that cannot be written; another one was kept aside
                continue
            if record.key in self._own_keys:
                self._supersede(record)
                continue
            self._open[record_id] = record
            if self._was_asked:
                self._late.append(record)
        self.is_known = True

    def _supersede(self, record: Record) -> None:
        """Close a record of a file that was away: this process began another one for the event, and two would recover twice."""
        now = datetime.fromtimestamp(self._wall(), timezone.utc)
        for step in record.steps:
            if step.state == RUNNING:
                step.state, step.ended_at, step.reason = INTERRUPTED, now, "the journal could not be read, so that nobody knows how it ended"
        record.closed_at = now
        record.timeline.append(Entry(now, "superseded", "the journal could not be read for a while, and the service began another record of this event"))
        self._pending[record.id] = record

    def _detach(self) -> None:
        connection, self._connection, self._writable = self._connection, None, False
        self._entries_written.clear()
        self._steps_written.clear()
        if connection is not None:
            try:
                connection.close()
            except sqlite3.Error:
                pass  # what was committed is in the log, whatever became of it

    def _degrade(self, reason: object) -> None:
        text = "the journal %s cannot be written, so that a restart would forget what happens: %s" % (self._path, reason)
        if text != self.degraded:
            self._say(text)
        self.degraded = text

    def _recover(self) -> None:
        if self.degraded is not None:
            self._say("the journal %s is written again, and has all that happened meanwhile" % self._path)
        self.degraded = None


def _roll_back(connection: sqlite3.Connection) -> None:
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error:
        pass  # SQLite has done it by itself
