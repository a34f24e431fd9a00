# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Adds entries to the timelines of events, in the records and the log."""

from __future__ import annotations

import logging

from azure_scheduled_events.document import escape_surrogates
from hook_runner.clock import ServerClock
from hook_runner.log import LEVELS, with_fields
from hook_runner.record_store import RecordStore
from hook_runner.records import EventRecord, TimelineEntry

log = logging.getLogger(__name__)

# an event that changed every second would fill the disk otherwise; the log has every entry
MAX_TIMELINE_ENTRIES = 1000


def is_stored(record: EventRecord) -> bool:
    """Return True if the store has the event: it affects this VM, or an approval was sent for it."""
    return record.affects_this_vm or record.approval_attempts > 0


class Timeline:
    """Writes the timelines of all events; the log gets one line per entry."""

    def __init__(self, store: RecordStore, clock: ServerClock) -> None:
        self._store, self._clock = store, clock

    def add(self, record: EventRecord, what: str, detail: str, level: str) -> None:
        """Add an entry, log it, and let the store write the record.

        `what` is the keyword of the entry, `detail` one sentence, `level` that of the line in the log.
        """
        if len(record.timeline) < MAX_TIMELINE_ENTRIES or record.closed_at is not None:
            record.timeline.append(TimelineEntry(self._clock.now(), what, escape_surrogates(detail)))
        self.log(record, level, f"{what}: {detail}")
        self.save(record)

    def save(self, record: EventRecord) -> None:
        """Let the store write the record."""
        if is_stored(record):
            self._store.save(record)

    def log(self, record: EventRecord, level: str, text: str) -> None:
        """Log a line about an event without an entry in its timeline."""
        log.log(
            LEVELS[level],
            text,
            extra=with_fields(
                azure_event_id=record.event.event_id,
                azure_event_type=record.event.event_type,
                azure_event_status=record.event.status,
            ),
        )
