# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The VMs of an event that earlier documents gave: they count while a document lacks them, or is not readable."""

from __future__ import annotations

from collections.abc import Mapping

from azure_scheduled_events.changes import ABSENCES_NEEDED
from azure_scheduled_events.document import EventDocument, ScheduledEvent


def with_known_resources(
    document: EventDocument, known: Mapping[str, ScheduledEvent]
) -> tuple[EventDocument, frozenset[str]]:
    """Return the document with the earlier Resources of events that it gives in no readable form.

    `known` has the earlier events by key. The second value has the keys of the events that got earlier
    Resources.
    """
    unknown = {event.key for event in document.events if not event.resources}.union(document.doubtful)
    taken = frozenset(key for key in unknown if key in known and known[key].resources)
    if not taken:
        return document, taken
    events = tuple(
        event._replace(resources=known[event.key].resources) if event.key in taken else event
        for event in document.events
    )
    return document._replace(events=events), taken


def with_leaving_vms(
    event: ScheduledEvent, known: ScheduledEvent, leaving: Mapping[str, int], is_complete: bool
) -> tuple[ScheduledEvent, dict[str, int]]:
    """Return the event with the earlier VMs that are not gone: an approval would still release them.

    Args:
        event: as a good document lists it.
        known: the event as it was before.
        leaving: the VMs that the last documents did not name, with the number of these documents.
        is_complete: whether the document is; otherwise it confirms no absence.

    Returns:
        The event, and the VMs that it has only from `known`, with the number of documents in a row
        that did not name them.
    """
    if event.resources == known.resources:
        return event, {}  # the usual case, which is faster to find
    named = {name.casefold() for name in event.resources}
    absences = {
        name: leaving.get(name, 0) + int(is_complete) for name in known.resources if name.casefold() not in named
    }
    remaining = {name: count for name, count in absences.items() if count < ABSENCES_NEEDED}
    if not remaining:
        return event, remaining
    return event._replace(resources=event.resources + tuple(remaining)), remaining
