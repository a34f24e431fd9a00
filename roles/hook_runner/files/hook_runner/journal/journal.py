# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon's memory on disk: every record, before and after each step, so that a restart goes on where the last one ended."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from datetime import datetime, timezone
from typing import Callable, Iterator

from hook_runner.journal import database, rows
from hook_runner.journal.record_index import RecordIndex
from hook_runner.journal.schema import UnusableJournal, is_corruption
from hook_runner.records import INTERRUPTED, RUNNING, Cause, EventRecord, TimelineEntry

# seconds between two attempts to open, or to write, a file that could not be opened or written
REOPEN_INTERVAL = 5.0
# seconds between two looks at the file while a record is open: what was lost with the file is
# written into a new one
CHECK_INTERVAL = 2.0
# seconds that another program may hold the file: at the start, where nothing is known without it,
# and later, when IMDS is asked every second
START_BUSY_TIMEOUT = 5.0
BUSY_TIMEOUT = 0.5

# so many records that were closed last stay in memory, for a file that takes the place of the one
# that has them
RECENT = 10
# so many events are remembered of which an older copy of the file could still have an open record
OWN_KEYS = 1000

# what is wrong with one record only, so that the others can be written
PER_RECORD_ERRORS = (ValueError, OverflowError, sqlite3.DataError, sqlite3.IntegrityError, sqlite3.InterfaceError)


class JournalUnreadable(Exception):
    """The journal cannot be read; the text says which one and why."""


