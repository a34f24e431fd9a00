# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The input of a hook has all that the record of its event knows."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

from azure_scheduled_events.document import ScheduledEvent, parse_document
from hook_runner.hooks.inputs import input_of
from hook_runner.records import ACCEPTED, SENT, EventRecord

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def record(**changed: Any) -> EventRecord:
    usual: dict[str, Any] = {
        "event_id": "C7061BAC-AFDC-4513-B24B-AA5F13A16123",
        "event_type": "Freeze",
        "status": "Scheduled",
        "resources": ("vm_1", "vm_2"),
        "resource_type": "VirtualMachine",
        "not_before": NOW + timedelta(seconds=600.7),
        "description": "Host maintenance",
        "source": "Platform",
        "duration": timedelta(seconds=9),
    }
    return EventRecord(1, 2, ScheduledEvent(**{**usual, **changed}), NOW - timedelta(minutes=5))


def test_the_variables_tell_the_event() -> None:
    assert input_of(record(), "prepare", "vm_1", NOW, 595.9)[1] == {
        "EVENT_ID": "C7061BAC-AFDC-4513-B24B-AA5F13A16123",
        "EVENT_TYPE": "Freeze",
        "EVENT_STATUS": "Scheduled",
        "EVENT_SOURCE": "Platform",
        "EVENT_RESOURCES": "vm_1 vm_2",
        "EVENT_RESOURCE_TYPE": "VirtualMachine",
        "EVENT_DESCRIPTION": "Host maintenance",
        "EVENT_NOT_BEFORE": "2026-11-21T12:10:00Z",
        "EVENT_SECONDS_LEFT": "600",
        "EVENT_DURATION": "9",
        "EVENT_STAGE": "prepare",
        "EVENT_OUTCOME": "",
        "EVENT_RESOURCE": "vm_1",
        "EVENT_FIRST_SEEN": "2026-11-21T11:55:00Z",
        "HOOK_SECONDS": "595",
    }


def test_stdin_is_the_event_in_the_common_shape_and_the_rest() -> None:
    known = record()
    known.approval = ACCEPTED
    known.outcome = "completed"
    given, variables = input_of(known, "recover", "vm_1", NOW, 595.9)
    assert variables["EVENT_OUTCOME"] == "completed"
    assert given.endswith(b"}\n")
    assert json.loads(given) == {
        **known.event.as_dict(),
        "stage": "recover",
        "outcome": "completed",
        "resource_name": "vm_1",
        "seconds_left": 600,
        "first_seen": "2026-11-21T11:55:00Z",
        "life": 2,
        "approved": True,
        "hook_seconds": 595,
    }
    known.approval = SENT
    assert json.loads(input_of(known, "recover", "vm_1", NOW, None)[0])["approved"] is False


def test_what_is_not_known_is_empty_and_null() -> None:
    unknown = record(
        event_type="",
        status="",
        resources=(),
        resource_type=None,
        not_before=None,
        description=None,
        source=None,
        duration=None,
    )
    stdin, variables = input_of(unknown, "started", "", NOW, None)
    assert {name for name, value in variables.items() if value} == {
        "EVENT_ID",
        "EVENT_SECONDS_LEFT",
        "EVENT_STAGE",
        "EVENT_FIRST_SEEN",
    }
    assert variables["EVENT_SECONDS_LEFT"] == "0"
    assert json.loads(stdin)["hook_seconds"] is None


def test_the_kernel_takes_the_variables_of_the_worst_event() -> None:
    worst = "\U0001f600" * 100000
    known = record(
        event_id=worst,
        event_type=worst,
        status=worst,
        resources=(worst,) * 50,
        resource_type=worst,
        description=worst,
        source=worst,
    )
    variables = input_of(known, worst, worst, NOW, 1e9)[1]
    done = subprocess.run(["/usr/bin/env", "-0"], env=variables, capture_output=True, check=True)
    assert done.stdout.count(b"\0") == 15


def test_a_document_with_half_characters_reaches_the_hook() -> None:
    (event,) = parse_document(
        r'{"Events": [{"EventId": "\ud800", "Resources": ["\udfff"], "Description": "\u0000\u001b"}]}'
    ).events
    stdin, variables = input_of(EventRecord(1, 1, event, NOW), "prepare", "vm", NOW, 5)
    assert variables["EVENT_DESCRIPTION"] == "??"
    assert variables["EVENT_ID"] == r"\ud800"
    assert json.loads(stdin)["description"] == "\0\x1b"
