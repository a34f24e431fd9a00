# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The lines of a recording as values, and as JSON.

The first line is the header; each further line is the start of a run, an answer, or the end of a run.
"""

from __future__ import annotations

import base64
import binascii
import calendar
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Callable, NamedTuple

from ..times import iso

FORMAT = "imds-recording"
VERSION = 1
POLL = "poll"
INSTANCE = "instance"
NEWEST = "instance-newest"

_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{3})Z")


class LineError(ValueError):
    """A line does not have the form of its kind; the text is the problem."""


class Header(NamedTuple):
    """The first line.

    ``created`` is a Unix time in seconds, ``anonymised`` is True if values were replaced by pseudonyms.
    """

    created: float
    endpoint: str
    anonymised: bool


class Begin(NamedTuple):
    """The start of a run of the recorder; times are Unix times, durations are seconds."""

    line: int
    time: float
    interval: float
    versions: tuple[str, ...]


class End(NamedTuple):
    """The end of a run. A run that was killed has none."""

    line: int
    time: float
    reason: str


@dataclass(frozen=True)
class Answer:
    """One request and its answer.

    Attributes:
        line: number of the line in the file.
        time: Unix time in seconds when the request was sent.
        monotonic: seconds of a clock that is never set, of the same moment; each run has its own zero.
        purpose: "poll", "instance", or the name of a probe.
        method: of the request.
        path: of the request, with the query.
        sent: headers of the request that differ from one request to another.
        seconds: from the request to the end of the answer.
        connection: number of the connection in the run, from 1.
        status: of the answer, or 0 without an answer.
        headers: of the answer, names in lower case.
        body: as it came.
        error: code of the reason why there is no answer, or an empty text.
        removed: True if the recorder left the body out, because it cannot be anonymised.
    """

    line: int
    time: float
    monotonic: float
    purpose: str
    method: str
    path: str
    sent: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    connection: int = 0
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    error: str = ""
    removed: bool = False

    @property
    def question(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        """Method, path and headers of the request; equal for repeated requests."""
        return (self.method, self.path, tuple(sorted(self.sent.items())))


def header_data(header: Header) -> dict[str, Any]:
    """Return the first line as JSON data."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "created": iso(header.created),
        "endpoint": header.endpoint,
        "anonymised": header.anonymised,
    }


def begin_data(begin: Begin) -> dict[str, Any]:
    """Return the start of a run as JSON data."""
    versions = list(begin.versions)
    return {"n": begin.line, "kind": "begin", "time": iso(begin.time), "interval": begin.interval, "versions": versions}


def end_data(end: End) -> dict[str, Any]:
    """Return the end of a run as JSON data."""
    return {"n": end.line, "kind": "end", "time": iso(end.time), "reason": end.reason}


def answer_data(answer: Answer, same: Answer | None) -> dict[str, Any]:
    """Return an answer as JSON data.

    ``same`` is an earlier answer with the same status and body; the line then has its number instead of the body,
    and only the headers that differ from it, None for a missing one.
    """
    request = {"method": answer.method, "path": answer.path, "headers": dict(answer.sent)}
    data: dict[str, Any] = {
        "n": answer.line,
        "kind": "answer",
        "time": iso(answer.time),
        "monotonic": round(answer.monotonic, 3),
        "purpose": answer.purpose,
        "request": request,
        "seconds": round(answer.seconds, 4),
        "connection": answer.connection,
    }
    if answer.error:
        return {**data, "error": answer.error}
    data["status"] = answer.status
    if same is not None:
        changed = {name: value for name, value in answer.headers.items() if same.headers.get(name) != value}
        missing = {name: None for name in same.headers if name not in answer.headers}
        return {**data, "headers": {**changed, **missing}, "same_as": same.line}
    data["headers"] = dict(answer.headers)
    if answer.removed:
        return {**data, "removed": True}
    try:
        return {**data, "body": answer.body.decode("utf-8")}
    except UnicodeDecodeError:
        return {**data, "base64": base64.b64encode(answer.body).decode("ascii")}


