# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What went over a master's event bus, from the file into which the master itself writes it."""

from __future__ import annotations

import fnmatch
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from support.salt.wait import TIMEOUT, wait_until


class Event(NamedTuple):
    tag: str
    data: dict[str, Any]

    @property
    def time(self) -> float:
        """When the bus got it, in seconds of the clock on the wall."""
        stamp = datetime.fromisoformat(self.data["_stamp"])
        return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()


class EventBus:
    """All events since the master's first start, in order."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read = 0
        self._rest = b""
        self._events: list[Event] = []

    def events(self, tag: str = "*", **fields: Any) -> list[Event]:
        """Those whose tag fits the pattern and whose data hold these values."""
        self._catch_up()
        return [
            event
            for event in self._events
            if fnmatch.fnmatchcase(event.tag, tag)
            and all(event.data.get(name) == value for name, value in fields.items())
        ]

    def wait(self, tag: str, seconds: float = TIMEOUT, **fields: Any) -> Event:
        """The first such event, which may have been there before."""
        return wait_until(lambda: self.events(tag, **fields), f"an event {tag} with {fields}", seconds)[0]

    def wait_for_more(self, tag: str, than: int, seconds: float = TIMEOUT, **fields: Any) -> Event:
        """The newest such event, as soon as there are more of them than that."""

        def found() -> list[Event]:
            return self.events(tag, **fields)[than:]

        return wait_until(found, f"more than {than} events {tag} with {fields}", seconds)[-1]

    def _catch_up(self) -> None:
        if not self._file.exists():
            return
        with self._file.open("rb") as file:
            file.seek(self._read)
            *lines, self._rest = (self._rest + file.read()).split(b"\n")
            self._read = file.tell()
        self._events += [Event(entry["tag"], entry["data"]) for entry in map(json.loads, lines)]
