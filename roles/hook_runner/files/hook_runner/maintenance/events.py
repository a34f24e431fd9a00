# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Keeps the records of events in step with the documents."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.timestamps import as_utc_text
from hook_runner.maintenance.hook_plan import HookPlan, Host
from hook_runner.maintenance.open_records import OpenRecords
from hook_runner.maintenance.record import NO_EVENT, EventRecord
from hook_runner.records import ACCEPTED, EMERGENCY, STARTED

# events without a maintenance that the state keeps after they are gone
MAX_PAST = 100


class Events:
    """The own events, and those that are only observed."""

    def __init__(self, host: Host, records: OpenRecords) -> None:
        self.host = host
        self._records = records

    @property
    def waiting(self) -> list[EventRecord]:
        """Observed events that affect this VM: the policy holds them, or the last document lacks them."""
        observed = self._records.state.observed.values()
        return [record for record in observed if self.host.is_affected_by(record.event)]

    def compare(self, now: datetime) -> list[str]:
        """Compare the records with the last document; return the keys of the events that are gone, or left by this VM.

        `now` is the time by the server's clock.
        """
        own = {record.key: record for record in self._records.present}
        observed, sightings = self._records.state.observed, self._records.sightings
        gone = []
        for key in dict.fromkeys((*sightings, *observed, *own)):
            record = own.get(key) or observed.get(key)
            sighting = sightings.get(key)
            if sighting is None:
                if record is not None:
                    self._gone(record, now)
                    gone.append(key)
                continue
            event = sighting.event
            if record is None:
                record = observed[key] = EventRecord(event, now, event.event_type, event.status)
                self._records.note(now, "appeared", _about(event), record)
            elif record.event != event:
                self._changed(record, event, now)
            if key in own and self.host.own_name and not self.host.is_affected_by(event):
                self._gone(record, now)
                gone.append(key)
                # from now on it is an event of other VMs
                observed[key] = replace(
                    record,
                    number=NO_EVENT,
                    taken_up_at=None,
                    stage_at_start="",
                    prepared="none",
                    gone_at=None,
                    requested=None,
                )
        return gone

    def take_up(self, record: EventRecord, now: datetime) -> None:
        """Make a waiting event an event of the maintenance, which opens with the first one."""
        del self._records.state.observed[record.key]
        maintenance = self._records.opened(now)
        record.number, record.taken_up_at = self._records.next_number(), now
        maintenance.events.append(record)
        maintenance.given_up_by = ""
        self._records.note(now, "taken-up", _about(record.event), record)
        if record.is_started:
            self._note_start(record, now)

    def _changed(self, record: EventRecord, event: ScheduledEvent, now: datetime) -> None:
        was, record.event = record.event, event
        self._records.has_changed = True
        if (was.event_type, was.status, was.not_before) != (event.event_type, event.status, event.not_before):
            self._records.note(now, "changed", _about(event), record)
        if self.host.is_affected_by(event) and not self.host.is_affected_by(was):
            record.first_status = event.status
        if record.number != NO_EVENT and event.status == "Started" and was.status != "Started":
            self._note_start(record, now)
        asked = record.requested
        if asked is not None and record.approval != ACCEPTED and not asked.holds_for(event):
            record.requested, record.approval, record.approval_by = None, "", ""
            text = "the event changed before IMDS had taken the approval"
            self._records.note(now, "approval-withdrawn", text, record, "warning")

    def _note_start(self, record: EventRecord, now: datetime) -> None:
        """Choose the hooks for the start: those of an emergency if it came without notice and nothing is prepared."""
        maintenance = self._records.opened(now)
        is_prepared = HookPlan(self.host, maintenance, {}, now).is_prepared_before()
        record.stage_at_start = EMERGENCY if record.first_status == "Started" and not is_prepared else STARTED
        self._records.note(now, "started", record.event.event_type, record)

    def _gone(self, record: EventRecord, now: datetime) -> None:
        record.gone_at = now
        self._records.note(now, "gone", f"outcome: {record.outcome}", record)
        if record.number == NO_EVENT:
            state = self._records.state
            del state.observed[record.key]
            state.past = [*state.past, record][-MAX_PAST:]


def _about(event: ScheduledEvent) -> str:
    """Return an event as a clause for the timeline and the log."""
    by = f" by {event.source}" if event.source else ""
    starts = f", not before {as_utc_text(event.not_before)}" if event.not_before is not None else ""
    return f"{event.event_type} {event.status}{by}{starts}"
