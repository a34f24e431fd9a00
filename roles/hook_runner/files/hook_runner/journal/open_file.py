# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The journal's file while the daemon has it open, and whether another program has changed it."""

from __future__ import annotations

import contextlib
import sqlite3
from enum import Enum

from hook_runner.journal import database
from hook_runner.journal.record_writer import RecordWriter


class FileState(Enum):
    """The state of the file, compared with that after the last write of this process."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"  # another program wrote into it
    REPLACED = "replaced"  # it was moved or removed; another file may have its name
    BROKEN = "broken"  # SQLite found its content damaged


class OpenFile:
    """The open file. Only this process writes it; readers do not change it.

    `writer` is None where the file is open for reading only. `opened_at` is in monotonic seconds.
    """

    def __init__(
        self, path: str, connection: sqlite3.Connection, writer: RecordWriter | None, opened_at: float
    ) -> None:
        self.connection = connection
        self.writer = writer
        self.opened_at = opened_at
        self._path = path
        # the file and those beside it as this process left them
        self._left = database.fingerprint(path)
        self._is_changed = False
        self._is_broken = False
        self._since_checkpoint = 0

    def state(self) -> FileState:
        """Compare the files with those that this process left."""
        if self._is_broken:
            return FileState.BROKEN
        found = database.fingerprint(self._path)
        if found.identities != self._left.identities:
            return FileState.REPLACED
        self._is_changed = self._is_changed or found != self._left
        return FileState.CHANGED if self._is_changed else FileState.UNCHANGED

    def mark_broken(self) -> None:
        """Remember that SQLite found the content damaged; the file has to be opened again, which quarantines it."""
        self._is_broken = True

    def note_own_write(self) -> None:
        """Remember the files as they are after a transaction, unless another program has changed them since.

        A transaction changes the log only; the file itself changes when `checkpoint` copies the log
        into it.
        """
        if self._is_broken:
            return
        found = database.fingerprint(self._path)
        if found.identities == self._left.identities and found.contents[0] == self._left.contents[0]:
            self._since_checkpoint += 1
            if self._since_checkpoint >= database.CHECKPOINT_EVERY:
                self._since_checkpoint = 0
                database.checkpoint(self.connection)
            self._left = database.fingerprint(self._path)

    def close(self) -> None:
        """Close the connection. The log keeps everything that was committed, even if closing fails."""
        with contextlib.suppress(sqlite3.Error):
            self.connection.close()
