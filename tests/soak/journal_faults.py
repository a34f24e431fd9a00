# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What can happen to the journal's file, and what it holds."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from pathlib import Path

from hook_runner.journal.reader import JournalReader, JournalUnreadable

BESIDE = ("", "-wal", "-shm")
# (event, STAGE/NAME)
Known = set[tuple[str, str]]


class JournalFaults:
    """Faults of one journal.

    Attributes:
        destroyed_at: Unix time of when what it held was taken away last; None where it never was.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.destroyed_at: float | None = None
        self._broken_inode = 0
        self._lockers: list[threading.Thread] = []
        self._release = threading.Event()

    def lock(self, seconds: float) -> bool:
        """Another program holds the write lock for so long; False where there is no journal to lock."""
        held = threading.Event()
        locker = threading.Thread(target=self._hold, args=(seconds, held), daemon=True)
        locker.start()
        self._lockers.append(locker)
        return held.wait(3)

    def remove(self) -> None:
        for suffix in BESIDE:
            Path(str(self.path) + suffix).unlink(missing_ok=True)
        self.destroyed_at = time.time()

    def overwrite(self, junk: bytes) -> bool:
        """Junk at the file's beginning, or nothing at all in it where that is empty; False where there is no file."""
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
        """No lock is held any more."""
        self._release.set()
        for locker in self._lockers:
            locker.join()
        self._lockers.clear()
        self._release.clear()

    def known(self) -> Known:
        """What the next process of the daemon can count on."""
        try:
            # whatever can still be read of a broken file, the next start may find it corrupt
            return set() if os.stat(self.path).st_ino == self._broken_inode else self.content()
        except OSError:
            return set()

    def content(self) -> Known:
        """Which hooks' runs, of which events, the journal holds; (event, "") stands for the event itself."""
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
