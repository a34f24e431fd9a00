# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon's records on disk: written before and after each step, so that a restart continues with them."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from datetime import datetime, timezone
from typing import Callable, Iterator

from hook_runner.journal import database, rows
from hook_runner.journal.known_records import KnownRecords
from hook_runner.journal.open_file import FileState, OpenFile
from hook_runner.journal.reader import JournalReader
from hook_runner.journal.record_writer import RecordWriter
from hook_runner.journal.schema import UnusableJournal, is_corruption
from hook_runner.records import INTERRUPTED, RUNNING, Cause, EventRecord, TimelineEntry

# seconds between two attempts to open, or to write, a file that could not be opened or written
REOPEN_INTERVAL = 5.0
# seconds between two checks of the file while a record is open: a lost file is written again
CHECK_INTERVAL = 2.0
# seconds that another program may hold the file: at the start, where nothing is known without it,
# and later, when IMDS is polled every second
START_BUSY_TIMEOUT = 5.0
BUSY_TIMEOUT = 0.5

# errors that concern one record only; the others can be written
PER_RECORD_ERRORS = (ValueError, OverflowError, sqlite3.DataError, sqlite3.IntegrityError, sqlite3.InterfaceError)


class Journal:
    """Keeps records in a file, and in memory while the file cannot be written.

    The journal of the one daemon that writes the file; make it with `open`. `JournalReader` is for
    other processes.

    Attributes:
        write_error: a sentence while something is not on disk; None while everything is.
        degraded_since: when that began, in seconds of `clock`; None while everything is on disk.
        files_opened: how often a file was opened for writing; each may be another file.
        is_known: whether the file was read since the start, or contained nothing that could be
            read. An empty list of records means nothing before that.
    """

    def __init__(
        self, path: str, say: Callable[[str], None], clock: Callable[[], float], wall: Callable[[], float]
    ) -> None:
        self.write_error: str | None = None
        self.degraded_since: float | None = None
        self.files_opened = 0
        self.is_known = False
        self._path = path
        self._say = say
        self._clock = clock
        self._wall = wall
        self._file: OpenFile | None = None
        self._tried_at = float("-inf")
        self._failed_at = float("-inf")
        self._last_id = int(wall() * 1000)
        self._records = KnownRecords()
        # why the file of the journal's name must not be read, until it is renamed
        self._unwanted: UnusableJournal | None = None
        self._in_batch = False
        # whether a record was closed since the last pruning, and how many that kept
        self._is_to_prune, self._kept = True, 0
        self._was_asked = False
        self._late: list[EventRecord] = []
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
        """Return the journal in this file, which is created if it is missing, and quarantined if it cannot be used.

        It never fails: see `write_error`. `say` logs a sentence; `clock` returns monotonic seconds, and `wall`
        seconds since 1970.
        """
        journal = cls(path, say, clock, wall)
        journal._open_file(START_BUSY_TIMEOUT)
        return journal

    def next_id(self) -> int:
        """Return a number for a record or a run that no other one ever had.

        Numbers begin at the time in milliseconds; therefore they are new even where the journal was
        lost and folders of runs were not.
        """
        self._last_id += 1
        return self._last_id

    def save(self, record: EventRecord) -> bool:
        """Write the record in one transaction.

        Returns False where it is in memory only, until the next save that succeeds.
        """
        # a closing record is written at once: if it were lost, recovery would run again
        is_end = record.closed_at is not None and record.id in self._records.open
        self._records.add(record)
        if record.closed_at is not None:
            self._is_to_prune = True
        if not self._in_batch:
            self._write_pending(at_once=is_end)
        return record.id not in self._records.pending

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """Write everything that is saved in the block in one transaction at its end.

        For documents with many events, since each transaction waits for the disk. In the block,
        `save` returns False for each record; nothing that requires a record on disk may begin.
        """
        self._in_batch = True
        try:
            yield
        finally:
            self._in_batch = False
            if self._is_behind():
                self._write_pending(at_once=False)

    def note(self, name: str, value: str) -> None:
        """Remember a value that does not belong to one event, such as this VM's name."""
        if self._notes.get(name) != value:
            self._notes[name] = self._notes_pending[name] = value
            if not self._in_batch:
                self._write_pending(at_once=False)

    def noted(self, name: str) -> str:
        """Return the value that was noted last under this name, also by an earlier process; "" without one."""
        return self._notes.get(name, "")

    def open_records(self) -> list[EventRecord]:
        """Return the records that are not closed, oldest first."""
        self._was_asked = True
        return sorted(self._records.open, key=lambda record: record.id)

    def maintain(self, urgent: bool = False) -> None:
        """Check that the file exists, that no other program changed it, and that it has everything pending.

        Call it when `due` is over. Where another program holds the file, it waits for at most BUSY_TIMEOUT in
        each REOPEN_INTERVAL.

        1. A file that has everything is opened again, and gets the records in memory, if it was moved, removed
           or replaced, if it is damaged, or if another program changed it.
        2. Otherwise everything pending is written, REOPEN_INTERVAL after the last attempt; at once if `urgent`.
        """
        if self.write_error is None and not self._is_behind():
            if not self._is_as_left():
                self._write_pending(at_once=True)
        elif urgent or self._clock() - self._tried_at >= REOPEN_INTERVAL:
            self._write_pending(at_once=True)

    def is_durable(self) -> bool:
        """Return True if everything is on disk, after another attempt where the last one is long enough ago."""
        if self.write_error is not None:
            self.maintain()
        return self.write_error is None

    def due(self) -> float:
        """Return the seconds until `maintain` has something to do; infinity while nothing could be lost."""
        if self.write_error is not None or self._is_behind():
            return max(0.0, self._tried_at + REOPEN_INTERVAL - self._clock())
        return CHECK_INTERVAL if self._records.open else float("inf")

    def reload(self) -> None:
        """Try to read the file now, where that failed: see `is_known`."""
        if not self.is_known:
            self._open_file(BUSY_TIMEOUT)

    def take_late_records(self) -> list[EventRecord]:
        """Return, once each, open records that were read only after `open_records` was called."""
        if not self.is_known and self._clock() - self._tried_at >= REOPEN_INTERVAL:
            self.reload()
        late, self._late = self._late, []
        return [record for record in late if record.id in self._records.open]

    def last_of(self, key: str) -> EventRecord | None:
        """Return the newest record of the event of this key, open or closed; None without one.

        The newest one in memory counts if the file has no newer one, or if that cannot be read.
        """
        newest = max(self._records.of(key), key=lambda record: record.id, default=None)
        connection = self._connection
        if connection is None:
            return newest
        try:
            for record_id in rows.newest_ids(connection, 1, key):
                if newest is None or record_id > newest.id:
                    return rows.load(connection, record_id)
        except sqlite3.Error as error:
            self._set_write_error(error)
        except ValueError as error:
            self._say(f"the journal {self._path}: {error}; the event counts as a new one")
        return newest

    def keys_gone_since(self, at: datetime) -> set[str]:
        """Return the keys of the events that were gone at this time or later; none if the file cannot be read."""
        if self._connection is None:
            return set()
        try:
            return rows.keys_gone_since(self._connection, at)
        except sqlite3.Error as error:
            self._set_write_error(error)
            return set()

    def reader(self) -> JournalReader:
        """Return queries for the records as they are now, in the file and in memory."""
        return JournalReader(self._path, self._connection, self._records.pending)

    def set_aside(self, label: str, text: str) -> None:
        """Rename the present file, forget everything that was read from it, and begin a new one.

        For a journal of another VM. A file that cannot be renamed now is not read again; `maintain` and later
        saves rename it. `label` is a part of the new name, such as "other-vm". `text` is the reason for the
        log: the end of the sentence "the journal PATH cannot be used: ...".
        """
        self._close_file()
        self._records.clear()
        for memory in (self._notes, self._notes_pending, self._late):
            memory.clear()
        self._unwanted = UnusableJournal(label, text)
        self._write_pending(at_once=True)

    def prune(self, keep: int) -> None:
        """Delete closed records except the newest `keep`. A pruning that fails is repeated the next time.

        1. Nothing happens if no record was closed since the last pruning, and that kept no more.
        2. Of the closed records that are not on disk yet, only the newest `keep` stay in memory.
        3. The file is left alone in a batch, and while it is not as this process left it, or open for reading
           only.
        """
        if not self._is_to_prune and keep >= self._kept:
            return
        pending = self._records.pending
        closed = sorted(record.id for record in pending if record.closed_at is not None)
        for record_id in closed[: max(0, len(closed) - keep)]:
            pending.discard(record_id)
        file = self._file
        if file is None or file.writer is None or not self._is_as_left() or self._in_batch:
            return
        self._tried_at = self._clock()
        try:
            self._begin(file.connection)
            rows.prune(file.connection, keep)
            self._commit(file.connection)
            self._is_to_prune, self._kept = bool(pending), keep
        except sqlite3.Error as error:
            self._fail(file.connection, error)
        file.note_own_write()

    def close(self) -> None:
        """Write everything pending, and close the file."""
        if self._is_behind() or self._records.open:
            self._write_pending(at_once=True)
        self._close_file()

    @property
    def _connection(self) -> sqlite3.Connection | None:
        return None if self._file is None else self._file.connection

    def _is_behind(self) -> bool:
        """Return True if the file lacks something that this process knows, or was never read."""
        return bool(self._records.pending or self._notes_pending) or not self.is_known

    def _write_pending(self, at_once: bool) -> None:
        """Write everything pending, into another file where this one is broken or missing.

        1. Without a file that is open for writing, everything stays pending.
        2. If SQLite finds the file damaged, it is opened again, which quarantines it, and one more attempt
           follows.
        3. After any other error of the file, everything that was not written stays pending.
        4. Otherwise everything is on disk, except records and notes that cannot be written; these keep the
           write error.
        """
        for _attempt in range(2):
            file = self._ready(at_once)
            if file is None or file.writer is None:
                return
            self._tried_at = self._clock()
            try:
                problem = self._write_all(file.connection, file.writer)
            except sqlite3.Error as error:
                self._fail(file.connection, error)
                if not is_corruption(error):
                    file.note_own_write()
                    return
                at_once = True
                continue
            file.note_own_write()
            if problem is None:
                self._clear_write_error()
            else:
                self._set_write_error(problem)
            return

    def _write_all(self, connection: sqlite3.Connection, writer: RecordWriter) -> Exception | None:
        """Write everything pending; return the last error that concerned one record or note only, or None.

        Raises sqlite3.Error if the file cannot be written.
        """
        problem: Exception | None = None
        if self.write_error is not None:
            self._begin(connection)  # shows whether the file can be written even if nothing is pending
            database.try_to_write(connection)
            connection.execute("ROLLBACK")
        for name, value in list(self._notes_pending.items()):
            try:
                self._begin(connection)
                rows.save_note(connection, name, value)
                self._commit(connection)
                del self._notes_pending[name]
            except PER_RECORD_ERRORS as error:
                _roll_back(connection)
                problem = error
        # one transaction for all; where that fails one for each, the latest first: a large record
        # that finds no room must not keep a small one out
        pending = self._records.pending
        if len(pending) < 2 or not self._write_together(connection, writer):
            for record in reversed(list(pending)):
                try:
                    self._begin(connection)
                    self._write(writer, [record])
                except PER_RECORD_ERRORS as error:
                    _roll_back(connection)
                    problem = error
        return problem

    def _write_together(self, connection: sqlite3.Connection, writer: RecordWriter) -> bool:
        self._begin(connection)
        try:
            self._write(writer, list(self._records.pending))
        except (*PER_RECORD_ERRORS, sqlite3.Error):
            _roll_back(connection)
            return False
        return True

    def _write(self, writer: RecordWriter, records: list[EventRecord]) -> None:
        """Write these pending records, and end the transaction."""
        writer.write(records)
        for record in records:
            self._records.pending.discard(record.id)

    def _commit(self, connection: sqlite3.Connection) -> None:
        """The one place where a change becomes durable: tests kill the process before and after it."""
        connection.execute("COMMIT")

    def _begin(self, connection: sqlite3.Connection) -> None:
        """Begin to write, and wait for other programs only where no wait failed a moment ago."""
        connection.execute(f"PRAGMA busy_timeout = {int(self._busy_timeout() * 1000)}")
        connection.execute("BEGIN IMMEDIATE")

    def _busy_timeout(self) -> float:
        return BUSY_TIMEOUT if self._clock() - self._failed_at >= REOPEN_INTERVAL else 0.0

    def _has_waited(self) -> None:
        if self._busy_timeout():
            self._failed_at = self._tried_at

    def _fail(self, connection: sqlite3.Connection, error: sqlite3.Error) -> None:
        """Undo the transaction, and record that the file could not be written."""
        _roll_back(connection)
        self._has_waited()
        self._set_write_error(error)

    def _is_as_left(self) -> bool:
        """Return True if the open file has the journal's name, and no other program changed its content.

        A file that was opened less than REOPEN_INTERVAL ago may also have changed.
        """
        if self._file is None:
            return False
        state = self._file.state()
        if state is FileState.REPLACED and self._file.writer is not None:
            self._set_write_error("it was moved or removed while it was in use")
        # opening a changed file again shows whether it is damaged; not at each check, because a file
        # system may report changes that no program made
        is_new = self._clock() - self._file.opened_at < REOPEN_INTERVAL
        return state is FileState.UNCHANGED or (state is FileState.CHANGED and is_new)

    def _ready(self, at_once: bool) -> OpenFile | None:
        """Return the file that has the journal's name; opens it if it is time to try.

        1. A file that is open for writing, and is as this process left it, is kept. If it is not as left, it is
           opened again.
        2. A file that is not open for writing is opened again at once (`at_once`), or REOPEN_INTERVAL after the
           last attempt.
        3. Until then it is returned as it is, open for reading only, or None.
        """
        if self._file is not None and self._file.writer is not None:
            if self._is_as_left():
                return self._file
            at_once = True
        if at_once or self._clock() - self._tried_at >= REOPEN_INTERVAL:
            self._open_file(self._busy_timeout())
        return self._file

    def _open_file(self, busy_timeout: float) -> None:
        """Open the file, and read its open records and notes."""
        self._tried_at = self._clock()
        # first, since SQLite's locks belong to the process: closing one connection could take away
        # those of the next
        self._close_file()
        file = self._file = self._opened(busy_timeout)
        if file is None:
            return
        try:
            self._last_id = max(self._last_id, rows.last_id(file.connection))
            self._load_open_records(file.connection)
        except sqlite3.Error as error:
            file.writer = None  # the next attempt opens and reads it again
            self._set_write_error(error)
        self._records.write_all_again()
        self._notes_pending = dict(self._notes)

    def _opened(self, busy_timeout: float) -> OpenFile | None:
        """Return the file open for writing, otherwise for reading: a file on a full disk still has the records.

        1. A file that must not be read (`set_aside`) is renamed first. If that fails, it is not read, and
           counts as known.
        2. The file is opened for writing; a missing or unusable one is created again.
        3. If that fails, it is opened for reading.
        4. If that fails too, the answer is None. Its content counts as known if the file is missing or has no
           records.
        """
        try:
            if self._unwanted is not None:
                database.replace(self._path, self._unwanted, self._say, self._wall())
                self._unwanted = None
            connection = database.open_for_writing(self._path, self._say, self._commit, self._wall(), busy_timeout)
            self.files_opened += 1
            return OpenFile(self._path, connection, RecordWriter(connection, self._commit), self._tried_at)
        except (OSError, sqlite3.Error, UnusableJournal) as error:
            self._has_waited()
            self._set_write_error(error)
        if self._unwanted is not None:
            self.is_known = True  # its content belongs to another VM
            return None
        try:
            connection = database.open_for_reading(self._path, busy_timeout)
            return OpenFile(self._path, connection, None, self._tried_at)
        except (OSError, sqlite3.Error, UnusableJournal) as error:
            self.is_known = self.is_known or database.is_worthless(error)
            return None

    def _load_open_records(self, connection: sqlite3.Connection) -> None:
        """Read the file's open records and notes. Raises sqlite3.Error."""
        self._notes = {**rows.notes(connection), **self._notes}
        found = []
        for record_id in rows.open_ids(connection):
            if record_id in self._records:
                continue
            try:
                found.append(rows.load(connection, record_id))
            except ValueError as error:
                self._set_write_error(error)  # in a file open for reading; otherwise the file was quarantined
        # an event that came back has two open records in the file, which do not supersede each other
        superseded = [record for record in found if self._records.supersedes(record)]
        for record in found:
            if record in superseded:
                self._supersede(record)
                continue
            self._records.open.add(record)
            if self._was_asked:
                self._late.append(record)
        self.is_known = True

    def _supersede(self, record: EventRecord) -> None:
        """Close an open record of an event that has another one in this process: both would recover."""
        now = datetime.fromtimestamp(self._wall(), timezone.utc)
        for step in record.steps:
            if step.state == RUNNING:
                step.state, step.cause, step.ended_at = INTERRUPTED, Cause.JOURNAL_LOST, now
                step.reason = "the journal could not be read when it ended; its result is unknown"
        record.closed_at = now
        reason = "the journal could not be read for a while, and the daemon began another record of this event"
        record.timeline.append(TimelineEntry(now, "superseded", reason))
        self._records.pending.add(record)

    def _close_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _set_write_error(self, reason: object) -> None:
        text = f"the journal {self._path} cannot be written: {reason}; a restart would lose the changes since then"
        if text != self.write_error:
            self._say(text)
        self.write_error = text
        if self.degraded_since is None:
            self.degraded_since = self._clock()
        if self._file is not None and isinstance(reason, sqlite3.Error) and is_corruption(reason):
            self._file.mark_broken()

    def _clear_write_error(self) -> None:
        if self.write_error is not None:
            self._say(f"the journal {self._path} is written again, and is complete")
        self.write_error = self.degraded_since = None


def _roll_back(connection: sqlite3.Connection) -> None:
    with contextlib.suppress(sqlite3.Error):  # SQLite may have done it by itself
        if connection.in_transaction:
            connection.execute("ROLLBACK")
