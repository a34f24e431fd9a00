# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The contract of the module imds_exchange as a table of cases, for each implementation of it.

An implementation is a function ``perform(options, environment)``. It runs the module with these options, in a
process whose environment has these additional variables, and returns the module's result as a dictionary.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from support.simulator_process import reserved_port
from support.transport.replies import (
    FIN,
    RST,
    Answer,
    CutShort,
    Flood,
    Hang,
    Raw,
    Received,
    Reply,
    ReplyServer,
    Trickle,
    accepting_nothing,
    serving,
)

Perform = Callable[[Mapping[str, Any], Mapping[str, str]], Mapping[str, Any]]

PATH = "/metadata/scheduledevents?api-version=2020-07-01"
# seconds: far more than an exchange of these cases takes, and less than a reply of the server lasts
MUCH_LONGER = 40.0

DOCUMENT = b'{"DocumentIncarnation":1,"Events":[]}'
# valid UTF-8 beyond the Basic Multilingual Plane, and bytes that are not UTF-8
OTHER_DOCUMENT = '{"DocumentIncarnation":2,"Events":["Prüfung 🎐"]}'.encode() + b"\xff\xfe\x00"
HEADERS = {
    "Metadata": "true",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": "azure-scheduled-events",
}
APPROVAL = '{"StartRequests":[{"EventId":"Prüfung 🎐"}]}'.encode()


class Answered(NamedTuple):
    """The result has this answer."""

    status: int = 200
    body: bytes = DOCUMENT


class Failed(NamedTuple):
    """The result has a failure of this kind, for one of these reasons."""

    kind: str
    connected: bool
    reasons: tuple[str, ...]


class Case(NamedTuple):
    """One call of the module.

    Attributes:
        replies: of the server; empty for a port that refuses connections, None for a server that accepts none.
        options: in addition to ``url``.
        requests: how many requests the server reads.
        seconds: the least time that the call takes.
        environment: additional variables of the module's process.
    """

    name: str
    replies: tuple[Reply, ...] | None
    expected: Answered | Failed
    options: Mapping[str, Any] = {"headers": HEADERS}
    requests: int = 1
    seconds: float = 0.0
    environment: Mapping[str, str] = {}


def sha256(body: bytes) -> str:
    """Return the option ``known_hash`` for this body."""
    return hashlib.sha256(body).hexdigest()


KNOWN = {"headers": HEADERS, "known_hash": sha256(DOCUMENT)}
# a busy machine needs more than a second to send a request
SHORT = {"headers": HEADERS, "timeout": 3.0, "rest_timeout": 0.5}
# a port of the local machine on which no proxy listens
PROXY = "http://127.0.0.1:9"