class Journal:
    """Keeps records in a file, and in memory for as long as the file cannot take them.

    Make one with `open` or `read_only`.

    Attributes:
        write_error: a sentence while something is not on disk; None while all is.
        degraded_since: when that began, in seconds of `clock`; None while all is on disk.
        files_opened: how often a file was opened for writing, which may each time be another one.
        unreadable: a sentence for each record that `records` had to leave out.
        is_known: whether the file was read since the start, or held nothing that could be read. An
            empty list of records means nothing before that.
    """

    def __init__(
        self, path: str, say: Callable[[str], None], clock: Callable[[], float], wall: Callable[[], float]
    ) -> None:
        self.write_error: str | None = None
        self.degraded_since: float | None = None
        self.files_opened = 0
        self.unreadable: list[str] = []
        self.is_known = False
        self._path = path
        self._say = say
        self._clock = clock
        self._wall = wall
        self._connection: sqlite3.Connection | None = None
        self._writable = False
        self._may_write = True
        # the file and those beside it as this process left them; None where the next use has to
        # open them anew
        self._left: database.Fingerprint | None = None
        self._is_changed = False
        self._since_checkpoint = 0
        self._attached_at = float("-inf")
        self._tried_at = float("-inf")
        self._failed_at = float("-inf")
        self._last_id = int(wall() * 1000)
        # open records are written anew when the file turns out to be another one
        self._open = RecordIndex()
        self._pending = RecordIndex()
        self._recent = RecordIndex()
        # the events of which this process knows more than a file that comes back
        self._own_keys: dict[str, None] = {}
        # why the file that has the journal's name must not be read, until it has another name
        self._unwanted: UnusableJournal | None = None
        self._in_batch = False
        # whether a record was closed since the last pruning, and how many that kept
        self._is_to_prune, self._kept = True, 0
        self._was_asked = False
        self._late: list[EventRecord] = []
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
        journal._open_file(START_BUSY_TIMEOUT)
        return journal

    @classmethod
    def read_only(cls, path: str) -> Journal:
        """The journal for whoever only looks at it, beside the daemon or without one. Raises JournalUnreadable."""
        journal = cls(path, lambda text: None, time.monotonic, time.time)
        journal.write_error = f"the journal {path} is open for reading only"
        journal._may_write = False
        try:
            journal._connection = database.open_for_reading(path, START_BUSY_TIMEOUT)
        except (OSError, sqlite3.Error, UnusableJournal) as error:
            raise JournalUnreadable(f"the journal {path} cannot be read: {error}") from None
        return journal

    def next_id(self) -> int:
        """A number for a record or a step that no other one ever had.

        Numbers begin at the time in milliseconds, so that they are new even where the journal was
        lost and run folders were not.
        """
        self._last_id += 1
        return self._last_id

    def save(self, record: EventRecord) -> bool:
        """Write the record in one transaction; False where it is in memory only, until the next save that works."""
        # an end that is not written would have its event recovered from once more: it is not put
        # off
        is_end = record.closed_at is not None and record.id in self._open
        self._pending.add(record)
        self._own_keys.pop(record.key, None)
        self._own_keys[record.key] = None
        if record.closed_at is None:
            self._open.add(record)
            self._recent.discard(record.id)
        else:
            self._open.discard(record.id)
            self._recent.add(record)
            self._is_to_prune = True
        self._forget_oldest()
        if not self._in_batch:
            self._write_pending(at_once=is_end)
        return record.id not in self._pending

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """Write what is saved within this in one transaction at its end.

        For many events in one document, since each transaction waits for the disk. Until the end
        `save` returns False for each record. Nothing may begin within it that has to be on disk
        before.
        """
        self._in_batch = True
        try:
            yield
        finally:
            self._in_batch = False
            if self._is_behind():
                self._write_pending(at_once=False)

    def note(self, name: str, value: str) -> None:
        """Remember something that is not about one event, such as this VM's name; kept in memory for as long as the file cannot take it."""
        if self._notes.get(name) != value:
            self._notes[name] = self._notes_pending[name] = value
            if not self._in_batch:
                self._write_pending(at_once=False)

    def noted(self, name: str) -> str:
        """What was noted last under this name, also by an earlier process; "" where nothing was."""
        return self._notes.get(name, "")

    def open_records(self) -> list[EventRecord]:
        """The records of events that are not over, or not recovered from, in the order of their beginning."""
        self._was_asked = True
        return sorted(self._open, key=lambda record: record.id)

    def maintain(self, urgent: bool = False) -> None:
        """See that the file is there, that nothing else has changed it, and that it has all that is pending.

        Call it as often as `due` says. Where another program holds the file, it waits for at most
        PATIENCE seconds in each PAUSE.

        Args:
            urgent: try now, also where the last attempt was a moment ago.
        """
        if not self._may_write:
            return
        if self.write_error is None and not self._is_behind():
            if not self._is_as_left():
                self._write_pending(at_once=True)
        elif urgent or self._clock() - self._tried_at >= REOPEN_INTERVAL:
            self._write_pending(at_once=True)

    def is_durable(self) -> bool:
        """Return True if all is on disk, after another attempt where the last one is long enough ago."""
        if self.write_error is not None:
            self.maintain()
        return self.write_error is None

    def due(self) -> float:
        """Return the seconds until `maintain` has something to do; infinity while nothing could be lost."""
        if self.write_error is not None or self._is_behind():
            return max(0.0, self._tried_at + REOPEN_INTERVAL - self._clock())
        return CHECK_INTERVAL if self._open else float("inf")

    def reload(self) -> None:
        """Try to read the file now, where that failed: see `is_known`."""
        if not self.is_known:
            self._open_file(BUSY_TIMEOUT)

    def take_late_records(self) -> list[EventRecord]:
        """Open records that came to light after `open_records` was asked, since the file could not be read before; each of them once."""
        if not self.is_known and self._clock() - self._tried_at >= REOPEN_INTERVAL:
            self.reload()
        late, self._late = self._late, []
        return [record for record in late if record.id in self._open]

    def last_occurrence(self, key: str) -> int:
        """The number of the last life of the event of this key; 0 where it is unknown."""
        lives = [record.occurrence for record in self._in_memory(key)]
        if self._connection is not None:
            try:
                lives.append(rows.last_occurrence(self._connection, key))
            except sqlite3.Error as error:
                self._set_write_error(error)
        return max(lives, default=0)

    def last_of(self, key: str) -> EventRecord | None:
        """Return the newest record of the event of this key, open or closed, with its steps and timeline; None without one.

        The record can be opened again: set `closed_at` to None and save it.
        """
        newest = max(self._in_memory(key), key=lambda record: record.id, default=None)
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

    def set_aside(self, label: str, text: str) -> None:
        """Keep the present file under another name, forget all that was read from it, and begin a new one.

        For a journal that is not about this VM. A file that cannot be renamed now is not read
        again; `retry` and later saves rename it.

        Args:
            label: part of the new name, such as "other-vm".
            text: why, for the log: the end of the sentence "the journal PATH cannot be used: ...".
        """
        self._close_file()
        for memory in (
            self._open,
            self._pending,
            self._recent,
            self._own_keys,
            self._notes,
            self._notes_pending,
            self._late,
        ):
            memory.clear()
        self._unwanted = UnusableJournal(label, text)
        self._write_pending(at_once=True)

    def records(self, limit: int, event_id: str | None = None) -> list[EventRecord]:
        """The newest records, newest first, of all events or of one (in any letter case). Raises JournalUnreadable."""
        self.unreadable = []
        found = [self.record(record_id) for record_id in self.ids(limit, event_id)]
        return [record for record in found if record is not None]

    def ids(self, limit: int, event_id: str | None = None, before: int | None = None) -> list[int]:
        """The numbers of the newest records, newest first, of all events or of one. Raises JournalUnreadable.

        before: only smaller numbers, to go on where an earlier answer ended.
        """
        key = None if event_id is None else event_id.casefold()
        found = {
            record.id
            for record in self._pending
            if key in (None, record.key) and (before is None or record.id < before)
        }
        try:
            if self._connection is not None:
                found.update(rows.newest_ids(self._connection, limit, key, before))
        except sqlite3.Error as error:
            raise JournalUnreadable(f"the journal {self._path} cannot be read: {error}") from None
        return sorted(found, reverse=True)[:limit]

    def record(self, record_id: int) -> EventRecord | None:
        """A record by its number; None where its content makes no sense, which `unreadable` then says. Raises JournalUnreadable."""
        known = next((record for record in self._pending if record.id == record_id), None)
        if known is not None or self._connection is None:
            return known
        try:
            return rows.load(self._connection, record_id)
        except ValueError as error:
            self.unreadable.append(str(error))
            return None
        except sqlite3.Error as error:
            raise JournalUnreadable(f"the journal {self._path} cannot be read: {error}") from None

    def keys_beginning(self, start: str, limit: int) -> list[str]:
        """The keys of events (their ids with letter case folded) that begin so. Raises JournalUnreadable."""
        keys = {record.key for record in self._pending if record.key.startswith(start)}
        try:
            if self._connection is not None:
                keys.update(rows.keys_beginning(self._connection, start, limit))
        except sqlite3.Error as error:
            raise JournalUnreadable(f"the journal {self._path} cannot be read: {error}") from None
        return sorted(keys)[:limit]

    def prune(self, keep: int) -> None:
        """Forget closed records but the newest `keep`; what cannot be done now is done the next time."""
        if not self._is_to_prune and keep >= self._kept:
            return
        closed = sorted(record.id for record in self._pending if record.closed_at is not None)
        for record_id in closed[: max(0, len(closed) - keep)]:
            self._pending.discard(record_id)
        connection = self._connection
        if connection is None or not self._writable or not self._is_as_left() or self._in_batch:
            return
        self._tried_at = self._clock()
        try:
            self._begin(connection)
            rows.prune(connection, keep)
            self._commit(connection)
            self._is_to_prune, self._kept = bool(self._pending), keep
        except sqlite3.Error as error:
            self._fail(connection, error)
        self._leave()

    def close(self) -> None:
        """Write what is left, and close the file."""
        if self._may_write and (self._is_behind() or self._open):
            self._write_pending(at_once=True)
        self._close_file()

    def _in_memory(self, key: str) -> list[EventRecord]:
        """The records of an event that need not be read from the file."""
        return [*self._open.of(key), *self._pending.of(key), *self._recent.of(key)]

    def _is_behind(self) -> bool:
        """Whether the file lacks something that this process knows, or was never read."""
        return bool(self._pending or self._notes_pending) or not self.is_known

    def _forget_oldest(self) -> None:
        for record in list(self._recent)[: max(0, len(self._recent) - RECENT)]:
            self._recent.discard(record.id)
        while len(self._own_keys) > OWN_KEYS:
            del self._own_keys[next(iter(self._own_keys))]

    def _write_pending(self, at_once: bool) -> None:
        """Write all that is not on disk yet, into another file where this one is broken or gone."""
        for _attempt in range(2):
            connection = self._ready(at_once)
            if connection is None:
                return
            self._tried_at = self._clock()
            try:
                problem = self._write_all(connection)
            except sqlite3.Error as error:
                self._fail(connection, error)
                if not is_corruption(error):
                    self._leave()
                    return
                at_once = True
                continue
            self._leave()
            if problem is None:
                self._clear_write_error()
            else:
                self._set_write_error(problem)
            return

    def _write_all(self, connection: sqlite3.Connection) -> Exception | None:
        """Write all that is pending; returns what was wrong with single ones, raises sqlite3.Error where it is the file."""
        problem: Exception | None = None
        if self.write_error is not None:
            self._begin(connection)  # there may be nothing to write, and then this shows whether something could be
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
        # one wait for the disk for all; where that fails each by itself, the latest first: a large
        # one that finds no room must not keep a small one out
        if len(self._pending) < 2 or not self._write_together(connection):
            for record in reversed(list(self._pending)):
                try:
                    self._begin(connection)
                    self._write(connection, [record])
                except PER_RECORD_ERRORS as error:
                    _roll_back(connection)
                    problem = error
        return problem

    def _write_together(self, connection: sqlite3.Connection) -> bool:
        self._begin(connection)
        try:
            self._write(connection, list(self._pending))
        except (*PER_RECORD_ERRORS, sqlite3.Error):
            _roll_back(connection)
            return False
        return True

    def _write(self, connection: sqlite3.Connection, records: list[EventRecord]) -> None:
        """Write these pending records, and end the transaction."""
        written = [(record, self._put(connection, record)) for record in records]
        self._commit(connection)
        for record, steps in written:
            self._pending.discard(record.id)
            if record.closed_at is None:
                self._entries_written[record.id] = len(record.timeline)
                self._steps_written.update(steps)
            else:
                self._entries_written.pop(record.id, None)
                for step_id in steps:
                    self._steps_written.pop(step_id, None)

    def _put(self, connection: sqlite3.Connection, record: EventRecord) -> dict[int, tuple[rows.Value, ...]]:
        """Write what the open file lacks of a record; returns the rows of its steps."""
        rows.save_record(connection, record)
        steps = {step.id: rows.step_row(record, step) for step in record.steps}
        for step_id, row in steps.items():
            if self._steps_written.get(step_id) != row:
                rows.save_step(connection, row)
        rows.save_entries(connection, record, self._entries_written.get(record.id, 0))
        return steps

    def _commit(self, connection: sqlite3.Connection) -> None:
        """The one place where something becomes lasting: tests stop the world before and after it."""
        connection.execute("COMMIT")

    def _begin(self, connection: sqlite3.Connection) -> None:
        """Begin to write, and wait for other programs only where no wait was in vain a moment ago."""
        connection.execute(f"PRAGMA busy_timeout = {int(self._patience() * 1000)}")
        connection.execute("BEGIN IMMEDIATE")

    def _patience(self) -> float:
        return BUSY_TIMEOUT if self._clock() - self._failed_at >= REOPEN_INTERVAL else 0.0

    def _has_waited(self) -> None:
        if self._patience():
            self._failed_at = self._tried_at

    def _fail(self, connection: sqlite3.Connection, error: sqlite3.Error) -> None:
        """Note that something could not be written."""
        _roll_back(connection)
        self._has_waited()
        self._set_write_error(error)

    def _is_as_left(self) -> bool:
        """Whether the journal's name stands for the file that is open, and nothing else has changed its content.

        While it is open, only this process changes it; readers do not.
        """
        found = database.fingerprint(self._path)
        if self._left is None or found.identities != self._left.identities:
            if self._left is not None and self._writable:
                self._set_write_error("it was moved or removed while it was in use")
            return False
        # to open it tells whether it was damaged; not at each look, should the file system tell of
        # changes that nothing made
        self._is_changed = self._is_changed or found != self._left
        return not self._is_changed or self._clock() - self._attached_at < REOPEN_INTERVAL

    def _leave(self) -> None:
        """Remember how the files are after a transaction, unless something else has changed them in the meantime.

        A transaction changes the log only; the file itself changes when `checkpoint` copies the log
        into it.
        """
        if self._left is None:
            return
        found = database.fingerprint(self._path)
        if found.identities == self._left.identities and found.contents[0] == self._left.contents[0]:
            self._since_checkpoint += 1
            if self._connection is not None and self._since_checkpoint >= database.CHECKPOINT_EVERY:
                self._since_checkpoint = 0
                database.checkpoint(self._connection)
            self._left = database.fingerprint(self._path)

    def _ready(self, at_once: bool) -> sqlite3.Connection | None:
        """The connection if it writes into the file that has the journal's name; opens it if it is time to try."""
        if self._writable:
            if self._is_as_left():
                return self._connection
            at_once = True
        if self._may_write and (at_once or self._clock() - self._tried_at >= REOPEN_INTERVAL):
            self._open_file(self._patience())
        return self._connection if self._writable else None

    def _open_file(self, patience: float) -> None:
        """Open the file; where it cannot be written, at least for reading: a full disk still tells what was done before."""
        self._tried_at = self._attached_at = self._clock()
        # first, since SQLite's locks belong to the process: closing one connection could take away
        # those of the next
        self._close_file()
        try:
            if self._unwanted is not None:
                database.replace(self._path, self._unwanted, self._say, self._wall())
                self._unwanted = None
            self._connection = database.open_for_writing(self._path, self._say, self._commit, self._wall(), patience)
            self._writable = True
            self.files_opened += 1
        except (OSError, sqlite3.Error, UnusableJournal) as error:
            self._has_waited()
            self._set_write_error(error)
            if self._unwanted is not None:
                self.is_known = True  # what it says is not about this VM
                return
            try:
                self._connection = database.open_for_reading(self._path, patience)
            except (OSError, sqlite3.Error, UnusableJournal) as reason:
                self.is_known = self.is_known or database.is_worthless(reason)
                return
        self._left = database.fingerprint(self._path)
        try:
            self._last_id = max(self._last_id, rows.last_id(self._connection))
            self._load_open_records(self._connection)
        except sqlite3.Error as error:
            self._writable = False  # so that it is opened, and read, once more
            self._set_write_error(error)
        for record in (*self._open, *self._recent):
            if record.id not in self._pending:
                self._pending.add(record)
        self._notes_pending = dict(self._notes)

    def _load_open_records(self, connection: sqlite3.Connection) -> None:
        """Learn the file's open records and notes. Raises sqlite3.Error."""
        if self._may_write:
            self._notes = {**rows.notes(connection), **self._notes}
        for record_id in rows.open_ids(connection):
            if record_id in self._open or record_id in self._pending or record_id in self._recent:
                continue
            try:
                record = rows.load(connection, record_id)
            except ValueError as error:
                self._set_write_error(error)  # in a file that cannot be written; another one was kept aside
                continue
            if record.key in self._own_keys or self._open.of(record.key):
                self._supersede(record)
                continue
            self._open.add(record)
            if self._was_asked:
                self._late.append(record)
        self.is_known = True

    def _supersede(self, record: EventRecord) -> None:
        """Close a record of a file that was away: this process began another one for the event, and two would recover twice."""
        now = datetime.fromtimestamp(self._wall(), timezone.utc)
        for step in record.steps:
            if step.state == RUNNING:
                step.state, step.cause, step.ended_at = INTERRUPTED, Cause.JOURNAL_LOST, now
                step.reason = "the journal could not be read, so that nobody knows how it ended"
        record.closed_at = now
        record.timeline.append(
            TimelineEntry(
                now,
                "superseded",
                "the journal could not be read for a while, and the service began another record of this event",
            )
        )
        self._pending.add(record)

    def _close_file(self) -> None:
        connection, self._connection, self._writable = self._connection, None, False
        self._left, self._is_changed = None, False
        self._entries_written.clear()
        self._steps_written.clear()
        if connection is not None:
            try:
                connection.close()
            except sqlite3.Error:
                pass  # what was committed is in the log, whatever became of it

    def _set_write_error(self, reason: object) -> None:
        text = f"the journal {self._path} cannot be written, so that a restart would forget what happens: {reason}"
        if text != self.write_error:
            self._say(text)
        self.write_error = text
        if self.degraded_since is None:
            self.degraded_since = self._clock()
        if isinstance(reason, sqlite3.Error) and is_corruption(reason):
            self._left = None  # so that it is opened anew, which keeps a broken file aside

    def _clear_write_error(self) -> None:
        if self.write_error is not None:
            self._say(f"the journal {self._path} is written again, and has all that happened meanwhile")
        self.write_error = self.degraded_since = None


def _roll_back(connection: sqlite3.Connection) -> None:
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error:
        pass  # SQLite has done it by itself
