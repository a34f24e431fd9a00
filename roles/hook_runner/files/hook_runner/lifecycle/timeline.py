# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Adds entries to the timelines of events, in the records, the log and the journal."""

from __future__ import annotations

import logging

from azure_scheduled_events.document import escape_surrogates
from hook_runner.clock import ServerClock
from hook_runner.journal.journal import Journal
from hook_runner.log import LEVELS, with_fields
from hook_runner.records import EventRecord, TimelineEntry

log = logging.getLogger(__name__)

# an event that changed every second would fill the disk otherwise; the log has every entry
MAX_TIMELINE_ENTRIES = 1000


def is_journalled(record: EventRecord) -> bool:
    """Return True if the journal stores the event: it affects this VM, or this VM approved it."""
    return record.affects_this_vm or bool(record.approval)


class Timeline:
    """Writes the timelines of all events; the log gets one line per entry."""

    def __init__(self, journal: Journal, clock: ServerClock) -> None:
        self._journal, self._clock = journal, clock

    def add(self, record: EventRecord, what: str, detail: str, level: str) -> bool:
        """Add an entry, log it, and save the record; return False if the journal cannot be written.

        `what` is the keyword of the entry, `detail` one sentence, `level` that of the line in the log.
        """
        if len(record.timeline) < MAX_TIMELINE_ENTRIES or record.closed_at is not None:
            record.timeline.append(TimelineEntry(self._clock.now(), what, escape_surrogates(detail)))
        self.log(record, level, f"{what}: {detail}")
        return self._journal.save(record) if is_journalled(record) else True

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
