# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Records in memory, found by number and by event in constant time."""

from __future__ import annotations

from typing import Iterator

from hook_runner.records import EventRecord


class RecordIndex:
    """A set of records, in the order in which each of them was added last."""

    def __init__(self) -> None:
        self._by_id: dict[int, EventRecord] = {}
        self._by_key: dict[str, dict[int, EventRecord]] = {}

    def add(self, record: EventRecord) -> None:
        """Add the record as the last one."""
        self._by_id.pop(record.id, None)
        self._by_id[record.id] = record
        self._by_key.setdefault(record.key, {})[record.id] = record

    def discard(self, record_id: int) -> None:
        """Remove the record of this number if it is here."""
        record = self._by_id.pop(record_id, None)
        if record is not None:
            same_event = self._by_key[record.key]
            del same_event[record_id]
            if not same_event:
                del self._by_key[record.key]

    def of(self, key: str) -> list[EventRecord]:
        """Return the records of one event."""
        return list(self._by_key.get(key, {}).values())

    def clear(self) -> None:
        """Remove all."""
        self._by_id.clear()
        self._by_key.clear()

    def __contains__(self, record_id: int) -> bool:
        return record_id in self._by_id

    def __iter__(self) -> Iterator[EventRecord]:
        return iter(list(self._by_id.values()))

    def __len__(self) -> int:
        return len(self._by_id)