def parse_header(data: Any) -> Header:
    """Return the header.

    Raises:
        LineError: this is not the first line of a recording that this program can read.
    """
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise LineError("the first line is not that of a recording")
    if data.get("version") != VERSION:
        raise LineError(f"version {_shown(data.get('version'))} of the format is unknown; use a newer imds_simulator")
    return Header(_time(data, "created"), _text(data, "endpoint"), bool(data.get("anonymised")))


def parse_line(data: Any, earlier: Callable[[int], Answer | None]) -> Begin | End | Answer:
    """Return the value of a decoded line after the first; ``earlier`` returns the answer of a line number, or None.

    Raises:
        LineError: the line has another form, or refers to a line that is not usable.
    """
    if not isinstance(data, dict):
        raise LineError("not a JSON object")
    kind, line = data.get("kind"), _whole(data, "n")
    if kind == "begin":
        versions = data.get("versions")
        if not isinstance(versions, list) or not all(isinstance(each, str) for each in versions):
            raise LineError("versions: not a list of texts")
        return Begin(line, _time(data, "time"), _number(data, "interval"), tuple(versions))
    if kind == "end":
        return End(line, _time(data, "time"), _text(data, "reason"))
    if kind == "answer":
        return _answer(data, line, earlier)
    raise LineError(f"kind: {_shown(kind)} is not begin, answer or end")


def _answer(data: Mapping[str, Any], line: int, earlier: Callable[[int], Answer | None]) -> Answer:
    request = data.get("request")
    if not isinstance(request, dict):
        raise LineError("request: not a JSON object")
    status, headers, body = 0, dict[str, str](), b""
    error = _text(data, "error") if "error" in data else ""
    if not error:
        status = _whole(data, "status")
        if not 200 <= status <= 999:
            raise LineError("status: not a whole number from 200 to 999")
        headers = {key: value for key, value in _texts(data, "headers").items() if value is not None}
        if "same_as" in data:
            same = earlier(_whole(data, "same_as"))
            if same is None:
                raise LineError(f"same_as: line {data['same_as']} is not usable")
            kept = {key: value for key, value in same.headers.items() if key not in data["headers"]}
            headers, body = {**kept, **headers}, same.body
        elif "removed" not in data:
            body = _body(data)
    return Answer(
        line,
        _time(data, "time"),
        _number(data, "monotonic"),
        _text(data, "purpose"),
        _text(request, "method"),
        _text(request, "path"),
        {key: str(value) for key, value in _texts(request, "headers").items()},
        _number(data, "seconds"),
        _whole(data, "connection"),
        status,
        headers,
        body,
        error,
        "removed" in data,
    )


def _body(data: Mapping[str, Any]) -> bytes:
    if "base64" in data:
        try:
            return base64.b64decode(_text(data, "base64"), validate=True)
        except binascii.Error:
            raise LineError("base64: not base64") from None
    return _text(data, "body").encode("utf-8", "surrogatepass")


def _time(data: Mapping[str, Any], key: str) -> float:
    match = _TIME.fullmatch(_text(data, key))
    try:
        if match:
            return calendar.timegm(time.strptime(match[1], "%Y-%m-%dT%H:%M:%S")) + int(match[2]) / 1000
    except ValueError:
        pass
    raise LineError(f"{key}: {_shown(data[key])} is not a time such as 2026-01-31T10:00:00.000Z")


def _shown(value: object) -> str:
    """Return the beginning of a value for a message, without control characters."""
    return repr(value)[:60]


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        raise LineError(f"{key}: not a text")
    return value


def _whole(data: Mapping[str, Any], key: str) -> int:
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise LineError(f"{key}: not a whole number from 0")
    return value


def _number(data: Mapping[str, Any], key: str) -> float:
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12:
        raise LineError(f"{key}: not a number from 0")
    return float(value)


def _texts(data: Mapping[str, Any], key: str) -> Mapping[str, str | None]:
    value = data.get(key)
    if not isinstance(value, dict) or not all(each is None or isinstance(each, str) for each in value.values()):
        raise LineError(f"{key}: not an object of texts")
    return value
