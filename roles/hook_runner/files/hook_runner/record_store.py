# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon's records on disk: written after each result and before each effect that relies on it.

The directory has the files of the records (record_files.py) and a marker: the empty file `clean`, which is called
`stale` from the first write that fails, or that replaces a maintenance which cannot be read, until the next good one.
To rename it needs no space.
"""

from __future__ import annotations

import contextlib
import glob
import os
from datetime import datetime
from typing import Callable

from azure_scheduled_events import durable_file
from azure_scheduled_events.tracking import Tracker
from hook_runner import record_files
from hook_runner.clock import wall_clock
from hook_runner.maintenance.open_records import OpenRecords
from hook_runner.maintenance.record import Maintenance, State
from hook_runner.permissions import make_folder
from hook_runner.record_files import HISTORY, OPEN, STATE, Stored, name_of

CLEAN, STALE = "clean", "stale"
# the folder of all that this VM cannot use
ASIDE = "set-aside"


class RecordStore:
    """Keeps the records on disk. Call `load` first.

    What cannot be written stays in memory, and each `write` tries again.

    Args:
        directory: where the files are; it is created if it is missing.
        boot: identifies this boot of the host; "" if that is unknown.
        say: logs a sentence.
        now: aware UTC time.

    Attributes:
        records: those that `write` writes.
        tracker: its memory is written, too.
        is_incomplete: whether the records that were found at the start may lack events and runs.
        last_number: the highest number in the files at the start.
    """

    def __init__(
        self, directory: str, boot: str, say: Callable[[str], None], now: Callable[[], datetime] = wall_clock
    ) -> None:
        self.directory = directory
        self.is_incomplete = False
        self.last_number = 0
        self.boot, self._say, self._now = boot, say, now
        # what the next write moves away: names below the directory
        self._unusable: list[str] = []
        self._begin(State(), None)

    def load(self) -> None:
        """Read everything. It never fails: a file that cannot be used is set aside."""
        try:
            found = record_files.stored(self.directory, 1)
        except OSError as error:
            names = () if isinstance(error, FileNotFoundError) else (STATE, OPEN)
            found = Stored([], State(), {name: f"{self._path(name)} cannot be used: {error}" for name in names}, None)
        for sentence in found.unreadable.values():
            self._say(f"{sentence}; it is moved to {ASIDE}")
        self._unusable = list(found.unreadable)
        self.is_incomplete = OPEN in self._unusable or os.path.exists(self._path(STALE))
        self.last_number = max((each.last_number for each in found.maintenances), default=0)
        maintenance = found.open
        is_closed = maintenance is not None and maintenance.ended is not None
        self._begin(found.state, None if is_closed else maintenance)
        if maintenance is not None and is_closed:
            self.records.finished.append(maintenance)  # a kill came before the rename

    def _begin(self, state: State, maintenance: Maintenance | None) -> None:
        # numbers begin at the time in milliseconds; therefore they are new even if files were lost
        last_number = max(int(self._now().timestamp() * 1000), self.last_number)
        self.records = OpenRecords(state, maintenance, last_number)
        self.records.has_changed = True  # the first write shows whether the disk takes it
        self.tracker = Tracker([record.event for record in self.records.known], state.returned, state.gone)

    def write(self) -> bool:
        """Write everything; return True if it is on disk then."""
        try:
            self._write_all()
        except OSError as error:
            self._note_failure(error)
            return False
        if not self.records.is_durable:
            self._say(f"{self.directory}: records are written again, and are complete")
        self.records.written(None, self._now())
        return True

    def prune(self, keep: int) -> None:
        """Remove the oldest maintenances of the history except `keep`."""
        with contextlib.suppress(OSError):  # the next call tries again
            for number in record_files.numbers(self._path(HISTORY))[:-keep]:
                os.unlink(self._path(name_of(number)))

    def begin_anew(self, reason: str) -> None:
        """Set everything aside, and begin without it; ``reason``: why this VM cannot use it, for the log."""
        self._say(f"{self.directory}: {reason}; its content is moved to {ASIDE}")
        self._begin(State(), None)
        # the state last: by it the next process notices what this one could not finish
        self._unusable = [OPEN, HISTORY, STATE]
        self.write()

    def set_aside(self) -> list[str]:
        """Return the paths of what was set aside, oldest first."""
        return sorted(glob.glob(os.path.join(glob.escape(self._path(ASIDE)), "*")))

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def _write_all(self) -> None:
        """Write everything, and rename the marker. Raises OSError."""
        self._make_folder(self.directory)
        self._set_unusable_aside()
        self._make_folder(self._path(HISTORY))
        while self.records.finished:
            maintenance = self.records.finished[0]
            record_files.write(self._path(OPEN), maintenance)
            self._move(OPEN, name_of(maintenance.number))
            self.records.finished.pop(0)
        if self.records.maintenance is not None:
            record_files.write(self._path(OPEN), self.records.maintenance)
        state = self.records.state
        state.returned, state.gone = tuple(sorted(self.tracker.returned)), self.tracker.gone
        record_files.write(self._path(STATE), state)
        self._mark(CLEAN)

    def _set_unusable_aside(self) -> None:
        """Move what cannot be used to a new folder. Raises OSError."""
        if not self._unusable:
            return
        if OPEN in self._unusable and self.records.maintenance is not None:
            self._mark(STALE)  # if this process is killed before that one is written, the next one has to recover, too
        aside = f"{ASIDE}/{self._now():%Y%m%dT%H%M%SZ}"
        os.makedirs(self._path(aside), 0o700, exist_ok=True)
        while self._unusable:
            name = self._unusable[0]
            with contextlib.suppress(FileNotFoundError):  # an administrator has removed it
                self._move(name, f"{aside}/{os.path.basename(name)}")
            self._unusable.pop(0)

    def _make_folder(self, path: str) -> None:
        if not os.path.isdir(path):
            make_folder(path, 0o700)
            durable_file.sync_folder(os.path.dirname(path))

    def _move(self, name: str, to: str) -> None:
        os.replace(self._path(name), self._path(to))
        for folder in {os.path.dirname(self._path(each)) for each in (name, to)}:
            durable_file.sync_folder(folder)

    def _note_failure(self, error: OSError) -> None:
        where = error.filename or self.directory
        text = f"{where} cannot be written: {error.strerror or error}; a restart would lose the changes since then"
        if text != self.records.error:
            self._say(text)
        self.records.written(text, self._now())
        with contextlib.suppress(OSError):  # a read-only disk keeps the old name
            self._mark(STALE)

    def _mark(self, name: str) -> None:
        """Give the marker this name; create it if it is missing. Raises OSError."""
        markers = [each for each in (CLEAN, STALE) if os.path.exists(self._path(each))]
        if markers == [name]:
            return
        for each in markers:
            os.replace(self._path(each), self._path(name))
        if not markers:
            os.close(os.open(self._path(name), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        durable_file.sync_folder(self.directory)
