# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the changes between the documents of one VM; absence counts after two good documents. Pure."""

from __future__ import annotations

import typing as t
from datetime import datetime

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.changes import (
    ABSENCES_NEEDED,
    Change,
    changes,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.document import (
    EventDocument,
    ScheduledEvent,
)


class EventTracker:
    """Knows the events of a VM's documents.

    Args:
        due_within: seconds; an event that starts later is reported when its remaining time is less. None: at once.
    """

    def __init__(self, due_within: float | None = None) -> None:
        self._due_within = due_within
        self._known: EventDocument | None = None
        # (key of the event, name of the VM or None for the event itself) -> documents in a row without it
        self._absences: dict[tuple[str, str | None], int] = {}

    @property
    def knows_events(self) -> bool:
        """Return True if an event is pending."""
        return self._known is not None and bool(self._known.events)

    def update(self, document: EventDocument, now: datetime) -> tuple[Change, ...]:
        """Return the changes that a good document brings, and remember them; ``due_within`` counts from ``now``."""
        known = {event.key: event for event in self._known.events} if self._known is not None else {}
        absences: dict[tuple[str, str | None], int] = {}
        events = []
        for event in document.events:
            before = known.get(event.key)
            if before is not None:
                events.append(self._with_missing_vms(before, event, document, absences))
            elif self._is_due(event, now):
                events.append(event)
        present = {event.key for event in document.events}
        for key, event in known.items():
            if key not in present and self._stays((key, None), document.complete, absences):
                events.append(event)
        after = EventDocument(document.incarnation, tuple(events))
        found = changes(self._known, after)
        self._known, self._absences = after, absences
        return found

    def _is_due(self, event: ScheduledEvent, now: datetime) -> bool:
        return self._due_within is None or event.seconds_left(now) <= self._due_within

    def _with_missing_vms(
        self,
        before: ScheduledEvent,
        event: ScheduledEvent,
        document: EventDocument,
        absences: dict[tuple[str, str | None], int],
    ) -> ScheduledEvent:
        """Return the event with those VMs of its earlier Resources that may only be missing for a moment."""
        certain = event.key not in document.doubtful
        kept = [
            name
            for name in before.resources
            if name not in event.resources and self._stays((event.key, name), certain, absences)
        ]
        return event._replace(resources=(*event.resources, *kept)) if kept else event

    def _stays(
        self, missing: tuple[str, str | None], counts: bool, absences: dict[tuple[str, str | None], int]
    ) -> bool:
        times = self._absences.get(missing, 0) + (1 if counts else 0)
        if times >= ABSENCES_NEEDED:
            return False
        absences[missing] = times
        return True


def describe(found: t.Iterable[Change]) -> str:
    """Return one line for the log: kinds and events."""
    return ", ".join(f"{change.event.event_type} {change.event.event_id!a} {change.kind}" for change in found)
