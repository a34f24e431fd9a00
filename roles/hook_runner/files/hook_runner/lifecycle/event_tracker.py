# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Compares documents with the records of events: events appear, change, are missing, and are over."""

from __future__ import annotations

from datetime import datetime, timedelta

from azure_scheduled_events.changes import ABSENCES_NEEDED, GONE, Change, changes
from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.event_types import severity
from azure_scheduled_events.identity import affects
from azure_scheduled_events.timestamps import as_utc_text
from hook_runner.clock import ServerClock
from hook_runner.journal.journal import Journal
from hook_runner.known_resources import with_known_resources, with_leaving_vms
from hook_runner.lifecycle.approvals import Approver
from hook_runner.lifecycle.runtime import Runtime
from hook_runner.lifecycle.stage_runner import StageRunner
from hook_runner.lifecycle.timeline import Timeline
from hook_runner.records import CANCELLED_OR_MISSED, COMPLETED, RECOVER, SKIPPED, EventRecord

# seconds in which an event that comes back is the same occurrence
REAPPEAR_WITHIN = 60.0
NOT_LISTED = "it is not listed any more"
NOT_AFFECTED = "it does not affect this VM any more"


class EventTracker:
    """Keeps the records of the events that are listed, or whose recovery is not finished.

    The journal has the earlier records of an event. Each change gets an entry in the timeline. The approver
    withdraws the approvals of changed events, and the stage runner adapts their hooks.
    """

    def __init__(
        self,
        runtime: Runtime,
        journal: Journal,
        clock: ServerClock,
        timeline: Timeline,
        approver: Approver,
        stage_runner: StageRunner,
    ) -> None:
        self.records: list[EventRecord] = []
        self._runtime = runtime
        self._journal = journal
        self._clock = clock
        self._timeline = timeline
        self._approver = approver
        self._stage_runner = stage_runner
        # the newest record of each event, closed ones too as long as the event may come back
        self._by_key: dict[str, EventRecord] = {}
        # the events that this VM has left a moment ago, as the last document lists them
        self._left: dict[str, ScheduledEvent] = {}

    @property
    def has_left_event(self) -> bool:
        """True if the last document lists an event that this VM has left a moment ago; a later one shows it again."""
        return bool(self._left)

    def add(self, record: EventRecord) -> None:
        """Add a record as the newest one of its event."""
        self.records.append(record)
        self._by_key[record.key] = record

    def add_journalled(self, record: EventRecord) -> None:
        """Add a record of the journal in place of one of the same event that was never journalled."""
        self.records[:] = [other for other in self.records if other.key != record.key or other.gone_at is not None]
        self.add(record)

    def clear(self) -> None:
        """Forget all records."""
        self.records.clear()
        self._by_key.clear()
        self._left.clear()

    def drop_closed(self) -> None:
        """Remove the closed records; the event of one may still come back."""
        self.records[:] = [record for record in self.records if record.closed_at is None]

    def forget_ended(self) -> None:
        """Drop the closed records of events whose next occurrence would be another one."""
        limit = self._clock.now() - timedelta(seconds=REAPPEAR_WITHIN)
        for record in [
            record for record in self._by_key.values() if record.closed_at is not None and record.closed_at < limit
        ]:
            del self._by_key[record.key]

    def compare(self, document: EventDocument) -> None:
        """Update the records from the document, and create records of new events.

        1. Resources in no readable form are replaced by the earlier ones. A VM that is no longer named stays in
           its event until it counts as gone.
        2. An event without a record, or whose record is over, appears (`_appeared`). An event that is missing
           counts one absence, unless the document is incomplete. Any other change is taken over (`_changed`).
        3. An event that affected this VM and now is known to name only other VMs counts one absence as well,
           unless the document is incomplete. For all other listed events the count begins again.
        """
        present = {record.key: record for record in self.records if record.gone_at is None}
        left, self._left = self._left, {}
        listed = self._with_known_resources(document, present, left)
        document = self._with_leaving_vms(listed, present)
        for change in changes(EventDocument(None, tuple(record.event for record in present.values())), document):
            record = present.get(change.event.key)
            if record is None:
                self._appeared(change.event, left.get(change.event.key), document.complete)
            elif change.kind == GONE:
                self._absent(record, NOT_LISTED)
            else:
                self._changed(record, change)
        for event in listed.events:
            record = present.get(event.key)
            if record is None:
                continue
            if not (record.affects_this_vm and self._is_for_others(event)):
                record.absences = 0
            elif listed.complete:
                self._absent(record, NOT_AFFECTED)

    def _with_known_resources(
        self, document: EventDocument, present: dict[str, EventRecord], left: dict[str, ScheduledEvent]
    ) -> EventDocument:
        """Return the document with the earlier Resources of events that it gives in no readable form."""
        known = {**left, **{key: record.event for key, record in present.items()}}
        document, taken = with_known_resources(document, known)
        for key, record in present.items():
            record.resources_unknown = key in taken
        return document

    def _with_leaving_vms(self, document: EventDocument, present: dict[str, EventRecord]) -> EventDocument:
        """Return the document with the earlier VMs of its events that are not gone."""
        events = []
        for event in document.events:
            record = present.get(event.key)
            if record is not None:
                event, record.leaving = with_leaving_vms(event, record.event, record.leaving, document.complete)
            events.append(event)
        return document._replace(events=tuple(events))

    def _is_for_others(self, event: ScheduledEvent) -> bool:
        """Return True if it is known that the event does not affect this VM."""
        return self._runtime.own_name is not None and not affects(event, self._runtime.own_name)

    def _appeared(self, event: ScheduledEvent, left: ScheduledEvent | None, is_complete: bool) -> None:
        """Begin or continue a record.

        `left` is the event as the document before listed it, if this VM had left the event.

        1. While this VM's name is unknown, nothing happens; the next document shows the event again.
        2. An event that was over at most REAPPEAR_WITHIN seconds ago comes back as the same occurrence. If it
           affected this VM and now names only others, it stays over; it is remembered as left.
        3. Any other event gets a new record, with the next number of an occurrence.
        """
        if self._runtime.own_name is None:
            return  # unknown whether it affects this VM; the next document shows it again
        earlier = self._by_key.get(event.key) or self._journal.last_of(event.key)
        now = self._clock.now()
        if (
            earlier is not None
            and earlier.gone_at is not None
            and (now - earlier.gone_at).total_seconds() <= REAPPEAR_WITHIN
        ):
            if earlier.affects_this_vm and self._is_for_others(event):
                self._left[event.key] = event  # for this VM it is over
            else:
                event, leaving = with_leaving_vms(event, left or earlier.event, {}, is_complete)
                self._came_back(earlier, event, leaving, now)
            return
        event, leaving = with_leaving_vms(event, left or event, {}, is_complete)
        occurrence = 1 if earlier is None else earlier.occurrence + 1
        record = EventRecord(self._journal.next_id(), occurrence, event, now)
        record.leaving = leaving
        record.affects_this_vm = affects(event, self._runtime.own_name)
        self.add(record)
        self._timeline.add(record, "appeared", self._summary(record), "notice" if record.affects_this_vm else "info")
        if occurrence > 1 and record.affects_this_vm:
            self._timeline.add(
                record, "anomaly", "an event of this id was over before; this is another occurrence", "warning"
            )

    def _came_back(self, record: EventRecord, event: ScheduledEvent, leaving: dict[str, int], now: datetime) -> None:
        """Continue an event that was missing for a short time: the backends of IMDS had differed."""
        away = 0.0 if record.gone_at is None else (now - record.gone_at).total_seconds()
        if record.closed_at is not None:
            self.add(record)
        record.gone_at, record.closed_at, record.outcome = None, None, ""
        record.came_back_at, record.absences, record.leaving = now, 0, leaving
        self._timeline.add(
            record,
            "came-back",
            f"it is listed again after {away:.0f} s, and goes on as the same occurrence",
            "warning" if record.affects_this_vm else "info",
        )
        self._stage_runner.void_after_reboot(record)  # it was over when the host started
        for change in changes(EventDocument(None, (record.event,)), EventDocument(None, (event,))):
            self._changed(record, change)

    def _changed(self, record: EventRecord, change: Change) -> None:
        """Take over a change of a listed event, and note it in the timeline.

        1. The first time that the event is Started, it counts as started from now on. A step back from Started
           is noted as an anomaly; it still counts as started.
        2. A more severe type is noted: hooks for it that have not run will run.
        3. An approval that IMDS has not accepted, or an operator's request for one, is withdrawn if a field
           changed that was evaluated for it.
        4. Until the event has started, a change of NotBefore adapts the prepare hooks.
        5. An event whose Resources now name this VM affects it from now on.
        """
        before, record.event = record.event, change.event
        if change.event.status == "Started" and not record.seen_started:
            record.seen_started = True
            self._timeline.add(record, "started", self._summary(record), "notice")
        else:
            text = ", ".join(
                f"{name}: {_shown(before, name)} -> {_shown(change.event, name)}" for name in change.fields
            )
            self._timeline.add(record, "changed", text, "notice" if record.affects_this_vm else "info")
        if before.status == "Started" and change.event.status != "Started":
            self._timeline.add(
                record,
                "anomaly",
                f"it was Started and is {change.event.status} again, which Azure rules out; nothing is done twice",
                "warning",
            )
        if severity(change.event.event_type) > severity(before.event_type):
            self._timeline.add(
                record, "worse", f"hooks for {change.event.event_type} that have not run will run", "warning"
            )
        self._approver.event_changed(record, change.fields)
        if "not_before" in change.fields and not record.seen_started:
            self._stage_runner.not_before_changed(record, before)
        if (
            "resources" in change.fields
            and not record.affects_this_vm
            and self._runtime.own_name is not None
            and affects(record.event, self._runtime.own_name)
        ):
            record.affects_this_vm = True
            self._timeline.add(record, "concerns-us", "the event now affects this VM", "notice")

    def _absent(self, record: EventRecord, how: str) -> None:
        """Count a document without the event, or without this VM in it; a single one may come from a stale backend."""
        record.absences += 1
        if record.absences >= ABSENCES_NEEDED:
            self._gone(record, how)

    def _gone(self, record: EventRecord, how: str) -> None:
        """Note that the event is over, for this VM at least, and how it ended.

        If other hooks ran after the last recover hook, the recover hooks count as not run.
        """
        record.gone_at = self._clock.now()
        record.absences = 0
        record.outcome = COMPLETED if record.seen_started else CANCELLED_OR_MISSED
        last_recover = max((step.id for step in record.runs_in_stage(RECOVER)), default=0)
        if any(step.id > last_recover > 0 and step.stage != RECOVER and step.state != SKIPPED for step in record.steps):
            self._stage_runner.void(record, RECOVER, "other hooks ran after it")
        text = (
            how
            if record.seen_started
            else how + ", and was never seen Started: it was cancelled, or its start was missed"
        )
        self._timeline.add(record, "gone", text, "notice" if record.affects_this_vm else "info")

    def _summary(self, record: EventRecord) -> str:
        event = record.event
        who = "this VM" if record.affects_this_vm else "other VMs"
        when = "it has started" if event.status == "Started" else "its start is unknown"
        if event.not_before is not None:
            when = f"not before {as_utc_text(event.not_before)}, in {event.seconds_left(self._clock.now()):.0f} s"
        source = event.source or "an unknown source"
        return f"{event.event_type} by {source} hits {who} ({', '.join(event.resources)}); {when}"


def _shown(event: ScheduledEvent, name: str) -> str:
    value = event.as_dict()["duration_seconds" if name == "duration" else name]
    return ", ".join(value) if isinstance(value, list) else str(value)
