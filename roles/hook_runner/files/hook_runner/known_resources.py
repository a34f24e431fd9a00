# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The Resources of events that a document gives in no readable form: those of the earlier document count."""

from __future__ import annotations

from collections.abc import Mapping

from azure_scheduled_events.document import EventDocument, ScheduledEvent


def with_known_resources(
    document: EventDocument, known: Mapping[str, ScheduledEvent]
) -> tuple[EventDocument, frozenset[str]]:
    """Return the document with the earlier Resources of events that it gives in no readable form.

    Args:
        document: a good document.
        known: the earlier events by key.

    Returns:
        The document, and the keys of the events with earlier Resources.
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
