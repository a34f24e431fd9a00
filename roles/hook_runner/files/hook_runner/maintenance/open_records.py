# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The records in memory: the open maintenance with its timeline, the state, and whether they are on the disk."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Mapping

from azure_scheduled_events.printable import escape_surrogates
from azure_scheduled_events.tracking import Observation, Sighting
from hook_runner.log import LEVELS, with_fields
from hook_runner.maintenance.record import Entry, EventRecord, HookRun, Maintenance, State

log = logging.getLogger(__name__)

# one document after the start may come from a backend that lags behind
DOCUMENTS_NEEDED = 2
# an event that changed every second would fill the disk otherwise; the log has every entry
MAX_ENTRIES = 1000


class OpenRecords:
    """What the daemon knows.

    Args:
        last_number: the highest number of a maintenance, an event or a run on the disk and among the units.

    Attributes:
        observation: the last good document of this process, or None before the first one.
        finished: maintenances that are closed, and not in the history yet.
        has_changed: whether something is not on the disk.
        error: how the last write failed, as a sentence; None if it succeeded.
        failing_since: when writes began to fail; None while they succeed.
    """

    def __init__(self, state: State, maintenance: Maintenance | None, last_number: int) -> None:
        self.state = state
        self.maintenance = maintenance
        self.observation: Observation | None = None
        self.finished: list[Maintenance] = []
        self.has_changed = False
        self.error: str | None = None
        self.failing_since: datetime | None = None
        self._last_number = max(last_number, maintenance.last_number if maintenance else 0)
        for record in self.present:  # a kill between two writes leaves an event in both
            state.observed.pop(record.key, None)

    @property
    def is_durable(self) -> bool:
        """Whether the last write succeeded."""
        return self.error is None

    @property
    def is_confirmed(self) -> bool:
        """Whether this process has read enough documents to approve."""
        return self.observation is not None and self.observation.documents >= DOCUMENTS_NEEDED

    def has_listed_type(self, record: EventRecord) -> bool:
        """Return False if the last document gives an event a less severe type, which the tracker has not confirmed."""
        listed = self.observation.document.find(record.event.event_id) if self.observation else None
        return listed is None or listed.event_type == record.event.event_type

    @property
    def sightings(self) -> Mapping[str, Sighting]:
        """The events that are not gone, as the last document shows them, by key."""
        return self.observation.events if self.observation else {}

    @property
    def present(self) -> list[EventRecord]:
        """The own events: those of the maintenance that are not gone."""
        return self.maintenance.present if self.maintenance else []

    @property
    def open_run(self) -> HookRun | None:
        """The hook run that has not ended."""
        return self.maintenance.open_run if self.maintenance else None

    @property
    def known(self) -> list[EventRecord]:
        """The events that are not gone, the own ones first."""
        return [*self.present, *self.state.observed.values()]

    def find(self, key: str) -> EventRecord | None:
        """Return the record of an event that is not gone."""
        own = next((record for record in self.present if record.key == key), None)
        return own or self.state.observed.get(key)

    def next_number(self) -> int:
        """Return a number that no maintenance, event or run has."""
        self._last_number += 1
        return self._last_number

    def number_used(self, number: int) -> None:
        """Note a number of an earlier process."""
        self._last_number = max(self._last_number, number)

    def opened(self, now: datetime) -> Maintenance:
        """Return the open maintenance, a new one if there is none."""
        if self.maintenance is None:
            self.maintenance, self.has_changed = Maintenance(self.next_number(), now), True
        return self.maintenance

    def close(self, maintenance: Maintenance, now: datetime) -> None:
        """End the open maintenance."""
        maintenance.ended = now
        by = maintenance.given_up_by
        text = f"not recovered: {by} gave the recovery up" if by else "recovered"
        self.note(now, "closed", f"{text}; outcome: {maintenance.outcome}", level="error" if by else "notice")
        self.finished.append(maintenance)
        self.maintenance = None

    def note(
        self, now: datetime, what: str, detail: str, record: EventRecord | None = None, level: str = "info"
    ) -> None:
        """Add an entry to the log, and to the timeline of the maintenance unless the event is outside of it."""
        self.has_changed = True
        maintenance = self.maintenance if record is None or record.number else None
        if maintenance is not None and (len(maintenance.timeline) < MAX_ENTRIES or maintenance.ended is not None):
            event_id = record.event.event_id if record else ""
            maintenance.timeline.append(Entry(now, what, event_id, escape_surrogates(detail)))
        self.log(what, detail, record, level)

    def log(self, what: str, detail: str, record: EventRecord | None = None, level: str = "info") -> None:
        """Add an entry to the log alone."""
        fields = {}
        if record is not None:
            event = record.event
            fields = {
                "azure_event_id": event.event_id,
                "azure_event_type": event.event_type,
                "azure_event_status": event.status,
            }
        log.log(LEVELS[level], "%s: %s", what, detail, extra=with_fields(**fields))

    def written(self, error: str | None, now: datetime) -> None:
        """Note that everything is on the disk now (error None), or why it is not."""
        self.error, self.has_changed = error, error is not None
        self.failing_since = None if error is None else self.failing_since or now
