# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Waiting for events to come, to start or to be over."""

from __future__ import annotations

from typing import Any

from azure_scheduled_events.document import EventDocument
from azure_scheduled_events.selection import Selection
from azure_scheduled_events.waiting import Waited, wait_for

from .conversation import Conversation, Where, describe

STATES = ("present", "scheduled", "started", "absent")
# absent this often in a row: one missing sight may be a neighbour's document that is a moment ahead of ours
_SIGHTS_OF_ABSENCE = 2


class Wait:
    """One wait for a state of the selected events. Asked once for each good document."""

    def __init__(self, state: str, selection: Selection, where: Where, interval: float) -> None:
        self._state = state
        self._selection = selection
        self._conversation = Conversation(where, interval)
        self._timeout = where.timeout
        self._absences = 0

    def run(self) -> dict[str, Any]:
        """Wait, and tell how it ended: ``outcome`` is "reached", "gone" or "timeout", ``reason`` says more about the latter.

        Raises ImdsError for what no wait can mend.
        """
        poll = self._conversation.poll(name_required=self._selection.needs_own_name)
        waited = wait_for(self._conversation.pacer, poll, self._ended, self._timeout)
        outcome = "timeout"
        if waited.document is not None and waited.reached:
            outcome = "reached" if self._reached(waited.document) else "gone"
        return dict(self._result(waited), outcome=outcome, reason=self._reason(outcome, waited))

    def _ended(self, document: EventDocument) -> bool:
        reached, gone = self._reached(document), self._gone(document)
        return reached or gone

    def _reached(self, document: EventDocument) -> bool:
        events = self._selection.pick(document, self._conversation.known_name)
        if self._state == "absent":
            return not events and not self._hidden(document)
        statuses = {event.status.lower() for event in events}
        return bool(events) if self._state == "present" else self._state in statuses

    def _hidden(self, document: EventDocument) -> bool:
        """Whether a selected event may be there although it is not picked: something about it could not be read."""
        listed = any(document.find(event_id) is not None for event_id in self._selection.event_ids or ())
        return listed or not document.complete or any(not event.resources for event in document.events)

    def _gone(self, document: EventDocument) -> bool:
        """Whether every event that was asked for by id has left."""
        ids = self._selection.event_ids or ()
        listed = any(document.find(event_id) is not None for event_id in ids)
        self._absences = 0 if listed or not document.complete else self._absences + 1
        return bool(ids) and self._absences >= _SIGHTS_OF_ABSENCE

    def _result(self, waited: Waited) -> dict[str, Any]:
        document = waited.document
        name = self._conversation.known_name
        picked = self._selection.pick(document, name) if document is not None else []
        result = {
            "events": [event.as_dict() for event in picked],
            "elapsed": round(waited.elapsed, 2),
            "incarnation": document.incarnation if document is not None else None,
            "resource_name": name,
            "imds_errors": waited.errors,
        }
        if waited.last_error is not None:
            result["imds_error"] = describe(waited.last_error)
        return result

    def _reason(self, outcome: str, waited: Waited) -> str:
        if outcome == "reached":
            return ""
        if outcome == "gone":
            return "the events are gone and were not seen %s: they were cancelled, or were over between two polls" % self._state
        if waited.document is None:
            return "nothing is known of the events after %.0f seconds: %s" % (waited.elapsed, waited.last_error)
        if self._state == "absent":
            return "the events are not over after %.0f seconds" % waited.elapsed
        return "no event is %s after %.0f seconds" % (self._state, waited.elapsed)
