# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Checks of the document (docs/reference/scheduled-events.md 1.4) and of NotBefore (2.3)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Callable

from .evidence import Evidence, Sighting, decoded, has_other_primitive
from .verdict import Verdict, confirms, contradicts, is_open, judged, seen, statement

_MEMBERS = (
    *("EventId", "EventStatus", "EventType", "ResourceType", "Resources", "NotBefore", "Description", "EventSource"),
    "DurationInSeconds",
)
_GUID = re.compile(r"[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}")
_DATE = re.compile(
    r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} "
    r"\d\d:\d\d:\d\d GMT"
)
_ISO = re.compile(r"\d{4}-\d\d-\d\dT.*")
_JSON_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"')
# words of English dates, and the letters of ISO 8601
_DATE_WORDS = frozenset(
    (
        *(
            "mon",
            "tue",
            "wed",
            "thu",
            "fri",
            "sat",
            "sun",
            "jan",
            "feb",
            "mar",
            "apr",
            "may",
            "jun",
            "jul",
            "aug",
            "sep",
        ),
        *("oct", "nov", "dec", "gmt", "utc", "t", "z"),
    )
)
_EVENT = "needs an event"


def _each_event(evidence: Evidence, is_good: Callable[[Any], bool], member: str) -> Verdict:
    """Return the verdict about a member of all events that have it."""
    cases = [each for each in evidence.sightings if member in each.event]
    bad = [each for each in cases if not is_good(each.event[member])]
    remark = f"{member} {str(bad[0].event[member])[:60]!r}" if bad else ""
    return judged(_lines(cases), _lines(bad), _EVENT, remark)


def _lines(sightings: Iterable[Sighting]) -> list[int]:
    return [each.document.line for each in sightings]


@statement("1.4.1", "D")
def shape(evidence: Evidence) -> Verdict:
    """The document is an object with the integer DocumentIncarnation and the array Events."""
    good = {each.line for each in evidence.documents}
    others = [
        each.line
        for each in evidence.polls
        if each.status == 200 and each.line not in good and decoded(each) is not None
    ]
    return judged(sorted(good), others, "needs a good document", "JSON of another form")


@statement("1.4.2", "O")
def compact_and_in_order(evidence: Evidence) -> Verdict:
    """The wire has compact JSON with the members in a fixed order."""
    good: list[int] = []
    bad: list[int] = []
    for document in evidence.documents:
        data = decoded(document.answer)
        ordered = list(data)[:2] == ["DocumentIncarnation", "Events"] and all(
            [name for name in event if name in _MEMBERS] == [name for name in _MEMBERS if name in event]
            for event in document.events
        )
        # the escapes in texts are another matter
        compact = re.search(rb"\s", _JSON_TEXT.sub(b"", document.answer.body)) is None
        (good if ordered and compact else bad).append(document.line)
    return judged(good, bad, "needs a good document", "spaces, or another order")


@statement("1.4.3", "O")
def event_id(evidence: Evidence) -> Verdict:
    """EventId is a GUID in upper case."""
    return _each_event(evidence, lambda value: isinstance(value, str) and bool(_GUID.fullmatch(value)), "EventId")


@statement("1.4.4", "D")
def status(evidence: Evidence) -> Verdict:
    """EventStatus is Scheduled or Started."""
    return _each_event(evidence, lambda value: str(value).lower() in ("scheduled", "started"), "EventStatus")


@statement("1.4.5", "D")
def type_(evidence: Evidence) -> Verdict:
    """EventType is Freeze, Reboot, Redeploy, Preempt, Terminate or SpotRebalanceRecommendation."""
    types = ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate", "SpotRebalanceRecommendation")
    return _each_event(evidence, lambda value: value in types, "EventType")


@statement("1.4.6", "D")
def resource_type(evidence: Evidence) -> Verdict:
    """ResourceType is always VirtualMachine."""
    return _each_event(evidence, lambda value: value == "VirtualMachine", "ResourceType")


@statement("1.4.7", "D")
def source(evidence: Evidence) -> Verdict:
    """EventSource is Platform or User."""
    return _each_event(evidence, lambda value: str(value).lower() in ("platform", "user"), "EventSource")


@statement("1.4.8", "O")
def varying_case(evidence: Evidence) -> Verdict:
    """The letter case of EventStatus and EventSource may vary."""
    usual = ("Scheduled", "Started", "Platform", "User")
    other = [
        each
        for each in evidence.sightings
        for name in ("EventStatus", "EventSource")
        if each.event.get(name, "User") not in usual and str(each.event[name]).title() in usual
    ]
    return seen(_lines(other), "the letter case did not vary")


@statement("1.4.9", "D, O")
def duration(evidence: Evidence) -> Verdict:
    """DurationInSeconds is a whole number from -1."""
    return _each_event(
        evidence, lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= -1,
        "DurationInSeconds",
    )  # fmt: skip


@statement("1.4.10", "O")
def description(evidence: Evidence) -> Verdict:
    """Description is free text and may be empty."""
    cases = [each for each in evidence.sightings if "Description" in each.event]
    bad = [each for each in cases if not isinstance(each.event["Description"], str)]
    if bad:
        return contradicts(_lines(bad), "not a text")
    return seen([each.document.line for each in cases if not each.event["Description"]], "no description was empty")


