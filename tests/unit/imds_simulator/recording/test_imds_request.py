# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The recorder's request ends in time, whatever the server sends."""

from __future__ import annotations

import time

import pytest

from imds_simulator.recording.imds_request import MAX_BODY, Reply, get
from imds_simulator.scenario.groups import parse_address
from support.transport import replies
from support.transport.replies import Answer, CutShort, Raw, Trickle, serving

OK = b"HTTP/1.1 200 OK\r\n"
REDIRECT = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n"
TOO_LARGE = b"\r\n" + b"x" * (MAX_BODY + 65536)
# seconds between the pieces of an answer
SOON, LATE = 0.05, 30.0


def ask(reply: replies.Reply, timeout: float = 10.0) -> Reply:
    with serving(reply) as server:
        return get(parse_address(server.url.partition("://")[2]), "/metadata", timeout)


@pytest.mark.parametrize(
    ("reply", "timeout", "error"),
    [
        (Trickle(OK + b"Content-Length: 1000\r\n\r\n", SOON), 0.2, "timeout"),
        (Trickle(OK, SOON, b"X: y\r\n"), 0.2, "timeout"),
        (Trickle(b"", SOON, b"HTTP/1.1 100 Continue\r\n\r\n"), 0.2, "timeout"),
        # a client that reads on has no more before its deadline
        (Trickle(OK + TOO_LARGE, LATE), 10.0, "too-large"),
        (Trickle(REDIRECT + TOO_LARGE, LATE), 10.0, "too-large"),
        (CutShort(b"ab", 9), 10.0, "IncompleteRead"),
        (Raw(), 10.0, "RemoteDisconnected"),
        (Raw(b"hello\r\n"), 10.0, "BadStatusLine"),
    ],
    ids=["body", "headers", "continue", "endless", "endless-redirect", "cut", "empty", "not-http"],
)
def test_answer_that_never_ends_or_is_not_whole_is_an_error(reply: replies.Reply, timeout: float, error: str) -> None:
    began = time.monotonic()
    outcome = ask(reply, timeout)
    assert (outcome.status, outcome.error) == (0, error) and time.monotonic() - began < 5


@pytest.mark.parametrize("location", ["http://127.0.0.1:1/", "http://[", "//"])
def test_redirect_is_recorded_and_not_followed(location: str) -> None:
    outcome = ask(Answer(302, b"abc", (f"Location: {location}",)))
    assert (outcome.status, outcome.body, outcome.headers["location"]) == (302, b"abc", location)


def test_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    outcome = ask(Answer(body=b"ok"))
    assert (outcome.status, outcome.body) == (200, b"ok")
