# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A recording in the form that the checks need: documents, and the sightings of each event. Pure."""

from __future__ import annotations

import calendar
import email.utils
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from ..recording.lines import INSTANCE, NEWEST, POLL, Answer, Begin
from ..recording.reader import Recording

# instance metadata has eight
_LEVELS = 40


class Document(NamedTuple):
    """A good document.

    ``time`` is the Unix time of the answer by the clock of the service, if it sent one. ``run`` is the number of
    the recorder's run.
    """

    line: int
    run: int
    time: float
    version: str
    incarnation: int
    events: tuple[Mapping[str, Any], ...]
    answer: Answer

    def event(self, event_id: str) -> Mapping[str, Any] | None:
        """Return the event with this id in upper case, or None."""
        return next((each for each in self.events if id_of(each) == event_id), None)


class Sighting(NamedTuple):
    """An event in a document."""

    document: Document
    event: Mapping[str, Any]

    @property
    def status(self) -> str:
        """EventStatus in lower case."""
        return str(self.event.get("EventStatus", "")).lower()

    @property
    def not_before(self) -> float | None:
        """NotBefore as Unix time, or None."""
        return moment(self.event.get("NotBefore"))


class Life(NamedTuple):
    """An occurrence of an event: the last document before it, its sightings, and the first document after it."""

    before: Document | None
    sightings: tuple[Sighting, ...]
    after: Document | None

    @property
    def first(self) -> Sighting:
        """The first sighting."""
        return self.sightings[0]

    @property
    def gap(self) -> float:
        """Seconds between the last document before the event and its first sighting."""
        return self.first.document.time - self.before.time if self.before is not None else float("inf")

    @property
    def type(self) -> str:
        """EventType."""
        return str(self.first.event.get("EventType", ""))

    def started(self) -> Sighting | None:
        """Return the first sighting with the status Started."""
        return next((each for each in self.sightings if each.status == "started"), None)

    def steps(self) -> Iterator[tuple[Sighting, Sighting]]:
        """Return each sighting with the next one."""
        return zip(self.sightings, self.sightings[1:])


def id_of(event: Mapping[str, Any]) -> str:
    """Return the EventId in upper case."""
    return str(event.get("EventId", "")).upper()


def moment(text: object) -> float | None:
    """Return the Unix time of a date in the form of RFC 1123, or None."""
    if not isinstance(text, str):
        return None
    try:
        parsed = email.utils.parsedate_tz(text)
        return float(calendar.timegm((*parsed[:6], 0, 0, 0)) - (parsed[9] or 0)) if parsed else None
    except (ValueError, OverflowError, IndexError, TypeError):
        return None


def version_of(answer: Answer) -> str:
    """Return the api-version of a request, or an empty text."""
    return parse_qs(urlsplit(answer.path).query).get("api-version", [""])[0]


def decoded(answer: Answer) -> Any:
    """Return the body as JSON data, or None."""
    return decoded_body(answer.body)


def decoded_body(body: bytes) -> Any:
    """Return ``body`` as JSON data, or None if it is not JSON, or has too many levels."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return data if _is_flat(data) else None


def _is_flat(data: object) -> bool:
    """Return True if the JSON data has few levels: the checks go down them."""
    level = [data]
    for _number in range(_LEVELS):
        level = [
            each
            for node in level
            if isinstance(node, (dict, list))
            for each in (node.values() if isinstance(node, dict) else node)
        ]
    return not level


def resources_of(event: Mapping[str, Any]) -> list[str]:
    """Return Resources of an event as texts; an empty list if it is not a list."""
    found = event.get("Resources")
    return [str(each) for each in found] if isinstance(found, list) else []


def compute_of(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part compute of instance metadata, or an empty one."""
    found = data.get("compute")
    return found if isinstance(found, dict) else {}


def has_other_primitive(data: Any) -> bool:
    """Return True if the JSON data has a number, a boolean or null."""
    if isinstance(data, dict):
        return any(has_other_primitive(each) for each in data.values())
    if isinstance(data, list):
        return any(has_other_primitive(each) for each in data)
    return not isinstance(data, str)


class Evidence:
    """The recording ``recording`` for the checks."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.answers = recording.answers
        self._runs: dict[int, int] = {}
        run = 0
        for each in recording.lines:
            run += isinstance(each, Begin)
            self._runs[each.line] = run

    def run(self, answer: Answer) -> int:
        """Return the number of the recorder's run of an answer."""
        return self._runs.get(answer.line, 0)

    def probe(self, *names: str) -> list[Answer]:
        """Return the answers to the probes ``names``."""
        return [each for each in self.answers if each.purpose in names]

    @cached_property
    def polls(self) -> list[Answer]:
        """Return the answers to polls, also those without an answer."""
        return self.probe(POLL)

    @cached_property
    def instances(self) -> list[tuple[Answer, Mapping[str, Any]]]:
        """Return the good answers of instance metadata."""
        found = [(each, decoded(each)) for each in self.probe(INSTANCE, NEWEST) if each.status == 200]
        return [(answer, data) for answer, data in found if isinstance(data, dict)]

    @cached_property
    def documents(self) -> list[Document]:
        """Return all good documents of polls."""
        return [found for each in self.polls if (found := self._document(each)) is not None]

    def _document(self, answer: Answer) -> Document | None:
        data = decoded(answer) if answer.status == 200 else None
        if not isinstance(data, dict):
            return None
        incarnation, events = data.get("DocumentIncarnation"), data.get("Events")
        if isinstance(incarnation, bool) or not isinstance(incarnation, int) or not isinstance(events, list):
            return None
        if not all(isinstance(each, dict) for each in events):
            return None
        time = moment(answer.headers.get("date"))
        return Document(
            answer.line,
            self.run(answer),
            answer.time if time is None else time,
            version_of(answer),
            incarnation,
            tuple(events),
            answer,
        )

    @cached_property
    def version(self) -> str:
        """Return the newest version with good documents."""
        return max((each.version for each in self.documents), default="")

    @cached_property
    def history(self) -> list[Document]:
        """Return the good documents of the newest version, in order."""
        return [each for each in self.documents if each.version == self.version]

    def pairs(self) -> list[tuple[Document, Document]]:
        """Return each document of the newest version with the next one."""
        return list(zip(self.history, self.history[1:]))

    @cached_property
    def sightings(self) -> list[Sighting]:
        """Return every event in every document of every version."""
        return [Sighting(document, event) for document in self.documents for event in document.events]

    @cached_property
    def lives(self) -> list[Life]:
        """Return the occurrences of events, in order; an id that returns has two."""
        found: list[Life] = []
        present: dict[str, tuple[Document | None, list[Sighting]]] = {}
        before: Document | None = None
        for document in self.history:
            ids = [id_of(each) for each in document.events]
            for event_id in [each for each in present if each not in ids]:
                begun, sightings = present.pop(event_id)
                found.append(Life(begun, tuple(sightings), document))
            for event in document.events:
                _begun, sightings = present.setdefault(id_of(event), (before, []))
                sightings.append(Sighting(document, event))
            before = document
        found += [Life(begun, tuple(sightings), None) for begun, sightings in present.values()]
        return sorted(found, key=lambda life: life.first.document.line)

    @cached_property
    def name(self) -> str:
        """Return compute.name of this VM, or an empty text."""
        names = [compute_of(data).get("name") for _answer, data in self.instances]
        return next((each for each in reversed(names) if isinstance(each, str)), "")
