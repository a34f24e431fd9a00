# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The kinds of faults with their names, meanings and options."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..header_text import is_header_name, is_header_value
from ..moments import Moment, When, parse_when
from ..times import parse_duration, parse_signed_duration
from .fault import ARM_ROUTE, NOTIFY_ROUTE, Fault


@dataclass(frozen=True)
class Kind:
    """A kind of fault: its action, default options and allowed options."""

    action: str
    meaning: str
    options: Mapping[str, Any] = field(default_factory=dict)
    allowed_options: tuple[str, ...] = ()


_ANSWER = ("headers", "body", "body_base64", "content_type", "retry_after", "retry_after_format")
# faults of a notification, which is a request of the simulator
_NOTIFY_ACTIONS = ("lost-request", "lost-answer", "delay")
_HTML = "<html><head><title>Sign in</title></head><body><h1>Proxy</h1></body></html>"


def _status(status: int, meaning: str, **options: Any) -> Kind:
    return Kind("status", meaning, {"status": status, **options}, _ANSWER)


def _body(body: str, meaning: str, content_type: str = "application/json; charset=utf-8") -> Kind:
    return Kind("body", meaning, {"status": 200, "body": body, "content_type": content_type}, ("headers",))


KINDS: Mapping[str, Kind] = {
    "status": Kind("status", "any status; body defaults to the general error shape", {}, ("status", *_ANSWER)),
    "bad-request": _status(400, "400"),
    "not-found": _status(404, "404: the endpoint is updating"),
    "gone": _status(410, "410: the host is being updated; at most 70 s according to Azure"),
    "too-many-requests": _status(429, "429 at any rate of requests", message="Too many requests"),
    "server-error": _status(500, "500"),
    "unavailable": _status(503, "503"),
    "forbidden-html": Kind(
        "status",
        "403 and HTML: a proxy answered, not IMDS",
        {"status": 403, "body": _HTML, "content_type": "text/html"},
        ("headers",),
    ),
    "body": Kind("body", "200 and any body", {"status": 200}, _ANSWER),
    "empty": _body("", "200 and no body"),
    "html": _body(_HTML, "200 and HTML", "text/html"),
    "not-json": _body("Service is starting", "200 and plain text", "text/plain"),
    "null": _body("null", "200 and null"),
    "list": _body("[]", "200 and []"),
    "object": _body("{}", "200 and {}"),
    "events-null": _body('{"DocumentIncarnation":1,"Events":null}', "200 and Events null"),
    "bom": Kind("mangle", "the normal body after a UTF-8 byte order mark", {"how": "bom"}),
    "invalid-utf8": Kind("mangle", "the normal body with bytes that are not UTF-8", {"how": "invalid-utf8"}),
    "cut-json": Kind(
        "mangle", "the first half of the normal body, with the Content-Length of that half", {"how": "cut"}
    ),
    "oversized": Kind(
        "oversized", "the normal body, padded with spaces to that size in bytes", {"size": 16 * 1024 * 1024}, ("size",)
    ),
    "truncated": Kind(
        "truncate", "the connection closes before Content-Length is reached", {"how": "length"}, ("keep",)
    ),
    "truncated-chunked": Kind("truncate", "the connection closes inside a chunked body", {"how": "chunked"}, ("keep",)),
    "trickle": Kind(
        "trickle",
        "the normal answer, a few bytes per second (real time)",
        {"part": "body", "bytes_per_second": 1.0},
        ("bytes_per_second", "part"),
    ),
    "trickle-header": Kind(
        "trickle",
        "as trickle, beginning with the status line",
        {"part": "header", "bytes_per_second": 1.0},
        ("bytes_per_second",),
    ),
    "hang": Kind("hang", "no answer until the fault is over, then the connection is closed"),
    "delay": Kind("delay", "the normal answer after a delay", {"delay": 10.0}, ("delay",)),
    "slow-first-answer": Kind("delay", "each VM's first answer after a delay", {"delay": 119.0}, ("delay",)),
    "refuse": Kind("refuse", "connection refused: the listening socket is closed for the window"),
    "reset": Kind("reset", "the connection is reset (RST) instead of an answer"),
    "redirect": Kind(
        "status",
        "302 to another address",
        {"status": 302, "body": "", "location": "http://127.0.0.1:9/"},
        ("status", "location", "headers"),
    ),
    "lost-request": Kind("lost-request", "the connection is reset before the service acts"),
    "lost-answer": Kind("lost-answer", "the service acts, then the connection is reset"),
    "date-skew": Kind("date-skew", "the normal answer with a wrong Date header", {"skew": 1200.0}, ("skew",)),
    "close-idle": Kind(
        "close-idle",
        "the normal answer, then the server closes the kept-alive connection without notice",
        {"idle": 0.05},
        ("idle",),
    ),
}


