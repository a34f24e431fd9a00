# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The document of Scheduled Events as immutable values (docs/reference/scheduled-events.md 1.3, 1.4, 2.3).

The document is untrusted: old api-versions lack fields, Azure may add types and fields, and dates
are sometimes malformed. One malformed event does not hide the others, and an unreadable document is
an error, never "no events".
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any, Mapping, NamedTuple

from .errors import ImdsUnreadable
from .event_types import EVENT_TYPES
from .options import usual_spelling
from .printable import escape_surrogates, printable
from .timestamps import as_utc_text, parse_not_before

# the newest api-version with a documented difference (reference 1.3)
API_VERSION = "2020-07-01"
EVENT_STATUSES = ("Scheduled", "Started")
EVENT_SOURCES = ("Platform", "User")
RESOURCE_TYPES = ("VirtualMachine",)
# values by member of an event in JSON
_KNOWN = {"event_type": EVENT_TYPES, "status": EVENT_STATUSES, "resource_type": RESOURCE_TYPES, "source": EVENT_SOURCES}
# characters; those of Azure have 36
_LONGEST_ID = 200
# What 8 MiB hold is read within a second: each entry and name costs time, also where it is malformed, and so does each
# object and list of members that are not read. 8 MiB hold fewer entries as Azure writes them.
_MOST_ENTRIES = 30000
_MOST_ITEMS = 70000
_MOST_BRACKETS = 200000
# each part of the collection keeps, compares or logs all of them
_MOST_WARNINGS = 100


