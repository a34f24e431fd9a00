# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A comparison survives values of any type, size and depth."""

from __future__ import annotations

import json
from typing import Any

import pytest

from imds_simulator.comparison.results import compare, table
from imds_simulator.recording.lines import Answer, Header, answer_data, header_data
from imds_simulator.recording.probes import PROBES
from imds_simulator.recording.reader import parse

DEEP: Any = "x"
for _level in range(400):
    DEEP = [DEEP]
VALUES: list[Any] = [5, -1.5, 10**300, None, True, "", "\x1b[2J\u202e", "0" * 100_000, [1, "a", None], {"a": 1}, DEEP]
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
    assert all(each.isprintable() for each in table(compare(recording, True)).splitlines())
