# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Compares two documents by EventId (docs/reference/scheduled-events.md 2.1, 2.5.7, 6.2.12).

Events are not compared by value (Scheduled and Started are one event), nor documents by
DocumentIncarnation (it skips, repeats and goes back).
"""

from __future__ import annotations

from typing import NamedTuple

from .document import EventDocument, ScheduledEvent
from .identity import vm_key

APPEARED = "appeared"
CHANGED = "changed"
STARTED = "started"
GONE = "gone"


class Change(NamedTuple):
    """A change of one event.

    Attributes:
        kind: "appeared" (its status may be Started already), "started" (known before, Started now),
            "changed" (any other difference, even a step back from Started), "gone".
        event: the event as it is now; for "gone" as it was last.
        fields: names of the attributes that differ; empty for "appeared" and "gone".
    """

    kind: str
    event: ScheduledEvent
    fields: tuple[str, ...] = ()


def changes(before: EventDocument | None, after: EventDocument) -> tuple[Change, ...]:
    """Return the changes from one good document to the next.

    Ended events come first, then the others in the order of ``after``. If ``before`` is None, every event has
    appeared. An event that is missing from an incomplete document is not gone: its entry may be one that could not be
    read.
    """
    known = {event.key: event for event in before.events} if before is not None else {}
    present = {event.key for event in after.events}
    found = []
    if after.complete:
        found = [Change(GONE, event) for key, event in known.items() if key not in present]
    for event in after.events:
        previous = known.get(event.key)
        if previous is None:
            found.append(Change(APPEARED, event))
            continue
        fields = _differences(previous, event)
        if fields:
            kind = STARTED if event.status == "Started" and previous.status != "Started" else CHANGED
            found.append(Change(kind, event, fields))
    return tuple(found)


def holds_unchanged(before: ScheduledEvent, now: ScheduledEvent) -> bool:
    """Return True if a decision about the event still holds: nothing has changed, apart from NotBefore."""
    return not set(_differences(before, now)) - {"not_before"}


def _differences(one: ScheduledEvent, two: ScheduledEvent) -> tuple[str, ...]:
    """Return the names of differing fields; the letter case of ids, the spelling and the order of VMs do not count."""
    if one == two:
        return ()  # the usual case, which is faster to find
    names = []
    for name in ScheduledEvent._fields:
        left, right = getattr(one, name), getattr(two, name)
        if name == "event_id":
            left, right = one.key, two.key
        elif name == "resources":
            left, right = (set(map(vm_key, vms)) for vms in (left, right))
        if left != right:
            names.append(name)
    return tuple(names)
