# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The work of module event_facts."""

from __future__ import annotations

import typing as t

from ..azure_scheduled_events.document import EventDocument, ScheduledEvent
from ..azure_scheduled_events.errors import ImdsError
from ..azure_scheduled_events.selection import Selection
from .event_task import EventCall, EventTask, Result


def facts(
    name: str | None,
    document: EventDocument | None,
    events: list[ScheduledEvent],
    selection: Selection,
    reason: str,
) -> dict[str, t.Any]:
    """Return the value of the fact; ``reason`` is "" if the events are known."""
    pending = any(selection.heeds(event.event_type) for event in events)
    found: dict[str, t.Any] = {
        "available": not reason,
        "reason": reason,
        "resource_name": name,
        "incarnation": document.incarnation if document is not None else None,
        "events": [event.as_dict() for event in events],
    }
    if pending or not reason:
        # missing rather than null if unknown: "when: not pending" would be true for null
        found["pending"] = pending
    return found


def gather(call: EventCall) -> Result:
    """Return the fact, which says so if IMDS gives no good answer."""
    chosen = call.selection()
    name: str | None = None
    document: EventDocument | None = None
    events: list[ScheduledEvent] = []
    reason = ""
    try:
        imds = call.open_session()
        document = imds.read_events(name_required=chosen.needs_own_name)
        name = imds.resource_name
        events = chosen._replace(advice=True).pick(document, name)
        if not document.complete:
            reason = "an entry of the document could not be read, so more events may exist"
    except ImdsError as error:
        reason = str(error)
    call.warn_about(document)
    return dict(changed=False, ansible_facts={"azure_scheduled_events": facts(name, document, events, chosen, reason)})


EVENT_FACTS = EventTask(gather, timeout=5, needs_requests=False)
