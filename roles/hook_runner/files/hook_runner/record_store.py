# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon's records on disk: written after each result and before each effect that relies on it.

The directory has the files of the records (record_files.py), `state.json`, and a marker: the empty file `clean`, which
is called `stale-BOOT` from the first write that fails until the next good one. To rename it needs no space.
"""

from __future__ import annotations

import contextlib
import os
from datetime import datetime
from typing import Any, Callable, TypeVar

from azure_scheduled_events import durable_file
from azure_scheduled_events.tracking import UNLISTED
from hook_runner import record_files
from hook_runner.clock import wall_clock
from hook_runner.permissions import make_folder, trusted_owners
from hook_runner.record_files import HISTORY, OPEN, name_of
from hook_runner.records import OK, EventRecord, TimelineEntry

STATE = "state.json"
CLEAN, STALE = "clean", "stale-"
# the folder of all that this VM cannot use
ASIDE = "set-aside"

_Content = TypeVar("_Content")


class RecordStore:
    """Keeps the records of events, and values that do not belong to one event. Call `load` first.

    What cannot be written stays in memory, and each `write` tries again.

    Args:
        directory: where the records are; it is created if it is missing.
        boot: identifies this boot of the host; "" if that is unknown.
        say: logs a sentence.
        now: aware UTC time.

    Attributes:
        error: a sentence while something is not on disk; None while everything is.
        failing_since: when that began; None while everything is on disk.
    """

    def __init__(
        self, directory: str, boot: str, say: Callable[[str], None], now: Callable[[], datetime] = wall_clock
    ) -> None:
        self.directory = directory
        self.error: str | None = None
        self.failing_since: datetime | None = None
        self._boot, self._say, self._now = boot, say, now
        self._last_id = 0
        self._open: dict[int, EventRecord] = {}
        self._state: dict[str, Any] = {}
        # what the next write writes
        self._pending: dict[int, EventRecord] = {}
        self._is_state_pending = False
        # what the next write moves away: names below the directory
        self._unusable: list[str] = []

    def load(self) -> None:
        """Read everything, and write it once, which shows whether the disk takes it. It never fails: see `error`.

        1. A file that cannot be used is set aside.
        2. With a marker of another boot, no success in the records counts: something may have undone it later.
        3. With any marker, or if a record cannot be used, events may be missing: see `add_lost`.
        """
        for number in self._usable(OPEN, record_files.numbers) or ():
            record = self._usable(name_of(OPEN, number), _read_record)
            if record is not None:
                self._open[number] = record
        doubts = [f"{name} cannot be used" for name in self._unusable]
        runs = [step.id for record in self._open.values() for step in record.steps]
        self._last_id = max([0, *self._open, *runs, *(self._usable(HISTORY, record_files.numbers) or ())])
        self._state = self._usable(STATE, record_files.read) or {}
        stale = [name for name in self._markers() if name != CLEAN]
        if stale:
            doubts.append("the disk took no records when the last daemon ended")
        if any(name != STALE + self._boot or not self._boot for name in stale):
            self._distrust()
        self._rewrite()
        if doubts:
            self.add_lost("; ".join(doubts))
        self.write()

    def add_lost(self, reason: str) -> None:
        """Add a record that stands for events without one: the host recovers when documents confirm their end.

        ``reason``: why there may be such events, for the log.
        """
        if any(record.is_of_lost_records and record.gone_at is None for record in self.open_records()):
            return
        self._say(f"{self.directory}: {reason}; recover hooks run when no event of this VM is left")
        number = self.next_id()
        record = EventRecord(number, 1, UNLISTED._replace(event_id=f"unknown-{number}"), self._now())
        record.affects_this_vm = record.is_of_lost_records = True
        record.timeline.append(TimelineEntry(record.first_seen, "unknown", reason))
        self.save(record)

    def next_id(self) -> int:
        """Return a number for a record or a run that no other one ever had.

        Numbers begin at the time in milliseconds; therefore they are new even if files were lost.
        """
        self._last_id = max(self._last_id + 1, int(self._now().timestamp() * 1000))
        return self._last_id

    def open_records(self) -> list[EventRecord]:
        """Return the records that are not closed, oldest first."""
        return [record for _number, record in sorted(self._open.items()) if record.closed_at is None]

    def save(self, record: EventRecord) -> None:
        """Let the next `write` write this record; a closed one moves to the history."""
        self._open[record.id] = self._pending[record.id] = record

    def note(self, name: str, value: Any) -> None:
        """Let the next `write` write a JSON value that does not belong to one event, such as this VM's name."""
        if self._state.get(name) != value:
            self._state[name] = value
            self._is_state_pending = True

    def noted(self, name: str, kind: type[_Content]) -> _Content | None:
        """Return the value that was noted last, also by an earlier process; None without one of this type."""
        value = self._state.get(name)
        return value if isinstance(value, kind) else None

    def write(self) -> bool:
        """Write everything that is not on disk; return True if everything is then."""
        if self.error is None and not self._pending and not self._is_state_pending:
            return True
        try:
            self._write_all()
        except OSError as error:
            self._note_failure(error)
            return False
        if self.error is not None:
            self._say(f"{self.directory}: records are written again, and are complete")
        self.error = self.failing_since = None
        return True

    def prune(self, keep: int) -> None:
        """Write everything, and remove the oldest records of the history except `keep`."""
        if self.write():
            with contextlib.suppress(OSError):  # the next call tries again
                for number in record_files.numbers(self._path(HISTORY))[:-keep]:
                    os.unlink(self._path(name_of(HISTORY, number)))

    def begin_anew(self, reason: str) -> None:
        """Set everything aside, and begin without it; ``reason``: why this VM cannot use it, for the log."""
        self._say(f"{self.directory}: {reason}; its content is moved to {ASIDE}")
        self._open.clear()
        self._pending.clear()
        self._state = {}
        self._rewrite()
        # the state last: by it the next process notices what this one could not finish
        self._unusable = [OPEN, HISTORY, STATE]
        self.write()

    def set_aside(self) -> list[str]:
        """Return the paths of what was set aside, oldest first."""
        try:
            return [self._path(f"{ASIDE}/{name}") for name in sorted(os.listdir(self._path(ASIDE)))]
        except OSError:
            return []

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def _usable(self, name: str, read: Callable[[str], _Content]) -> _Content | None:
        """Return the content of a file or folder; None if there is none that can be used."""
        try:
            return read(self._path(name))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self._say(f"{self._path(name)} cannot be used: {error}; it is moved to {ASIDE}")
            self._unusable.append(name)
            return None

    def _distrust(self) -> None:
        for record in self.open_records():
            for step in record.steps:
                if step.state == OK:
                    step.void = "the disk took no records at the end of that boot"

    def _rewrite(self) -> None:
        """Let the next write write everything."""
        self._pending.update(self._open)
        self._is_state_pending = True

    def _write_all(self) -> None:
        """Write everything, and rename the marker. Raises OSError."""
        self._make_folder(self.directory)
        self._move_unusable()
        self._make_folder(self._path(OPEN))
        self._make_folder(self._path(HISTORY))
        if self._is_state_pending:
            record_files.write(self._path(STATE), self._state)
            self._is_state_pending = False
        for number, record in list(self._pending.items()):
            record_files.write(self._path(name_of(OPEN, number)), record_files.to_data(record))
            if record.closed_at is not None:
                self._move(name_of(OPEN, number), name_of(HISTORY, number))
                del self._open[number]
            del self._pending[number]
        self._mark(CLEAN)

    def _make_folder(self, path: str) -> None:
        """Make a folder; if it was missing, everything is to be written again. Raises OSError."""
        if not os.path.isdir(path):
            make_folder(path, 0o700, trusted_owners())
            durable_file.sync_folder(os.path.dirname(path))
            self._rewrite()

    def _move_unusable(self) -> None:
        """Move what cannot be used into a new folder. Raises OSError."""
        if not self._unusable:
            return
        # a process that is killed now leaves the marker: the next one has to recover, too
        self._mark_stale()
        aside = f"{ASIDE}/{self._now():%Y%m%dT%H%M%SZ}"
        os.makedirs(self._path(aside), 0o700, exist_ok=True)
        while self._unusable:
            with contextlib.suppress(FileNotFoundError):
                self._move(self._unusable[0], f"{aside}/{os.path.basename(self._unusable[0])}")
            self._unusable.pop(0)

    def _move(self, name: str, to: str) -> None:
        os.replace(self._path(name), self._path(to))
        for folder in {os.path.dirname(self._path(each)) for each in (name, to)}:
            durable_file.sync_folder(folder)

    def _note_failure(self, error: OSError) -> None:
        where = error.filename or self.directory
        text = f"{where} cannot be written: {error.strerror or error}; a restart would lose the changes since then"
        if text != self.error:
            self._say(text)
        self.error = text
        if self.failing_since is None:
            self.failing_since = self._now()
        with contextlib.suppress(OSError):  # a read-only disk keeps the old name
            self._mark_stale()

    def _markers(self) -> list[str]:
        try:
            return [name for name in os.listdir(self.directory) if name == CLEAN or name.startswith(STALE)]
        except OSError:
            return []

    def _mark_stale(self) -> None:
        if self._markers() in ([], [CLEAN]):  # else that of an earlier boot stays
            self._mark(STALE + self._boot)

    def _mark(self, name: str) -> None:
        """Give the marker this name; create it if it is missing. Raises OSError."""
        markers = self._markers()
        if markers == [name]:
            return
        for each in markers:
            os.replace(self._path(each), self._path(name))
        if not markers:
            os.close(os.open(self._path(name), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        durable_file.sync_folder(self.directory)


def _read_record(path: str) -> EventRecord:
    record = record_files.from_data(record_files.read(path))
    if os.path.basename(path) != f"{record.id}.json":
        raise ValueError(f"it has the number {record.id}")
    return record
