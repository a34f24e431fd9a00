# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Faults of the journal's file, and its content."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from pathlib import Path

from hook_runner.journal.reader import JournalReader, JournalUnreadable

FILE_SUFFIXES = ("", "-wal", "-shm")
# (event, STAGE/NAME)
Known = set[tuple[str, str]]


class JournalFaults:
    """Faults of one journal.

    Attributes:
        destroyed_at: Unix time of the last loss of its content; None if it lost none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.destroyed_at: float | None = None
        self._broken_inode = 0
        self._lockers: list[threading.Thread] = []
        self._release = threading.Event()

    def lock(self, seconds: float) -> bool:
        """Hold the write lock for so many seconds; return False if no journal exists."""
        held = threading.Event()
        locker = threading.Thread(target=self._hold, args=(seconds, held), daemon=True)
        locker.start()
        self._lockers.append(locker)
        return held.wait(3)

    def remove(self) -> None:
        for suffix in FILE_SUFFIXES:
            Path(str(self.path) + suffix).unlink(missing_ok=True)
        self.destroyed_at = time.time()

    def overwrite(self, junk: bytes) -> bool:
        """Overwrite the file's beginning, or empty it if ``junk`` is empty; return False if no file exists."""
        try:
            descriptor = os.open(self.path, os.O_WRONLY)
        except FileNotFoundError:
            return False
        try:
            os.pwrite(descriptor, junk, 0) if junk else os.ftruncate(descriptor, 0)
            self._broken_inode = os.fstat(descriptor).st_ino
        finally:
            os.close(descriptor)
        self.destroyed_at = time.time()
        return True

    def heal(self) -> None:
        """Release all locks."""
        self._release.set()
        for locker in self._lockers:
            locker.join()
        self._lockers.clear()
        self._release.clear()

    def known(self) -> Known:
        """Return the content that the next process of the daemon can rely on."""
        try:
            # the next start may find a broken file corrupt, even if a part of it is readable
            return set() if os.stat(self.path).st_ino == self._broken_inode else self.content()
        except OSError:
            return set()

    def content(self) -> Known:
        """Return the events in the journal, each as (event, ""), and the hooks with a run, as (event, hook)."""
        found: Known = set()
        try:
            journal = JournalReader.open(str(self.path))
        except (OSError, JournalUnreadable):
            return found
        try:
            for record in journal.records(10000):
                found.add((record.key, ""))
                found.update((record.key, f"{step.stage}/{step.hook}") for step in record.steps)
        except JournalUnreadable:
            found.clear()
        journal.close()
        return found

    def _hold(self, seconds: float, held: threading.Event) -> None:
        if not self.path.exists():
            return
        try:
            connection = sqlite3.connect(self.path, timeout=2, isolation_level=None)
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error:
            return
        held.set()
        self._release.wait(seconds)
        connection.close()
