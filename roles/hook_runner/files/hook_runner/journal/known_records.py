# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The records that the daemon has in memory, to write them again into another file."""

from __future__ import annotations

from hook_runner.journal.record_index import RecordIndex
from hook_runner.records import EventRecord

# closed records that stay in memory, for a file that replaces the one that has them
RECENT = 10
# events of which an older copy of the file could still have an open record
OWN_KEYS = 1000


class KnownRecords:
    """Records in memory; their number does not grow with the events of the past.

    Attributes:
        open: records that are not closed.
        pending: records of which the file lacks at least a part.
        recent: the records that were closed last.
    """

    def __init__(self) -> None:
        self.open = RecordIndex()
        self.pending = RecordIndex()
        self.recent = RecordIndex()
        # events of which this process knows more than a file that returns
        self._own_keys: dict[str, None] = {}

    def add(self, record: EventRecord) -> None:
        """Take in a record that is to be written."""
        self.pending.add(record)
        self._own_keys.pop(record.key, None)
        self._own_keys[record.key] = None
        if record.closed_at is None:
            self.open.add(record)
            self.recent.discard(record.id)
        else:
            self.open.discard(record.id)
            self.recent.add(record)
        for oldest in list(self.recent)[: max(0, len(self.recent) - RECENT)]:
            self.recent.discard(oldest.id)
        while len(self._own_keys) > OWN_KEYS:
            del self._own_keys[next(iter(self._own_keys))]

    def of(self, key: str) -> list[EventRecord]:
        """Return the records of one event."""
        return [*self.open.of(key), *self.pending.of(key), *self.recent.of(key)]

    def supersedes(self, record: EventRecord) -> bool:
        """Return True if this process has begun its own record of the event that a file has an open record of."""
        return record.key in self._own_keys or bool(self.open.of(record.key))

    def write_all_again(self) -> None:
        """Let every record be pending, for a file that may be another one."""
        for record in (*self.open, *self.recent):
            if record.id not in self.pending:
                self.pending.add(record)

    def clear(self) -> None:
        """Forget everything."""
        for index in (self.open, self.pending, self.recent):
            index.clear()
        self._own_keys.clear()

    def __contains__(self, record_id: int) -> bool:
        return record_id in self.open or record_id in self.pending or record_id in self.recent
