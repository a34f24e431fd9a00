# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Answers of a recording to requests that it has, and to others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from imds_simulator.recording.recording_file import FIRST_LINE, Unusable
from imds_simulator.recording.replay_command import Answers, read

EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
PREVIEW = EVENTS.replace("2020-07-01", "2017-03-01")
INSTANCE = "/metadata/instance?api-version=2021-02-01"
NAME = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
METADATA = {"Metadata": "true"}
FIRST, SECOND = {"DocumentIncarnation": 1, "Events": []}, {"DocumentIncarnation": 2, "Events": []}


def line(second: int, path: str, **more: object) -> bytes:
    moment = f"2026-01-31T10:{second // 60:02}:{second % 60:02}.000Z"
    return json.dumps({"time": moment, "path": path, "status": 200, "headers": {}, **more}).encode() + b"\n"


RECORDING = (
    line(0, INSTANCE, body={"compute": {"name": "db1"}}),
    line(1, EVENTS, body=FIRST),
    line(2, PREVIEW, body=FIRST),
    line(90, EVENTS, body=""),
    # the clock of the VM was set back
    line(61, EVENTS, body=SECOND),
    line(70, EVENTS, error="timeout"),
    line(80, EVENTS, status=429, headers={"retry-after": "2", "x-other": "1"}, body={"error": "Too many requests"}),
    line(62, EVENTS.replace("2020-07-01", "1999-01-01"), status=400, body={"error": "Bad request"}),
)


def written(folder: Path, *lines: bytes) -> Path:
    file = folder / "recording"
    file.write_bytes(b"".join((FIRST_LINE, *lines)))
    return file


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    return Answers(read(written(tmp_path, *RECORDING))[0])


@pytest.mark.parametrize(
    ("at", "path", "request_", "status", "body"),
    [
        (0, EVENTS, {}, 200, b'{"DocumentIncarnation":1,"Events":[]}'),
        (60, EVENTS, {}, 200, b'{"DocumentIncarnation":1,"Events":[]}'),
        (75, EVENTS.replace("events", "Events"), {}, 200, b'{"DocumentIncarnation":2,"Events":[]}'),
        (85, EVENTS, {}, 429, b'{"error":"Too many requests"}'),
        (1000, EVENTS, {}, 200, b""),
        (0, EVENTS.replace("2020-07-01", "1999-01-01"), {}, 400, b'{"error":"Bad request"}'),
        (0, INSTANCE, {}, 200, b'{"compute":{"name":"db1"}}'),
        (0, NAME, {}, 200, b"db1"),
        (0, NAME.replace("2021-02-01", "2019-06-01"), {}, 200, b"db1"),
        # the only version that needs no header
        (65, PREVIEW, {"headers": {}}, 200, b'{"DocumentIncarnation":1,"Events":[]}'),
        # requests that the recording lacks
        (65, EVENTS, {"headers": {}}, 400, None),
        (65, EVENTS.replace("2020-07-01", "2019-01-01"), {}, 404, None),
        (65, "/metadata/other", {}, 404, None),
        (65, NAME.replace("name", "none"), {}, 404, None),
        (65, EVENTS, {"method": "POST"}, 405, None),
    ],
)
def test_request_gets_the_answer_of_its_time_or_an_error(
    answers: Answers, at: float, path: str, request_: dict[str, Any], status: int, body: bytes | None
) -> None:
    reply = answers.answer(request_.get("method", "GET"), path, request_.get("headers", METADATA), at)
    assert reply.status == status
    if body is not None:
        assert reply.body == body
        assert dict(reply.headers) == ({"retry-after": "2"} if status == 429 else {})


def test_damaged_lines_are_named_and_the_rest_is_used(tmp_path: Path) -> None:
    damaged = (
        b"\x00\xff\n",
        b"[]\n",
        b"[" * 90000 + b"\n",
        line(0, EVENTS, body=FIRST, status=40),
        line(0, EVENTS, body=FIRST, status="200"),
        line(0, EVENTS, body=FIRST, headers={"date": "1\r\nSet-Cookie: b=2"}),
        line(0, EVENTS, body=FIRST, headers={"date": 1}),
        line(0, EVENTS),
        line(0, EVENTS, body="\ud800"),
        line(0, EVENTS, body=FIRST, time="yesterday"),
        line(0, EVENTS, body=FIRST)[:-9],
    )
    file = written(tmp_path, *RECORDING, *damaged)
    found, problems = read(file)
    assert len(found) == len(RECORDING) - 1
    numbers = range(2 + len(RECORDING), 2 + len(RECORDING) + len(damaged))
    assert [each.split(": ")[0] for each in problems] == [f"{file}:{number}" for number in numbers]


@pytest.mark.parametrize(
    ("lines", "remedy"),
    [
        ((), "record for longer"),
        ((line(0, EVENTS, error="timeout"),), "record for longer"),
        ((line(0, EVENTS)[:-9],), "1 damaged lines; name another file"),
    ],
)
def test_recording_without_answers_is_unusable(tmp_path: Path, lines: tuple[bytes, ...], remedy: str) -> None:
    with pytest.raises(Unusable, match=remedy):
        read(written(tmp_path, *lines))


@pytest.mark.parametrize(
    ("value", "text"), [(True, b"true"), (5, b"5"), ("\ud83d", b"\\ud83d")], ids=["boolean", "number", "half of a pair"]
)
def test_value_of_instance_metadata_that_is_odd_is_shown_as_text(tmp_path: Path, value: object, text: bytes) -> None:
    recorded = line(0, INSTANCE, body={"compute": {"odd": value}})
    answers = Answers(read(written(tmp_path, recorded))[0])
    path = INSTANCE.replace("instance", "instance/compute/odd")
    shown = [answers.answer("GET", path + more, METADATA, 0) for more in ("&format=text", "", "&format=xml")]
    assert [each.status for each in shown] == [200, 400, 400]
    assert shown[0].body == text