class ScheduledEvent(NamedTuple):
    """One entry of ``Events``; lone surrogates in its texts are escaped.

    Attributes:
        event_id: as IMDS wrote it, to be sent back; compare with :attr:`key`.
        event_type: one of EVENT_TYPES in their own spelling, or an unknown value as it came; "" where missing.
        status: "Scheduled" or "Started", or an unknown value as it came; "" where missing.
        resources: names of the VMs that the event affects; an approval releases all of them.
        resource_type: "VirtualMachine", or None where missing.
        not_before: aware UTC time, or None: the event has started, or the time is unknown and counts as "now".
        description: free text for operators, never parsed; None below api-version 2019-04-01.
        source: "Platform" or "User", or an unknown value; None below api-version 2019-08-01.
        duration: expected interruption; None where unknown (-1 on the wire, or api-version below 2020-07-01).
    """

    event_id: str
    event_type: str
    status: str
    resources: tuple[str, ...]
    resource_type: str | None
    not_before: datetime | None
    description: str | None
    source: str | None
    duration: timedelta | None

    @property
    def key(self) -> str:
        """The identity of the event, its id with letter case folded (reference 1.4.3)."""
        return self.event_id.casefold()

    def seconds_left(self, now: datetime) -> float:
        """Return the seconds until the event may start (reference 2.3.4), never negative.

        ``now`` is aware, preferably by the server's clock (EventDocument.server_time). An unknown time counts as
        "now".
        """
        if self.not_before is None or self.status == "Started":
            return 0.0
        return max(0.0, (self.not_before - now).total_seconds())

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values, with times in ISO 8601 UTC; :meth:`from_json` reads them back.

        Modules and Salt functions show this shape, and records store it.
        """
        return {
            "event_id": self.event_id,
            "event_type": self.event_type,
            "status": self.status,
            "resources": list(self.resources),
            "resource_type": self.resource_type,
            "not_before": None if self.not_before is None else as_utc_text(self.not_before),
            "description": self.description,
            "source": self.source,
            "duration_seconds": None if self.duration is None else int(self.duration.total_seconds()),
        }

    @classmethod
    def from_json(cls, data: Any, name: str = "event") -> ScheduledEvent:
        """Return the event of JSON values in the form of :meth:`as_dict`, which may be untrusted.

        Known values may have any letter case. A member that can be None may be missing; unknown members are ignored.

        Raises:
            ValueError: a value cannot be used; the message begins with ``name``.
        """
        if not isinstance(data, Mapping):
            raise ValueError(f"{name}: not an object")
        about = name + ": "
        defects = _Warnings()
        values: dict[str, Any] = {}
        try:
            for member in ("event_id", "description", *_KNOWN):
                value = _text(data, member, about, defects)
                values[member] = usual_spelling(value or "", _KNOWN.get(member, ())) or value
            if not (values["event_id"] or "").strip():
                values["event_id"] = None
            for member in ("event_id", "event_type", "status"):
                if values[member] is None:
                    defects.add(f"{about}{member} is missing")
            values["resources"], _readable = _resources(data.get("resources"), about + "resources", defects)
            values["duration"] = _duration(data.get("duration_seconds"), about + "duration_seconds", defects)
            values["not_before"], unreadable = parse_not_before(data.get("not_before"))
        except (TypeError, ValueError, RecursionError):
            raise ValueError(about + "a value is not a JSON value, or is nested too deeply") from None
        if unreadable:
            defects.add(about + "not_before is not a time in ISO 8601")
        if defects.texts:
            raise ValueError(next(iter(defects.texts)))
        return cls(**values)


class EventDocument(NamedTuple):
    """The content of one good answer.

    Attributes:
        incarnation: DocumentIncarnation, or None where missing; it may skip, repeat and go back (reference 2.5).
        events: the readable events, one per id.
        warnings: one sentence for each tolerated defect.
        complete: False if an entry was left out; a missing event is not gone then.
        server_time: the server's clock when it answered (``Date`` header), or None.
        doubtful: keys of the events whose Resources were not fully readable (null, not a list, or an item that is not
            a name). The VMs of such an event are unknown; a missing VM is not gone from it.
        api_version: with which it was read.
        sent_at: when its request was sent, in seconds of a clock that never jumps.
        sent_by: the latest time at which it may have been sent: later if the request was repeated, or if the
            transport held the answer back.
    """

    incarnation: int | None
    events: tuple[ScheduledEvent, ...]
    warnings: tuple[str, ...] = ()
    complete: bool = True
    server_time: datetime | None = None
    doubtful: tuple[str, ...] = ()
    api_version: str = API_VERSION
    sent_at: float = 0.0
    sent_by: float = 0.0

    def find(self, event_id: str) -> ScheduledEvent | None:
        """Return the event of that id in any letter case, or None."""
        key = event_id.casefold()
        return next((event for event in self.events if event.key == key), None)


def parse_document(text: str | bytes) -> EventDocument:
    """Return the document in the body of a good answer of ``/metadata/scheduledevents``, possibly with warnings.

    Raises:
        ImdsUnreadable: the body is not an object with a list of events (reference 1.4.13).
    """
    raw = _load(text)
    entries = raw.get("Events")
    if not isinstance(entries, list):
        raise ImdsUnreadable(f"the document has no list of events: it begins with {text[:60]!r}")
    named = [entry["Resources"] for entry in entries if isinstance(entry, dict) and "Resources" in entry]
    count = len(entries) + sum(len(names) for names in named if isinstance(names, list))
    if len(entries) > _MOST_ENTRIES:
        raise ImdsUnreadable(f"the document has {len(entries)} entries, more than {_MOST_ENTRIES}")
    if count > _MOST_ITEMS:
        raise ImdsUnreadable(f"the document has {count} entries and names of VMs, more than {_MOST_ITEMS}")
    notes = _Warnings()
    incarnation = _incarnation(raw.get("DocumentIncarnation"), notes)
    entries_of: dict[str, list[ScheduledEvent]] = {}
    doubtful: dict[str, None] = {}
    complete = True
    for index, entry in enumerate(entries):
        read = _event(entry, index, notes)
        if read is None:
            complete = False
            continue
        event, readable = read
        if not readable:
            doubtful[event.key] = None
        entries_of.setdefault(event.key, []).append(event)
    events = tuple(_merge_duplicates(same, notes) for same in entries_of.values())
    return EventDocument(incarnation, events, tuple(notes.texts), complete, None, tuple(doubtful))


class _Warnings:
    """Collects the first warnings, printable and each once, in the order in which they arose."""

    def __init__(self) -> None:
        self.texts: dict[str, None] = {}

    def add(self, text: str) -> None:
        if len(self.texts) < _MOST_WARNINGS:
            self.texts[printable(_shortened(text, 1000))] = None
        else:
            self.texts[f"more than {_MOST_WARNINGS} defects; the others are not listed"] = None


def _load(text: str | bytes) -> dict[str, Any]:
    if not text.strip():
        raise ImdsUnreadable("the body is empty: the events are unknown")
    if isinstance(text, (bytes, bytearray)):
        try:
            text = bytes(text).decode("utf-8")
        except UnicodeDecodeError as error:
            raise ImdsUnreadable(f"the body is not UTF-8: {error}") from None
    if text.count("{") + text.count("[") > _MOST_BRACKETS:
        raise ImdsUnreadable(f"the body has more than {_MOST_BRACKETS} objects and lists")
    try:
        # strict=False: raw control characters inside strings have been seen on the wire
        raw = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        raise ImdsUnreadable(f"the body is not JSON ({error}): it begins with {text[:60]!r}") from None
    if not isinstance(raw, dict):
        raise ImdsUnreadable(f"the body is not an object: it begins with {text[:60]!r}")
    return raw


def _event(entry: Any, index: int, notes: _Warnings) -> tuple[ScheduledEvent, bool] | None:
    """Return the event, and whether all of its VMs are readable; None for an entry that is no event."""
    if not isinstance(entry, dict):
        notes.add(f"entry {index} of Events is {_preview(entry)}, not an event; left out")
        return None
    event_id = entry.get("EventId")
    if not isinstance(event_id, str) or not event_id.strip() or len(event_id) > _LONGEST_ID:
        notes.add(f"entry {index} of Events has no usable EventId ({_preview(event_id)}); left out")
        return None
    event_id = escape_surrogates(event_id)
    about = f"event {event_id!r}: "
    status = _known_value(entry, "EventStatus", EVENT_STATUSES, about, notes)
    not_before, warning = parse_not_before(entry.get("NotBefore"))
    if warning:
        notes.add(about + warning)
    if not_before is None and not warning and status == "Scheduled":
        notes.add(about + "is Scheduled without NotBefore; it counts as due now")
    resources, readable = _resources(entry.get("Resources"), about + "Resources", notes)
    if readable and not resources:
        notes.add(about + "Resources is empty")
    event = ScheduledEvent(
        event_id=event_id,
        event_type=_known_value(entry, "EventType", EVENT_TYPES, about, notes) or "",
        status=status or "",
        resources=resources,
        resource_type=_known_value(entry, "ResourceType", RESOURCE_TYPES, about, notes),
        not_before=not_before,
        description=_text(entry, "Description", about, notes),
        source=_known_value(entry, "EventSource", EVENT_SOURCES, about, notes, optional=True),
        duration=_duration(entry.get("DurationInSeconds"), about + "DurationInSeconds", notes),
    )
    return event, readable


def _merge_duplicates(entries: list[ScheduledEvent], notes: _Warnings) -> ScheduledEvent:
    """Merge the entries with one id: the most restrictive status, and the VMs of all."""
    if len(entries) == 1:
        return entries[0]
    notes.add(f"event {entries[0].event_id!r} is listed more than once; its entries are merged")
    leading = next((entry for entry in entries if entry.status == "Started"), entries[0])
    merged: dict[str, Any] = {}
    for name in ("event_type", "status", "resource_type", "source"):
        values = dict.fromkeys(getattr(entry, name) for entry in entries)
        if len(values) > 1:
            # an unknown value, which no rule approves
            merged[name] = "/".join(map(str, values))
    if leading.status == "Started":
        merged["status"] = "Started"
    if len({entry.duration for entry in entries}) > 1:
        merged["duration"] = None
    merged["resources"] = tuple(dict.fromkeys(name for entry in entries for name in entry.resources))
    return leading._replace(**merged)


def _known_value(
    entry: dict[str, Any], name: str, known: tuple[str, ...], about: str, notes: _Warnings, optional: bool = False
) -> str | None:
    """Return a member with few valid values: in its usual spelling if known (reference 1.4.8), else as it came."""
    value = _text(entry, name, about, notes)
    if not value:
        if not optional:
            notes.add(f"{about}no {name}")
        return None
    usual = usual_spelling(value.strip(), known)
    if usual is None:
        notes.add(f"{about}unknown {name} {value!r}")
    return usual or value


def _text(entry: Mapping[str, Any], name: str, about: str, notes: _Warnings) -> str | None:
    value = entry.get(name)
    if value is None:
        return None
    if isinstance(value, str):
        return escape_surrogates(value)
    notes.add(f"{about}{name} is {_preview(value)}, not a text")
    return _preview(value)


def _resources(value: Any, about: str, notes: _Warnings) -> tuple[tuple[str, ...], bool]:
    """Return the names of the VMs, and whether all of them are readable; an empty list is."""
    if isinstance(value, str):
        notes.add(about + " is a single name, not a list")
        value = [value]
    if not isinstance(value, (list, tuple)):
        notes.add(f"{about} is {_preview(value)}, not a list of names")
        return (), False
    readable = True
    names = []
    for item in value:
        if not isinstance(item, str):
            # kept as a name, so that the event does not seem to affect fewer VMs than it does
            item = _preview(item)
            notes.add(f"{about} holds {item}, not a name")
            readable = False
        names.append(escape_surrogates(item))
    return tuple(names), readable


def _duration(value: Any, about: str, notes: _Warnings) -> timedelta | None:
    if value is None:
        return None
    try:
        if isinstance(value, bool):
            raise ValueError("a boolean")
        seconds = int(value)
        if seconds == -1:
            return None
        if seconds < 0:
            raise ValueError("negative")
        return timedelta(seconds=seconds)
    except (TypeError, ValueError, OverflowError):
        notes.add(f"{about} is {_preview(value)}, not a number of seconds")
        return None


def _incarnation(value: Any, notes: _Warnings) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    notes.add(f"DocumentIncarnation is {_preview(value)}, not an integer")
    return None


def _preview(value: Any) -> str:
    return _shortened(json.dumps(value, default=str), 200)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "..."
