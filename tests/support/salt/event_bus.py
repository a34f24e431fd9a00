# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The events on a master's bus, from the file into which the master writes them."""

from __future__ import annotations

import fnmatch
import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from support.wait import DEFAULT_TIMEOUT, wait_until


class Event(NamedTuple):
    tag: str
    data: dict[str, Any]

    @property
    def time(self) -> float:
        """Return the time of the event in seconds since 1970."""
        stamp = datetime.fromisoformat(self.data["_stamp"])
        return (stamp if stamp.tzinfo else stamp.replace(tzinfo=timezone.utc)).timestamp()


class EventBus:
    """All events since the master's first start, in order."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read = 0
        self._rest = b""
        self._events: list[Event] = []

    def events(self, tag: str = "*", **fields: Any) -> list[Event]:
        """Return the events with a tag of that pattern and these fields."""
        self._catch_up()
        return [
            event
            for event in self._events
            if fnmatch.fnmatchcase(event.tag, tag)
            and all(event.data.get(name) == value for name, value in fields.items())
        ]

    def wait(self, tag: str, seconds: float = DEFAULT_TIMEOUT, **fields: Any) -> Event:
        """Wait for the first such event, which may be older than the call."""
        return wait_until(lambda: self.events(tag, **fields), f"an event {tag} with {fields}", timeout=seconds)[0]

    def wait_for_more(self, tag: str, than: int, seconds: float = DEFAULT_TIMEOUT, **fields: Any) -> Event:
        """Wait for more than ``than`` such events, and return the newest."""

        def found() -> list[Event]:
            return self.events(tag, **fields)[than:]

        return wait_until(found, f"more than {than} events {tag} with {fields}", timeout=seconds)[-1]

    def _catch_up(self) -> None:
        if not self._file.exists():
            return
        with self._file.open("rb") as file:
            file.seek(self._read)
            *lines, self._rest = (self._rest + file.read()).split(b"\n")
            self._read = file.tell()
        self._events += [Event(entry["tag"], entry["data"]) for entry in map(json.loads, lines)]