CASES = (
    Case("get", (Answer(200, DOCUMENT, ('ETag: "1"', "Content-Type: application/json")),), Answered()),
    Case("get-bytes", (Answer(200, OTHER_DOCUMENT),), Answered(body=OTHER_DOCUMENT)),
    Case("get-empty", (Answer(200, b""),), Answered(body=b"")),
    Case(
        "get-chunked",
        (Answer(200, b"5\r\n12345\r\n2\r\n67\r\n0\r\n\r\n", ("Transfer-Encoding: chunked",)),),
        Answered(body=b"1234567"),
    ),
    Case(
        "post",
        (Answer(200, b""),),
        Answered(body=b""),
        {
            "method": "POST",
            "headers": {**HEADERS, "Content-Type": "application/json"},
            "body": base64.b64encode(APPROVAL).decode("ascii"),
        },
    ),
    Case("not-modified", (Answer(304),), Answered(304, b"")),
    # error statuses are results with their bodies
    Case("bad-request", (Answer(400, b'{"error":"Bad request"}'),), Answered(400, b'{"error":"Bad request"}')),
    Case("not-found", (Answer(404, b"x" * 5000),), Answered(404, b"x" * 5000)),
    Case("too-many-requests", (Answer(429, b"later", ("Retry-After: 5",)),), Answered(429, b"later")),
    Case("server-error", (Answer(500, b"failed"),), Answered(500, b"failed")),
    Case("proxy-status", (Answer(407, b"", ("Proxy-Authenticate: Basic",)),), Answered(407, b"")),
    # redirects are not followed
    Case("redirect", (Answer(302, b"moved", ("Location: /elsewhere",)),), Answered(302, b"moved")),
    # no proxy is used
    Case(
        "proxy-set",
        (Answer(200, DOCUMENT),),
        Answered(),
        environment={"http_proxy": PROXY, "HTTP_PROXY": PROXY, "all_proxy": PROXY},
    ),
    # connections that fail
    Case("refused", (), Failed("unreachable", False, ("refused",)), requests=0),
    Case(
        "not-accepted",
        None,
        Failed("unreachable", False, ("timeout",)),
        {"headers": HEADERS, "connect_timeout": 0.5},
        requests=0,
        seconds=0.4,
    ),
    Case("reset", (Raw(end=RST),), Failed("unreachable", True, ("reset",))),
    Case("not-http", (Raw(b"SSH-2.0-OpenSSH_9.2\r\n"),), Failed("unreachable", True, ("protocol", "reset", "other"))),
    # time limits
    Case("hang", (Hang(),), Failed("unreachable", True, ("timeout",)), SHORT, seconds=2.9),
    Case(
        "trickling-header",
        (Trickle(b"HTTP/1.1 200 OK\r\nX-Slow: "),),
        Failed("unreachable", True, ("timeout",)),
        SHORT,
        seconds=0.4,
    ),
    Case(
        "trickling-body",
        (Trickle(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),),
        Failed("unreachable", True, ("timeout",)),
        {**SHORT, "timeout": 30.0},
        seconds=0.4,
    ),
    Case(
        "hanging-body",
        (Trickle(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", 30.0),),
        Failed("unreachable", True, ("timeout",)),
        {**SHORT, "timeout": 30.0},
        seconds=0.4,
    ),
    Case(
        "trickling-error",
        (Trickle(b"HTTP/1.1 500 X\r\nContent-Length: 1000\r\n\r\n"),),
        Failed("unreachable", True, ("timeout",)),
        SHORT,
        seconds=0.4,
    ),
    # answers that are cut short or too long
    Case("cut-short", (CutShort(b"half", 8),), Failed("unreadable", True, ("reset", "other"))),
    Case("cut-short-by-reset", (CutShort(b"half", 8, reset=True),), Failed("unreadable", True, ("reset", "other"))),
    Case(
        "too-long",
        (Answer(200, b"x" * 5000),),
        Failed("unreadable", True, ("too_long",)),
        {"headers": HEADERS, "max_bytes": 4999},
    ),
    # what follows never comes: to read on would end by the time limit
    Case(
        "too-long-without-end",
        (Trickle(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b"x" * 70_000, 30.0),),
        Failed("unreadable", True, ("too_long",)),
        {"headers": HEADERS, "max_bytes": 5000},
    ),
    Case("as-long-as-allowed", (Answer(200, b"x" * 5000),), Answered(body=b"x" * 5000), {"max_bytes": 5000}),
    Case(
        "flood",
        (Flood(100 * 1024 * 1024),),
        Failed("unreadable", True, ("too_long",)),
        {"headers": HEADERS, "timeout": MUCH_LONGER, "rest_timeout": MUCH_LONGER},
    ),
    # repeated requests
    Case(
        "repeat-until-changed",
        (Answer(200, DOCUMENT), Answer(200, DOCUMENT), Answer(200, OTHER_DOCUMENT)),
        Answered(body=OTHER_DOCUMENT),
        {**KNOWN, "repeat_for": 30.0},
        requests=3,
        seconds=1.9,
    ),
    Case(
        "repeat-until-the-time-has-passed",
        (Answer(200, DOCUMENT),),
        Answered(),
        {**KNOWN, "repeat_for": 1.5},
        requests=2,
        seconds=0.9,
    ),
    Case(
        "repeat-until-not-modified",
        (Answer(200, DOCUMENT), Answer(304)),
        Answered(304, b""),
        {**KNOWN, "repeat_for": 30.0},
        requests=2,
    ),
    Case(
        "repeat-until-failure",
        (Answer(200, DOCUMENT), Hang()),
        Failed("unreachable", True, ("timeout",)),
        {**KNOWN, **SHORT, "repeat_for": 30.0},
        requests=2,
        seconds=3.9,
    ),
    Case(
        "repeat-after-the-server-closed-the-kept-connection",
        (Answer(200, DOCUMENT, end=FIN), Answer(200, OTHER_DOCUMENT)),
        Answered(body=OTHER_DOCUMENT),
        {**KNOWN, "repeat_for": 30.0},
        requests=2,
    ),
    Case(
        "repeat-of-a-changed-body-is-one-request",
        (Answer(200, OTHER_DOCUMENT),),
        Answered(body=OTHER_DOCUMENT),
        {**KNOWN, "repeat_for": 30.0},
    ),
    Case("known-body-without-repeat", (Answer(200, DOCUMENT),), Answered(), KNOWN),
)

# options that are refused -> the option that the message names
REFUSED: tuple[tuple[Mapping[str, Any], str], ...] = (
    ({}, "url"),
    ({"url": "https://127.0.0.1:9/"}, "url"),
    ({"url": "not a URL"}, "url"),
    ({"url": "http://127.0.0.1:9/", "method": "DELETE"}, "method"),
    ({"url": "http://127.0.0.1:9/", "headers": "Metadata: true"}, "headers"),
    ({"url": "http://127.0.0.1:9/", "body": "not base64!"}, "body"),
    ({"url": "http://127.0.0.1:9/", "timeout": "soon"}, "timeout"),
    ({"url": "http://127.0.0.1:9/", "timeout": -1}, "timeout"),
    ({"url": "http://127.0.0.1:9/", "repeat_for": 51}, "repeat_for"),
    ({"url": "http://127.0.0.1:9/", "max_bytes": 0}, "max_bytes"),
    ({"url": "http://127.0.0.1:9/", "known_hash": "ABC"}, "known_hash"),
)


def check(case: Case, perform: Perform, clock: Callable[[], float] = time.monotonic) -> None:
    """Perform a case, and compare the result, the requests and the seconds of this clock with the contract."""
    with _server(case) as (url, received):
        started = clock()
        result = perform({"url": url + PATH, **case.options}, case.environment)
        seconds = clock() - started
        requests = list(received)
    assert case.seconds <= seconds < MUCH_LONGER
    assert len(requests) == case.requests
    # a request on a kept connection that the server had closed may have been sent twice
    assert result["requests_sent"] in (case.requests, case.requests + 1)
    assert result["changed"] is False
    assert not result.get("failed")
    # the result is JSON without a further conversion
    assert json.loads(json.dumps(result)) == result
    for request in requests:
        _check_request(request, case.options)
    if isinstance(case.expected, Answered):
        _check_answer(result, case.expected, case.replies)
    else:
        failure = result["failure"]
        assert (failure["kind"], failure["connected"]) == (case.expected.kind, case.expected.connected), failure
        assert failure["reason"] in case.expected.reasons, failure
        assert failure["message"]
        assert "status" not in result


@contextlib.contextmanager
def _server(case: Case) -> Iterator[tuple[str, list[Received]]]:
    if case.replies is None:
        with accepting_nothing() as url:
            yield url, []
    elif not case.replies:
        with reserved_port() as port:
            yield f"http://127.0.0.1:{port}", []
    else:
        server: ReplyServer
        with serving(*case.replies) as server:
            yield server.url, server.received


def _check_request(request: Received, options: Mapping[str, Any]) -> None:
    assert (request.method, request.path) == (options.get("method", "GET"), PATH)
    sent = options.get("headers", {})
    assert {name: request.headers.get(name.lower()) for name in sent} == dict(sent)
    assert request.body == base64.b64decode(options.get("body", ""))
    # an approval is sent at once, without a question whether it may be
    assert "expect" not in request.headers
    assert "x-forwarded-for" not in request.headers


def _check_answer(result: Mapping[str, Any], expected: Answered, replies: tuple[Reply, ...] | None) -> None:
    assert "failure" not in result, result
    assert (result["status"], base64.b64decode(result["body"], validate=True)) == expected
    lines = [line for reply in replies or () if isinstance(reply, Answer) for line in reply.headers]
    names = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in lines}
    headers = {name.lower(): value for name, value in result["headers"]}
    # the coding of the transfer is not a part of the answer for every client
    names.pop("transfer-encoding", None)
    assert {name: headers.get(name) for name in names} == names
