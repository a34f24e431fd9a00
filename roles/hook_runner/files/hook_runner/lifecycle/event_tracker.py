# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Compares documents with the records of events: events appear, change, are missing, and are over."""

from __future__ import annotations

from typing import Mapping

from azure_scheduled_events.changes import GONE, Change
from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.identity import affects, vm_key
from azure_scheduled_events.outcome import outcome_of
from azure_scheduled_events.timestamps import as_utc_text
from azure_scheduled_events.tracking import Observation, Sighting, Tracker
from azure_scheduled_events.urgency import counts_for
from hook_runner.clock import ServerClock
from hook_runner.lifecycle.approvals import Approver
from hook_runner.lifecycle.runtime import Runtime
from hook_runner.lifecycle.stage_runner import StageRunner
from hook_runner.lifecycle.timeline import Timeline
from hook_runner.record_store import RecordStore
from hook_runner.records import EventRecord

# the name of the tracker's memory in the store: the occurrences of events that are gone by key, and the keys of those
# that came back
_MEMORY = "memory"
NOT_LISTED = "it is not listed any more"
NOT_AFFECTED = "it does not affect this VM any more"


class EventTracker:
    """Keeps the records of the events that are listed, or whose recovery is not finished.

    The store has the memory of earlier processes. Each change gets an entry in the timeline. The approver
    withdraws the approvals of changed events, and the stage runner adapts their hooks.
    """

    def __init__(
        self,
        runtime: Runtime,
        store: RecordStore,
        clock: ServerClock,
        timeline: Timeline,
        approver: Approver,
        stage_runner: StageRunner,
    ) -> None:
        self.records: list[EventRecord] = []
        self._runtime = runtime
        self._store = store
        self._clock = clock
        self._timeline = timeline
        self._approver = approver
        self._stage_runner = stage_runner
        self._tracker = Tracker()
        # of events that are gone, by key
        self._occurrences: dict[str, int] = {}
        self._seen: Observation | None = None
        # whether the last document has an event without a record, because this VM's name was unknown
        self._has_unrecorded = False

    @property
    def is_in_doubt(self) -> bool:
        """True if one more document, even an unchanged one, may end something."""
        return self._seen is None or self._seen.doubt

    def clear(self) -> None:
        """Forget all records."""
        self.records.clear()
        self._tracker, self._seen = Tracker(), None

    def drop_closed(self) -> None:
        """Remove the closed records."""
        self.records[:] = [record for record in self.records if record.closed_at is None]

    def compare(self, document: EventDocument) -> int:
        """Update the records from the document, and create records of new events.

        1. The first time, the events of stored records count as listed.
        2. The changes that the document brings are taken over, and events that are gone are noted.
        3. An event that no longer affects this VM is gone for it.
        4. An event without a record appears, once this VM's name is known.

        Returns the number of documents since step 1.
        """
        if self._seen is None:
            self._begin()
        seen = self._tracker.observe(document)
        is_unchanged = self._seen is not None and self._seen.events is seen.events
        self._seen = seen
        if is_unchanged and not self._has_unrecorded:
            return seen.documents
        self._has_unrecorded = False
        present = {record.key: record for record in self.records if record.gone_at is None}
        for change in seen.changes:
            record = present.get(change.event.key)
            if record is not None and change.kind == GONE:
                self._gone(record, NOT_LISTED)
            elif record is not None:
                self._changed(record, change)
        self._note_steps_back(document, present)
        for key, sighting in seen.events.items():
            record = present.get(key)
            if (
                record is not None
                and record.affects_this_vm
                and sighting.listed
                and self._is_for_others(sighting.event)
            ):
                self._gone(record, NOT_AFFECTED)
                record = None
            record = record or self._appeared(sighting.event)
            self._has_unrecorded = self._has_unrecorded or record is None
            if record is not None:
                record.sighting = sighting
                record.is_missing = not sighting.listed or (record.affects_this_vm and self._is_unnamed(sighting))
        self._remember()
        return seen.documents

    def _note_steps_back(self, document: EventDocument, present: Mapping[str, EventRecord]) -> None:
        """Note once for an event that it is listed as not Started after it was: the tracker keeps Started."""
        for event in document.events:
            record = present.get(event.key)
            if record is not None and record.seen_started and event.status != "Started":
                text = f"it was Started and is {event.status} again, which Azure rules out; nothing is done twice"
                if not any(entry.detail == text for entry in record.timeline):
                    self._timeline.add(record, "anomaly", text, "warning")

    def _begin(self) -> None:
        """Let the events of the records count as listed, each as Started if it ever was."""
        known = [record for record in self.records if record.gone_at is None]
        events = [record.event._replace(status="Started") if record.seen_started else record.event for record in known]
        memory = self._store.noted(_MEMORY, dict) or {}
        gone, returned = memory.get("gone"), memory.get("returned")
        found = gone.items() if isinstance(gone, dict) else ()
        self._occurrences = {key: number for key, number in found if isinstance(number, int)}
        self._tracker = Tracker(events, returned if isinstance(returned, list) else (), self._occurrences)

    def _remember(self) -> None:
        """Keep for the next process which events are gone or came back; the tracker forgets them after a day."""
        assert self._seen is not None
        gone = {key: self._occurrences.get(key, 1) for key in self._tracker.gone}
        no_longer_ours = {key: number for key, number in self._occurrences.items() if key in self._seen.events}
        self._occurrences = {**gone, **no_longer_ours}
        self._store.note(_MEMORY, {"gone": dict(self._occurrences), "returned": sorted(self._tracker.returned)})

    def _is_for_others(self, event: ScheduledEvent) -> bool:
        """Return True if it is known that the event does not affect this VM."""
        return self._runtime.own_name is not None and not affects(event, self._runtime.own_name)

    def _is_unnamed(self, sighting: Sighting) -> bool:
        """Return True if the last document gives the event's VMs without this one."""
        return sighting.readable and vm_key(self._runtime.own_name or "") not in sighting.named

    def _appeared(self, event: ScheduledEvent) -> EventRecord | None:
        """Begin a record; None while it is unknown whether the event affects this VM."""
        if self._runtime.own_name is None:
            return None
        occurrence = self._occurrences.get(event.key, 0) + 1
        record = EventRecord(self._store.next_id(), occurrence, event, self._clock.now())
        record.affects_this_vm = affects(event, self._runtime.own_name)
        self.records.append(record)
        self._timeline.add(record, "appeared", self._summary(record), "notice" if record.affects_this_vm else "info")
        if occurrence > 1 and record.affects_this_vm:
            self._timeline.add(
                record, "anomaly", "an event of this id was over before; this is another occurrence", "warning"
            )
        return record

    def _changed(self, record: EventRecord, change: Change) -> None:
        """Take over a change of a listed event, and note it in the timeline.

        1. The first time that the event is Started, it counts as started from now on.
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
        if not counts_for(before.event_type, change.event.event_type):
            self._timeline.add(record, "worse", f"prepare hooks run for {change.event.event_type}", "warning")
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

    def _gone(self, record: EventRecord, how: str) -> None:
        """Note that the event is over, for this VM at least, and how it ended."""
        record.gone_at, record.is_missing = self._clock.now(), False
        self._occurrences[record.key] = record.occurrence
        record.outcome = outcome_of(record.seen_started)
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
