# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The input of a hook is complete, and printable for all names and texts that IMDS sends."""

from __future__ import annotations

import json
import random
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from azure_scheduled_events.document import ScheduledEvent, parse_document
from hook_runner.hooks.inputs import MAX_LIST, MAX_VALUE, event_environment, event_json
from hook_runner.records import ACCEPTED, SENT, EventRecord

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HOSTILE_TEXTS = [
    "\0",
    "a\0b",
    "a\nb",
    "a\r\nb",
    "\x1b[31m",
    "\x1b]0;title\x07",
    "\x7f",
    "\x85",
    "\x9b",
    "\u2028",
    "\u2029",
    "\u202e",
    "\u200b",
    "\ufeff",
    "\ud800",
    "\udfff",
    "\ud83d\ude00",
    "x\ud800y",
    "\U0001f600",
    "ä" * 9000,
    "x" * 100000,
    "\n" * 100000,
    "$(id)",
    "`id`",
    "; rm -rf /",
    "'",
    '"',
    "\\",
    "../../etc/passwd",
    "-rf",
    "a b",
    "a\tb",
    "a\u00a0b",
    "a\u3000b",
    " ",
    "",
    "EVENT_ID=x",
    "=",
    "%s%n",
    "\udcff",
    "\U0010ffff",
    "\ue000",
]


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
    assert event_environment(record(), "prepare", "vm_1", NOW, 595.9) == {
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
    given = event_json(known, "recover", "vm_1", NOW, 595.9)
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
    assert json.loads(event_json(known, "recover", "vm_1", NOW, None))["approved"] is False


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
    given = event_environment(unknown, "started", "", NOW, None)
    assert {name for name, value in given.items() if value} == {
        "EVENT_ID",
        "EVENT_SECONDS_LEFT",
        "EVENT_STAGE",
        "EVENT_FIRST_SEEN",
    }
    assert given["EVENT_SECONDS_LEFT"] == "0"
    assert json.loads(event_json(unknown, "started", "", NOW, None))["hook_seconds"] is None


def is_safe(value: str, longest: int) -> bool:
    return value.isprintable() and "\0" not in value and len(value.encode("utf-8")) <= longest


@pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
@pytest.mark.parametrize(
    "field", ["event_id", "event_type", "status", "source", "resource_type", "description", "resources", "own_name"]
)
def test_hostile_texts_are_printable_in_every_variable(field: str, text: str) -> None:
    changed = {} if field == "own_name" else {field: (text, "vm_2") if field == "resources" else text}
    known = record(**changed)
    own_name = text if field == "own_name" else "vm_1"
    given = event_environment(known, "prepare", own_name, NOW, 5)
    assert all(is_safe(value, MAX_LIST if name == "EVENT_RESOURCES" else MAX_VALUE) for name, value in given.items())
    assert len(given["EVENT_RESOURCES"].split()) == 2 or given["EVENT_RESOURCES"].endswith("...")
    assert json.loads(event_json(known, "prepare", own_name, NOW, 5))["stage"] == "prepare"


def any_character(chance: random.Random) -> int:
    return chance.choice(
        (chance.randrange(160), chance.randrange(0x3000), chance.randrange(0xD000, 0xE100), chance.randrange(0x110000))
    )


def test_random_texts_are_harmless_in_every_variable_and_on_stdin() -> None:
    chance = random.Random(7)
    for _turn in range(300):
        texts = ["".join(chr(any_character(chance)) for _place in range(chance.randrange(40))) for _text in range(5)]
        known = record(
            event_id=texts[0], event_type=texts[1], resources=tuple(texts), description=texts[2], source=texts[3]
        )
        given = event_environment(known, "prepare", texts[4], NOW, 5)
        assert all(is_safe(value, MAX_VALUE) for value in given.values())
        assert len(given["EVENT_RESOURCES"].split()) == 5
        assert event_json(known, "prepare", texts[4], NOW, 5).isascii()


def test_a_long_list_is_cut_at_its_own_length_and_says_so() -> None:
    given = event_environment(
        record(resources=tuple(f"vm_{number:06d}" for number in range(100000))), "prepare", "vm_1", NOW, 5
    )
    assert len(given["EVENT_RESOURCES"]) == MAX_LIST
    assert given["EVENT_RESOURCES"].endswith("...")
    given = event_environment(record(description="ä" * 9000), "prepare", "vm_1", NOW, 5)
    assert MAX_VALUE - 2 <= len(given["EVENT_DESCRIPTION"].encode()) <= MAX_VALUE


def test_resources_are_separated_by_white_space_whatever_their_names_contain() -> None:
    names = ("a b", "", "c\nd", "e\u00a0f", " ")
    assert event_environment(record(resources=names), "prepare", "vm_1", NOW, 5)["EVENT_RESOURCES"] == "a?b ? c?d e?f ?"


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
    done = subprocess.run(
        ["/usr/bin/env", "-0"], env=event_environment(known, worst, worst, NOW, 1e9), capture_output=True, check=True
    )
    assert done.stdout.count(b"\0") == 15


def test_a_document_with_half_characters_reaches_the_hook() -> None:
    (event,) = parse_document(
        r'{"Events": [{"EventId": "\ud800", "Resources": ["\udfff"], "Description": "\u0000\u001b"}]}'
    ).events
    known = EventRecord(1, 1, event, NOW)
    assert event_environment(known, "prepare", "vm", NOW, 5)["EVENT_DESCRIPTION"] == "??"
    assert event_environment(known, "prepare", "vm", NOW, 5)["EVENT_ID"] == r"\ud800"
    assert json.loads(event_json(known, "prepare", "vm", NOW, 5))["description"] == "\0\x1b"
