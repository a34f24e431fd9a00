# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Compares documents with the events as they were reported last. Pure: the caller stores the result."""

from __future__ import annotations

from collections.abc import Mapping

from azure_scheduled_events.changes import ABSENCES_NEEDED, GONE, changes
from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.named_tuple import NamedTuple
from hook_runner.known_resources import with_known_resources

# an ended event is remembered for this many seconds, and so many are: if it is listed again, its next
# change has another number, and therefore another id
KEPT_SECONDS = 86400.0
KEPT_EVENTS = 1000


class Reported(NamedTuple):
    """An event as it was reported last.

    Attributes:
        event: its content.
        number: how many of its changes were reported.
        gone_at: seconds since 1970 of the report of its end; None while it is listed.
    """

    event: ScheduledEvent
    number: int
    gone_at: float | None = None


class Report(NamedTuple):
    """A change that is to be reported: its kind, and the event with it."""

    kind: str
    reported: Reported


class ReportedEvents:
    """The events as they were reported last. A restarted daemon finds the changes that it has not reported.

    Args:
        events: by key, as an earlier process stored them.

    Attributes:
        events: by key.
    """

    def __init__(self, events: Mapping[str, Reported]) -> None:
        self.events = dict(events)
        self._absences: dict[str, int] = {}

    def awaits_observation(self) -> bool:
        """Return True if an event is missing from one document only; the next one decides."""
        return bool(self._absences)

    def compare(self, document: EventDocument, now: float) -> list[Report]:
        """Take in a good document; return the changes to report, which `events` contains afterwards.

        Args:
            document: the document.
            now: seconds since 1970.
        """
        present = {key: each.event for key, each in self.events.items() if each.gone_at is None}
        document, _taken = with_known_resources(document, present)
        absences: dict[str, int] = {}
        found = []
        for change in changes(EventDocument(None, tuple(present.values())), document):
            key = change.event.key
            gone_at = None
            if change.kind == GONE:
                absences[key] = self._absences.get(key, 0) + 1
                if absences[key] < ABSENCES_NEEDED:
                    continue
                del absences[key]
                gone_at = now
            number = self.events[key].number if key in self.events else 0
            self.events[key] = Reported(change.event, number + 1, gone_at)
            found.append(Report(change.kind, self.events[key]))
        self._absences = absences
        return found

    def forget_ended(self, now: float) -> list[str]:
        """Drop events that ended long ago; return their keys."""
        ended = sorted((each.gone_at, key) for key, each in self.events.items() if each.gone_at is not None)
        surplus = max(0, len(ended) - KEPT_EVENTS)
        dropped = [key for place, (at, key) in enumerate(ended) if place < surplus or at < now - KEPT_SECONDS]
        for key in dropped:
            del self.events[key]
        return dropped
