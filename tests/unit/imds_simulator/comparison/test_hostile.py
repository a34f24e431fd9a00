# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A comparison and a replay survive values of any type, size and depth."""

from __future__ import annotations

import json
from typing import Any

import pytest

from imds_simulator.comparison.results import compare, table
from imds_simulator.recording.lines import Answer, Header, answer_data, header_data
from imds_simulator.recording.probes import PROBES
from imds_simulator.recording.reader import parse
from imds_simulator.replay.answers import Answers
from imds_simulator.replay.progress import Progress
from imds_simulator.replay.timeline import Timeline

DEEP: Any = "x"
for _level in range(400):
    DEEP = [DEEP]
VALUES: list[Any] = [5, -1.5, 10**300, None, True, "", "\x1b[2J\u202e", "0" * 100_000, [1, "a"], {"a": 1}, DEEP]
MEMBERS = ("EventId", "EventStatus", "EventType", "ResourceType", "Resources", "NotBefore", "Description")


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_comparison_survives_any_value(value: Any) -> None:
    good = {"EventId": "A", "EventStatus": "Scheduled", "EventType": "Terminate", "Resources": ["a"], "NotBefore": ""}
    bodies: list[tuple[str, Any]] = [("poll", value), ("instance", value), ("instance", {"compute": value})]
    bodies += [("poll", {"DocumentIncarnation": 1, "Events": [{**good, name: value}]}) for name in MEMBERS]
    bodies += [("poll", {"DocumentIncarnation": value, "Events": value})]
    compute = dict.fromkeys(("name", "osProfile", "tagsList", "storageProfile", "host", "vmScaleSetName"), value)
    bodies += [("instance", {"compute": compute})]
    bodies += [(each.name, {"error": value, "newest-versions": value, "apiVersions": value}) for each in PROBES]
    header = header_data(Header(0.0, "http://x", False))
    answers = [
        answer_data(Answer(line, line, line, name, "GET", "/x", status=status, body=json.dumps(body).encode()), None)
        for line, (name, body, status) in enumerate(((*each, status) for each in bodies for status in (200, 400)), 2)
    ]
    recording = parse([json.dumps(each).encode() + b"\n" for each in (header, *answers)], "recording")
    assert recording.problems == () and len(recording.answers) == len(answers)
    replay = Answers(timeline := Timeline(recording), Progress(timeline, 0.0, 1.0, True, True))
    headers, events = {"Metadata": "true"}, "/metadata/scheduledevents?api-version=2020-07-01"
    for at in range(0, len(answers), 2):
        assert replay.answer("GET", events, headers, at).reply.status in (200, 400)
        assert replay.approve(events, headers, b'{"StartRequests":[{"EventId":"A"}]}', at).reply.status in (200, 400)
        assert replay.answer("GET", "/metadata/instance/compute?api-version=2021-02-01", headers, at).reply.status > 0
    assert all(each.isprintable() for each in table(compare(recording, True)).splitlines())


@pytest.mark.parametrize(
    ("member", "value"), [("seconds", -1), ("monotonic", -1e9), ("status", 10**9), ("kind", "x" * 999)]
)
def test_line_with_impossible_number_is_left_out(member: str, value: Any) -> None:
    data = {**answer_data(Answer(2, 0.0, 0.0, "poll", "GET", "/x", status=200), None), member: value}
    lines = [header_data(Header(0.0, "http://x", False)), data]
    recording = parse([json.dumps(each).encode() + b"\n" for each in lines], "recording")
    assert recording.lines == () and len(recording.problems[0]) < 200
