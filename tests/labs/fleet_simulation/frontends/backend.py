# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One of the two backends of a VM's IMDS: its view of the events, and how it writes them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from email.utils import format_datetime
from typing import Any, NamedTuple

from fleet_simulation.azure_model import date_at
from maintenance_world.azure import SCHEDULED

# virtual second that no run reaches
NOT_BEFORE = 1500.0
# share of the documents with an entry that nobody can read, and of the events with two entries
UNREADABLE_ENTRY, TWO_ENTRIES = 0.03, 0.05
_UNREADABLE = (7, None, {"EventType": "Reboot"})
_SPELLINGS: tuple[Callable[[str], str], ...] = (str, str, str.upper, lambda name: f"_{name}")


class View(NamedTuple):
    """An event as a backend shows it; ``is_readable`` is False if its Resources are not a list of names."""

    vms: frozenset[str]
    kind: str
    status: str = SCHEDULED
    source: str = "Platform"
    is_listed: bool = True
    is_readable: bool = True


class Document(NamedTuple):
    """A body, and the events in it by key."""

    body: str
    views: Mapping[str, View]


class Backend:
    """Shows the events that it knows. The spelling of a document stays the same until the next change."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._views: dict[str, View] = {}
        self._document: Document | None = None

    def change(self, event_id: str, changed: Callable[[View], View]) -> None:
        """Change the view of an event, if this backend knows the event."""
        if event_id in self._views:
            self.show(event_id, changed(self._views[event_id]))

    def show(self, event_id: str, view: View) -> None:
        self._views[event_id] = view
        self._document = None

    def document(self) -> Document:
        if self._document is None:
            listed = {event_id: self._written(view) for event_id, view in self._views.items() if view.is_listed}
            entries: list[Any] = [entry for event_id, view in listed.items() for entry in self._entries(event_id, view)]
            if self._chance.random() < UNREADABLE_ENTRY:
                entries.append(self._chance.choice(_UNREADABLE))
            self._chance.shuffle(entries)
            body = json.dumps({"DocumentIncarnation": self._chance.randint(1, 9), "Events": entries})
            self._document = Document(body, {event_id.casefold(): view for event_id, view in listed.items()})
        return self._document

    def _written(self, view: View) -> View:
        """Return the view without its VMs if its Resources are null; else a name that is unreadable is added."""
        return view if view.is_readable or self._chance.random() < 0.5 else view._replace(vms=frozenset())

    def _entries(self, event_id: str, view: View) -> list[dict[str, Any]]:
        names: list[Any] = [self._chance.choice(_SPELLINGS)(vm) for vm in sorted(view.vms)]
        self._chance.shuffle(names)
        entry = {
            "EventId": self._chance.choice((event_id, event_id.lower())),
            "EventStatus": view.status,
            "EventType": self._chance.choice((view.kind, view.kind.upper())),
            "ResourceType": "VirtualMachine",
            "Resources": names if view.is_readable else [*names, 7] if names else None,
            "NotBefore": format_datetime(date_at(NOT_BEFORE), usegmt=True) if view.status == SCHEDULED else "",
            "Description": "",
            "EventSource": view.source,
            "DurationInSeconds": 9,
        }
        if view.is_readable and len(names) > 1 and self._chance.random() < TWO_ENTRIES:
            return [{**entry, "Resources": names[:1]}, {**entry, "Resources": names[1:]}]
        return [entry]
