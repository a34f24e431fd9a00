# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Faults of the files with the daemon's records, and their content."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from hook_runner import record_files
from support.daemon.small_disk import program_on_full_disk

# (event, STAGE/NAME)
Known = set[tuple[str, str]]


class RecordFaults:
    """Faults of one directory.

    Attributes:
        destroyed_at: Unix time of the last loss of its content; None if it lost none.
    """

    def __init__(self, directory: Path, flag: Path) -> None:
        self.directory = directory
        self.destroyed_at: float | None = None
        self._flag = flag
        self._timers: list[threading.Timer] = []

    def program(self) -> str:
        """Return Python code for the daemon's process, by which `fill` has an effect."""
        return program_on_full_disk(str(self.directory), str(self._flag))

    def fill(self, seconds: float) -> None:
        """Let the disk be full for so many seconds."""
        self._flag.touch()
        timer = threading.Timer(seconds, self._flag.unlink, [True])
        timer.daemon = True
        timer.start()
        self._timers.append(timer)

    def remove(self) -> None:
        for path in self.directory.glob("**/*.json"):
            path.unlink(missing_ok=True)
        self.destroyed_at = time.time()

    def overwrite(self, junk: bytes) -> bool:
        """Replace the content of all files; return False if there are none."""
        paths = list(self.directory.glob("**/*.json"))
        for path in paths:
            if path.exists():
                path.write_bytes(junk)
        self.destroyed_at = time.time() if paths else self.destroyed_at
        return bool(paths)

    def heal(self) -> None:
        """Let the disk have room again."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._flag.unlink(missing_ok=True)

    def content(self) -> Known:
        """Return the events in the records, each as (event, ""), and the hooks with a run, as (event, hook)."""
        try:
            stored = record_files.stored(str(self.directory))
        except OSError:
            return set()
        found = {(record.key, "") for record in (*stored.state.observed.values(), *stored.state.past)}
        for maintenance in stored.maintenances:
            keys = {record.number: record.key for record in maintenance.events}
            found |= {(key, "") for key in keys.values()}
            found |= {(keys.get(run.event, ""), run.title) for run in maintenance.runs}
        return found
