# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Answers of a recording to requests that it has, and to others."""

from __future__ import annotations

import dataclasses

import pytest

from imds_simulator.recording.lines import Answer
from imds_simulator.replay.answers import Answers

EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
INSTANCE = "/metadata/instance?api-version=2021-02-01"
NAME = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
METADATA = {"Metadata": "true"}
NOW = 1_800_000_000.0


def answer(at: float, purpose: str, path: str, body: bytes, **more: object) -> Answer:
    found = Answer(2, NOW + at, at, purpose, "GET", path, METADATA, 0.01, 1, 200, {"server": "IMDS/7"}, body)
    return dataclasses.replace(found, **more)  # type: ignore[arg-type]


ANSWERS = Answers(
    [
        answer(0, "instance", INSTANCE, b'{"compute":{"name":"db1"}}'),
        answer(1, "poll", EVENTS, b"first"),
        answer(61, "poll", EVENTS, b"second"),
        answer(62, "no-version", "/metadata/scheduledevents", b"recorded error", status=400),
        answer(63, "rate-events", EVENTS, b"", status=429),
        answer(70, "poll", EVENTS, b"", status=0, error="timeout"),
        answer(90, "poll", EVENTS, b'{"Events":[{"NotBefore":"Mon, cut off'),
    ]
)


@pytest.mark.parametrize(
    ("at", "path", "status", "body"),
    [
        (0, EVENTS, 200, b"first"),
        (60, EVENTS, 200, b"first"),
        (65, EVENTS, 200, b"second"),
        (75, EVENTS, 200, b"second"),
        (1000, EVENTS, 200, b'{"Events":[{"NotBefore":"Mon, cut off'),
        (0, "/metadata/scheduledevents", 400, b"recorded error"),
        (0, INSTANCE, 200, b'{"compute":{"name":"db1"}}'),
        (0, NAME, 200, b"db1"),
    ],
)
def test_request_gets_the_answer_of_its_time(at: float, path: str, status: int, body: bytes) -> None:
    reply = ANSWERS.answer("GET", path, {"METADATA": "True"}, at)
    assert (reply.status, reply.body) == (status, body)


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", EVENTS, {}, 404),
        ("GET", EVENTS, {**METADATA, "X-Forwarded-For": "1"}, 404),
        ("GET", "/metadata/other", METADATA, 404),
        ("GET", NAME.replace("name", "none"), METADATA, 404),
        ("POST", EVENTS, METADATA, 405),
    ],
)
def test_request_that_the_recording_lacks_is_an_error(
    method: str, path: str, headers: dict[str, str], status: int
) -> None:
    assert ANSWERS.answer(method, path, headers, 65).status == status


def test_recorded_headers_that_would_end_a_header_or_the_body_are_not_sent() -> None:
    bad = {
        "x-a": "1\r\nSet-Cookie: b=2",
        "x-b\r\nx-c": "3",
        "Content-Length": "1",
        "x-d": "\x07",
        "content-type": "a\nb",
    }
    poll = answer(0, "poll", EVENTS, b"", headers={"server": "IMDS/7", "x-e": "5\t6", **bad})
    reply = Answers([poll]).answer("GET", EVENTS, METADATA, 0)
    assert (reply.headers, reply.content_type) == ((("server", "IMDS/7"), ("x-e", "5\t6")), "")