@statement("1.4.11", "D")
def several_events(evidence: Evidence) -> Verdict:
    """One document may have several events."""
    return seen([each.line for each in evidence.documents if len(each.events) > 1], "no document had several events")


@statement("1.4.13", "O")
def empty_body(evidence: Evidence) -> Verdict:
    """An answer 200 may have an empty body."""
    empty = [each.line for each in evidence.polls if each.status == 200 and not each.body and not each.removed]
    return seen(empty, "no answer 200 had an empty body")


@statement("1.4.14", "O")
def response_headers(evidence: Evidence) -> Verdict:
    """Answers have Content-Type, Server: IMDS/..., Date and Content-Length."""
    good: list[int] = []
    bad: list[int] = []
    for each in evidence.documents:
        headers = each.answer.headers
        expected = (
            headers.get("content-type", "").lower() == "application/json; charset=utf-8"
            and headers.get("server", "").startswith("IMDS/")
            and {"date", "content-length"} <= set(headers)
        )
        (good if expected else bad).append(each.line)
    return judged(good, bad, "needs a good document", "a header is missing, or has another form")


@statement("1.4.15", "D")
def numbers(evidence: Evidence) -> Verdict:
    """Numbers in the document are JSON numbers; in instance metadata all primitives are strings."""
    bad_events = [
        each.document.line for each in evidence.sightings if isinstance(each.event.get("DurationInSeconds"), str)
    ]
    bad_instances = [answer.line for answer, data in evidence.instances if has_other_primitive(data)]
    if bad_events or bad_instances:
        return contradicts(bad_events + bad_instances)
    if not evidence.documents or not evidence.instances:
        return is_open("needs a good document and instance metadata")
    return confirms([evidence.documents[0].line, evidence.instances[0][0].line])


def _scheduled(evidence: Evidence) -> list[Sighting]:
    return [each for each in evidence.sightings if each.status == "scheduled"]


def _text(sighting: Sighting) -> str:
    return str(sighting.event.get("NotBefore", ""))


@statement("2.3.1", "D")
def date_form(evidence: Evidence) -> Verdict:
    """NotBefore of a Scheduled event has the form of RFC 1123, in GMT."""
    cases = _scheduled(evidence)
    good = [each for each in cases if _DATE.fullmatch(_text(each))]
    # invalid dates occur (docs/reference/scheduled-events.md 2.3)
    is_date = [each for each in cases if each.not_before is not None or _ISO.fullmatch(_text(each))]
    bad = [each for each in is_date if not _DATE.fullmatch(_text(each))]
    return judged(_lines(good), _lines(bad), "needs a Scheduled event with a date", _text(bad[0])[:60] if bad else "")


@statement("2.3.2", "D")
def blank_once_started(evidence: Evidence) -> Verdict:
    """NotBefore is empty once the event is Started."""
    cases = [each for each in evidence.sightings if each.status == "started"]
    return judged(_lines(cases), _lines(each for each in cases if _text(each)), "needs a Started event", "not empty")


@statement("2.3.3", "O")
def never_iso(evidence: Evidence) -> Verdict:
    """The wire never had ISO 8601, in old versions either."""
    cases = [each for each in _scheduled(evidence) if each.document.version < "2020-07-01"]
    bad = [each for each in evidence.sightings if _ISO.fullmatch(_text(each))]
    return judged(_lines(cases), _lines(bad), "needs a Scheduled event in an older version (--api-version)", "ISO 8601")


@statement("2.3.4", "O")
def invalid_dates(evidence: Evidence) -> Verdict:
    """Invalid dates occur."""
    invalid = [each for each in _scheduled(evidence) if each.not_before is None and not _ISO.fullmatch(_text(each))]
    return seen(_lines(invalid), "all dates were valid")


@statement("2.3.5", "D?")
def started_with_date(evidence: Evidence) -> Verdict:
    """A Started event may have a date."""
    return seen(
        [each.document.line for each in evidence.sightings if each.status == "started" and _text(each)],
        "no Started event had a date",
    )


@statement("2.3.6", "A")
def moving_date(evidence: Evidence) -> Verdict:
    """NotBefore of a Scheduled event may change."""
    moved = [
        two.document.line
        for life in evidence.lives
        for one, two in life.steps()
        if one.status == two.status == "scheduled" and _text(one) != _text(two)
    ]
    return seen(moved, "no NotBefore changed")


def _is_translated(text: str) -> bool:
    """Return True if a text with a year has other words than English dates have; other texts are not dates."""
    words = re.findall(r"[^\W\d_]+", text)
    return re.search(r"[0-9]{4}", text) is not None and not {word.lower() for word in words} <= _DATE_WORDS


@statement("2.3.7", "D")
def never_translated(evidence: Evidence) -> Verdict:
    """The wire never has translated dates."""
    cases = [each for each in evidence.sightings if _text(each)]
    bad = [each for each in cases if _is_translated(_text(each))]
    return judged(_lines(cases), _lines(bad), _EVENT, _text(bad[0])[:60] if bad else "")