class FaultError(ValueError):
    """A fault is invalid; ``key`` is the key with the problem."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def fault_from(data: Mapping[str, Any]) -> Fault:
    """Return the fault that ``data`` describes, which fits the schema.

    Raises:
        FaultError: ``data`` has a problem that a schema cannot detect.
    """
    kind = KINDS[data["kind"]]
    options = {**kind.options, **{name: data[name] for name in OPTION_KEYS if name in data}}
    for name in OPTION_KEYS:
        if name in data and name not in kind.allowed_options:
            takes = ", ".join(kind.allowed_options) if kind.allowed_options else "no options"
            raise FaultError(name, f"fault {data['kind']} does not take {name} (it takes {takes})")
    if kind.action == "status" and "status" not in options:
        raise FaultError("status", "the key status is missing; fault status needs the status of the answer")
    _read_options(options)
    requests = (
        "1" if data["kind"] == "slow-first-answer" and "requests" not in data else str(data.get("requests", "1-"))
    )
    if kind.action == "refuse" and ("requests" in data or data.get("route", "any") != "any" or "method" in data):
        raise FaultError("kind", "refuse does not take requests, route or method; it takes from, to and for")
    _check_route(kind.action, data)
    first, last = _window(requests)
    begins = parse_when(data.get("from", 0))
    vms = data.get("vm", ())
    return Fault(
        kind=data["kind"],
        action=kind.action,
        route=data.get("route", "any"),
        method=data.get("method", "any"),
        vms=(vms,) if isinstance(vms, str) else tuple(vms),
        first=first,
        last=last,
        begins=begins,
        ends=_end(data, begins),
        options=options,
        place=data.get("place", ()),
    )


def _check_route(action: str, data: Mapping[str, Any]) -> None:
    route, method = data.get("route", "any"), data.get("method", "any")
    if route == NOTIFY_ROUTE and action not in _NOTIFY_ACTIONS:
        raise FaultError("kind", f"a notification takes only the faults {', '.join(_NOTIFY_ACTIONS)}")
    if route in (ARM_ROUTE, NOTIFY_ROUTE) and method not in ("any", "POST"):
        raise FaultError("method", f"route {route} has POST requests only")


OPTION_KEYS = (
    "status",
    "headers",
    "body",
    "body_base64",
    "content_type",
    "retry_after",
    "retry_after_format",
    "size",
    "keep",
    "bytes_per_second",
    "part",
    "delay",
    "location",
    "skew",
    "idle",
)


def _read_options(options: dict[str, Any]) -> None:
    for name in ("delay", "retry_after", "idle"):
        if name in options:
            options[name] = parse_duration(options[name])
    if "skew" in options:
        options["skew"] = parse_signed_duration(options["skew"])
    _require_one_line(options)
    if "body_base64" in options:
        try:
            options["body"] = base64.b64decode(options.pop("body_base64"), validate=True)
        except ValueError:
            raise FaultError("body_base64", "not base64") from None
    elif isinstance(options.get("body"), str):
        # JSON may have half of a pair, which UTF-8 has not
        options["body"] = options["body"].encode(errors="backslashreplace")


def _require_one_line(options: Mapping[str, Any]) -> None:
    """Reject line breaks: text after a line break would be another header."""
    for name, value in options.get("headers", {}).items():
        if not is_header_name(name):
            raise FaultError("headers", f"{name!r} is not the name of a header")
        if not is_header_value(str(value)):
            raise FaultError("headers", f"the value of {name} has more than one line, or a control character")
    for key in ("location", "content_type"):
        if not is_header_value(str(options.get(key, ""))):
            raise FaultError(key, f"{key} has more than one line, or a control character")


def _window(requests: str) -> tuple[int, int | None]:
    """Return the first and the last request of a window.

    ``3`` is the third, ``3-`` from the third on, ``3-5`` the third to the fifth.
    """
    first, dash, last = requests.partition("-")
    if not dash:
        return int(first), int(first)
    if last and int(last) < int(first):
        raise FaultError("requests", "the last request comes before the first")
    return int(first), int(last) if last else None


def _end(data: Mapping[str, Any], begins: When) -> When:
    if "to" in data and "for" in data:
        raise FaultError("for", "give either to or for, not both")
    if "for" in data:
        lasts = parse_duration(data["for"])
        return begins._replace(later=lasts) if isinstance(begins, Moment) else begins + lasts
    if "to" not in data:
        return float("inf")
    end = parse_when(data["to"])
    if isinstance(end, Moment) != isinstance(begins, Moment):
        if "from" in data:
            raise FaultError("to", "from and to are a duration and a time; give two durations or two times")
    elif end < begins:  # type: ignore[operator]  # both are of one type
        raise FaultError("to", "the fault ends before it begins")
    return end
