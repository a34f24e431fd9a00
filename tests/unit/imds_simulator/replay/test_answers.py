# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Answers of a replay to requests that the recording has, and to others."""

from __future__ import annotations

import dataclasses
import json

import pytest

from imds_simulator.recording.lines import Answer, Begin, Header
from imds_simulator.recording.reader import Recording
from imds_simulator.replay.answers import Answers, Replayed
from imds_simulator.replay.progress import Progress
from imds_simulator.replay.timeline import Timeline

EVENTS = "/metadata/scheduledevents?api-version="
INSTANCE = "/metadata/instance?api-version=2021-02-01"
METADATA = {"Metadata": "true"}
NOW = 1_800_000_000.0


def answer(line: int, at: float, purpose: str, path: str, body: bytes, **more: object) -> Answer:
    found = Answer(line, NOW + at, at, purpose, "GET", path, METADATA, 0.01, 1, 200, {"server": "IMDS/7"}, body)
    return dataclasses.replace(found, **more)  # type: ignore[arg-type]


def document(incarnation: int) -> bytes:
    return json.dumps({"DocumentIncarnation": incarnation, "Events": []}).encode()


ANSWERS = (
    answer(3, 0, "instance", INSTANCE, b'{"compute":{"name":"db1"}}'),
    answer(4, 0, "poll", EVENTS + "2020-07-01", document(1), seconds=60.0),
    answer(5, 61, "poll", EVENTS + "2019-01-01", document(10)),
    answer(6, 61, "poll", EVENTS + "2020-07-01", document(2)),
    answer(7, 62, "no-version", "/metadata/scheduledevents", b'{"error":"recorded"}', status=400),
    answer(8, 63, "rate-events", EVENTS + "2020-07-01", b"", status=429),
    answer(9, 70, "poll", EVENTS + "2020-07-01", b"", status=0, error="timeout", seconds=10.0),
    answer(10, 90, "poll", EVENTS + "2020-07-01", b'{"Events":[{"NotBefore":"Mon, cut off'),
)


@pytest.fixture
def ask() -> object:
    recording = Recording("r", Header(NOW, "", False), (Begin(2, NOW, 1.0, ()), *ANSWERS), ())
    timeline = Timeline(recording)
    answers = Answers(timeline, Progress(timeline, NOW, 1.0, False, True))

    def ask(at: float, path: str, headers: dict[str, str] | None = None) -> Replayed:
        return answers.answer("GET", path, METADATA if headers is None else headers, NOW + at)

    return ask


@pytest.mark.parametrize(
    ("at", "path", "status", "line"),
    [
        (65, EVENTS + "2020-07-01", 200, 6),
        (65, EVENTS + "2019-01-01", 200, 5),
        # a version without polls: the newest one
        (65, EVENTS + "2017-08-01", 200, 6),
        (1000, EVENTS + "2020-07-01", 200, 10),
        (0, "/metadata/scheduledevents", 400, 7),
        (0, EVENTS + "1999-01-01", 400, 0),
        (0, "/metadata/other", 404, 0),
        (0, INSTANCE, 200, 3),
        (0, "/metadata/instance/compute/name?api-version=2021-02-01&format=text", 200, 3),
        (0, "/metadata/instance/compute/none?api-version=2021-02-01&format=text", 404, 3),
        (0, "/metadata/versions", 200, 0),
    ],
)
def test_request_gets_the_answer_of_its_time(ask, at: float, path: str, status: int, line: int) -> None:
    found = ask(at, path)
    assert (found.reply.status, found.line, found.is_lost) == (status, line, False)


def test_recorded_headers_that_would_end_a_header_or_the_body_are_not_sent() -> None:
    bad = {
        "x-a": "1\r\nSet-Cookie: b=2",
        "x-b\r\nx-c": "3",
        "Content-Length": "1",
        "x-d": "\x07",
        "content-type": "a\nb",
    }
    poll = answer(3, 0, "poll", EVENTS + "2020-07-01", document(1), headers={"server": "IMDS/7", "x-e": "5\t6", **bad})
    timeline = Timeline(Recording("r", Header(NOW, "", False), (Begin(2, NOW, 1.0, ()), poll), ()))
    answers = Answers(timeline, Progress(timeline, NOW, 1.0, False, True))
    reply = answers.answer("GET", EVENTS + "2020-07-01", METADATA, NOW).reply
    assert (reply.headers, reply.content_type) == ((("server", "IMDS/7"), ("x-e", "5\t6")), "")


def test_request_without_header_is_refused(ask) -> None:
    assert ask(65, EVENTS + "2020-07-01", {}).reply.status == 400


def test_slow_answer_is_sent_when_it_arrived(ask) -> None:
    assert ask(5, EVENTS + "2020-07-01").until == NOW + 60
    assert ask(65, EVENTS + "2020-07-01").until == 0


def test_missing_answer_closes_the_connection(ask) -> None:
    found = ask(75, EVENTS + "2020-07-01")
    assert found.is_lost and found.until == NOW + 80


def test_body_that_is_cut_off_stays_as_recorded(ask) -> None:
    assert ask(95, EVENTS + "2020-07-01").reply.body == ANSWERS[-1].body


def test_recorded_header_server_is_sent_and_computed_ones_are_not(ask) -> None:
    assert dict(ask(65, EVENTS + "2020-07-01").reply.headers) == {"server": "IMDS/7"}


def test_run_after_a_restart_of_the_vm_follows_by_wall_time() -> None:
    later = answer(21, 5, "poll", EVENTS + "2020-07-01", document(3), time=NOW + 500)
    lines = (Begin(2, NOW, 1.0, ()), *ANSWERS, Begin(20, NOW + 500, 1.0, ()), later)
    timeline = Timeline(Recording("r", Header(NOW, "", False), lines, ()))
    found = timeline.document("2020-07-01", 499)
    assert found is not None and found.answer.line == 10
    found = timeline.document("2020-07-01", 500)
    assert found is not None and found.answer.line == 21
