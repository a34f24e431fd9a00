# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading the document: tolerated defects, unknown values, and no influence of one event on the others."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import date, datetime, timezone
from functools import reduce

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    ImdsUnreadable,
    ScheduledEvent,
    parse_document,
)


def event(**changes):
    """Return an entry as api-version 2020-07-01 has it; a member set to ... is left out."""
    entry = {
        "EventId": "6E1F7C52-93D8-4C0B-A7F4-0B2D51E8C901",
        "EventStatus": "Scheduled",
        "EventType": "Reboot",
        "ResourceType": "VirtualMachine",
        "Resources": ["db-1"],
        "NotBefore": "Sat, 21 Nov 2026 10:15:00 GMT",
        "Description": "Host server is undergoing maintenance.",
        "EventSource": "Platform",
        "DurationInSeconds": 9,
    }
    entry.update(changes)
    return {name: value for name, value in entry.items() if value is not ...}


def document(*events, **members):
    return json.dumps(dict({"DocumentIncarnation": 7, "Events": list(events)}, **members))


def only(*args, **changes):
    """Return the single event of a document with one changed entry, and the warnings."""
    parsed = parse_document(document(event(*args, **changes)))
    assert len(parsed.events) == 1
    return parsed.events[0], parsed.warnings


def test_every_member_of_an_event_is_read_into_plain_json():
    parsed = parse_document(document(event()))
    assert (parsed.incarnation, parsed.warnings, parsed.complete) == (7, (), True)
    assert json.loads(json.dumps(parsed.events[0].as_dict())) == {
        "event_id": "6E1F7C52-93D8-4C0B-A7F4-0B2D51E8C901",
        "event_type": "Reboot",
        "status": "Scheduled",
        "resources": ["db-1"],
        "resource_type": "VirtualMachine",
        "not_before": "2026-11-21T10:15:00Z",
        "description": "Host server is undergoing maintenance.",
        "source": "Platform",
        "duration_seconds": 9,
    }


def test_no_events_is_an_empty_document_without_warning():
    parsed = parse_document('{"DocumentIncarnation":0,"Events":[]}')
    assert (parsed.incarnation, parsed.events, parsed.warnings) == (0, (), ())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"Service Unavailable",
        b"<html><body>captive portal</body></html>",
        document(event()).encode()[:-9],
        b"null",
        b"[]",
        b"{}",
        b'{"DocumentIncarnation":3,"Events":null}',
        b'{"DocumentIncarnation":3,"Events":"none"}',
        b'\xef\xbb\xbf{"DocumentIncarnation":3,"Events":[]}',
        b'{"DocumentIncarnation":3,"Events":[],"x":"\xff"}',
        b"[" * 100000,
        b'{"DocumentIncarnation":' + b"9" * 5000 + b',"Events":[',
    ],
)
def test_invalid_document_is_unknown_and_never_empty(body):
    with pytest.raises(ImdsUnreadable):
        parse_document(body)


@pytest.mark.parametrize("shape", ["%s", '{"Events": %s}', '{"Event": %s}', '{"Events": [%s]}'])
def test_document_of_any_depth_is_read_or_unreadable(shape):
    """The limit of Python for nested values is the same for reading and for showing them."""
    for depth in range(900, 1000):
        with suppress(ImdsUnreadable):
            parse_document(shape % ("[" * depth + "]" * depth))


def test_the_same_text_may_come_as_bytes():
    text = document(event(Description="Wartung \u00fc"))
    assert parse_document(text.encode("utf-8")) == parse_document(text)


@pytest.mark.parametrize(
    "given, kept, warned",
    [
        (("Hibernate", "Paused", "Robot", "Disk"), ("Hibernate", "Paused", "Robot", "Disk"), 4),
        (("FREEZE", "started", "user", "virtualmachine"), ("Freeze", "Started", "User", "VirtualMachine"), 0),
    ],
    ids=["unknown", "letter case"],
)
def test_unknown_values_are_kept_and_known_ones_have_any_letter_case(given, kept, warned):
    names = ("EventType", "EventStatus", "EventSource", "ResourceType")
    found, warnings = only(NotBefore="" if warned == 0 else "Sat, 21 Nov 2026 10:15:00 GMT", **dict(zip(names, given)))
    assert (found.event_type, found.status, found.source, found.resource_type) == kept
    assert len(warnings) == warned and all("unknown" in text for text in warnings)


def test_foreign_members_and_any_order_are_tolerated():
    entry = dict(reversed(list(event(Severity={"level": 3}).items())))
    parsed = parse_document(json.dumps({"Next": 1, "Events": [entry], "DocumentIncarnation": 7}))
    assert parsed.events == parse_document(document(event())).events
    assert parsed.warnings == ()


@pytest.mark.parametrize(
    "bad",
    [
        None,
        5,
        "text",
        [],
        {},
        event(EventId=...),
        event(EventId=""),
        event(EventId=5),
        event(EventId=" "),
        event(EventId="A" * 201),
    ],
)
def test_unreadable_entry_makes_the_document_incomplete(bad):
    parsed = parse_document(document(event(EventId="A"), bad, event(EventId="B")))
    assert [found.event_id for found in parsed.events] == ["A", "B"]
    assert not parsed.complete
    assert len(parsed.warnings) == 1 and "entry 1" in parsed.warnings[0]


@pytest.mark.parametrize("name", ["EventStatus", "EventType", "ResourceType", "Resources"])
@pytest.mark.parametrize("value", [..., None, 5, {"a": 1}, []])
def test_malformed_member_gives_a_warning_and_keeps_the_event(name, value):
    found, warnings = only(**{name: value})
    assert found.event_id == "6E1F7C52-93D8-4C0B-A7F4-0B2D51E8C901"
    assert warnings and all(name in text for text in warnings)


@pytest.mark.parametrize(
    "value, expected, warned",
    [
        (["web_0", "web_1"], ("web_0", "web_1"), False),
        ("web_0", ("web_0",), True),
        ([], (), True),
        (["web_0", None, 7], ("web_0", "null", "7"), True),
        (["\u0434\u0431-1"], ("\u0434\u0431-1",), False),
    ],
)
def test_malformed_resources_are_kept_as_names(value, expected, warned):
    found, warnings = only(Resources=value)
    assert found.resources == expected
    assert bool(warnings) is warned


DURATIONS = [(5, 5), (0, 0), ("9", 9), (5.0, 5), (-1, None), ("-1", None), (None, None)]
MALFORMED = ["soon", True, [], -7, 10**40, "1e400", float("nan"), float("inf"), -float("inf")]


@pytest.mark.parametrize("value, seconds", [*DURATIONS, *((value, ...) for value in MALFORMED)])
def test_duration_is_a_number_or_unknown_and_has_a_warning_if_it_is_malformed(value, seconds):
    found, warnings = only(DurationInSeconds=value)
    assert found.as_dict()["duration_seconds"] == (None if seconds is ... else seconds)
    assert ["DurationInSeconds" in text for text in warnings] == ([True] if seconds is ... else [])


@pytest.mark.parametrize(
    "value, number, warned",
    [("12", None, True), (None, None, True), ("x", None, True), (True, None, True), (0, 0, False)],
)
def test_incarnation_is_a_number_or_none(value, number, warned):
    parsed = parse_document(document(DocumentIncarnation=value))
    assert parsed.incarnation == number
    assert bool(parsed.warnings) is warned


@pytest.mark.parametrize(
    "value", ["", None, ..., "garbage", "Mon, 32 Foo", 1234567890, {}, "Sat, 31 Feb 2026 10:00:00 GMT"]
)
def test_a_scheduled_event_without_a_readable_time_is_due_now_with_a_warning(value):
    found, warnings = only(NotBefore=value)
    assert found.not_before is None
    assert found.seconds_left(datetime.now(timezone.utc)) == 0.0
    assert len(warnings) == 1 and "NotBefore" in warnings[0]


def test_seconds_left_never_go_below_zero_and_do_not_count_once_started():
    found, _warnings = only()
    assert found.seconds_left(datetime(2026, 11, 21, 10, 14, tzinfo=timezone.utc)) == 60.0
    assert found.seconds_left(datetime(2026, 11, 21, 11, 0, tzinfo=timezone.utc)) == 0.0
    started, _warnings = only(EventStatus="Started")
    assert started.seconds_left(datetime(2026, 11, 21, 10, 14, tzinfo=timezone.utc)) == 0.0


def test_entries_with_one_id_are_merged_restrictively():
    parsed = parse_document(
        document(
            event(EventId="abc", Resources=["vm1"]),
            event(EventId="ABC", Resources=["vm2"], EventStatus="Started", NotBefore=""),
            event(EventId="other"),
        )
    )
    assert [found.key for found in parsed.events] == ["abc", "other"]
    assert parsed.events[0].status == "Started"
    assert set(parsed.events[0].resources) == {"vm1", "vm2"}
    assert parsed.complete and len(parsed.warnings) == 1


def test_contradicting_entries_with_one_id_have_unknown_values():
    parsed = parse_document(
        document(
            event(EventId="abc", EventType="Freeze", DurationInSeconds=5, EventSource="User"),
            event(EventId="abc", EventType="Redeploy", DurationInSeconds=-1, EventStatus="Paused"),
        )
    )
    (found,) = parsed.events
    assert (found.event_type, found.status, found.source, found.duration) == (
        "Freeze/Redeploy",
        "Scheduled/Paused",
        "User/Platform",
        None,
    )


def test_entries_with_one_id_are_merged_in_linear_time():
    def seconds(count):
        body = document(
            *[{"EventId": "A", "EventType": str(each), "Resources": [f"vm{each}"]} for each in range(count)]
        )
        began = time.process_time()
        (found,) = parse_document(body).events
        assert len(found.resources) == count
        return time.process_time() - began

    # four times as many entries take four times as long, and sixteen times if the time is quadratic
    assert min(seconds(8000) for _try in range(2)) < 9 * min(seconds(2000) for _try in range(4))


@pytest.mark.parametrize(
    ("body", "most"),
    [
        (document(*[0] * 30001), 30000),
        (document(*[{}] * 30001), 30000),
        (document(event(Resources=["vm1"] * 70000)), 70000),
        (document(*[event(Resources=["vm1"] * 35000)] * 2), 70000),
        (document(Notes=[[]] * 200000), 200000),
        (document(Notes=[{}] * 200000).encode(), 200000),
    ],
    ids=["entries", "objects", "names of one", "names of two", "lists", "bytes"],
)
def test_a_document_with_too_many_values_is_unreadable(body, most):
    with pytest.raises(ImdsUnreadable, match=f"more than {most}"):
        parse_document(body)


def test_a_malformed_document_has_few_and_short_warnings():
    parsed = parse_document(document(*[{"EventId": f"{each}", "EventType": "x" * 5000} for each in range(300)]))
    assert len(parsed.events) == 300 and len(parsed.warnings) == 101
    assert max(map(len, parsed.warnings)) < 1010 and "not listed" in parsed.warnings[-1]


def test_lone_surrogates_are_escaped():
    found, _warnings = only(EventId="id-\ud800", Description="x\udfff", Resources=["vm\ud83d"])
    assert (found.event_id, found.description, found.resources) == ("id-\\ud800", "x\\udfff", ("vm\\ud83d",))
    json.dumps(found.as_dict(), ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"NotBefore": "", "EventStatus": "Started"},
        {"DurationInSeconds": -1, "Description": None, "EventSource": None, "ResourceType": None},
        {"EventId": "id-\ud800", "Resources": ["db-1", "vm\ud83d"]},
    ],
)
def test_a_stored_event_is_read_back_without_loss(changes):
    found, _warnings = only(**changes)
    assert ScheduledEvent.from_json(json.loads(json.dumps(found.as_dict()))) == found


@pytest.mark.parametrize(
    "changes",
    [
        {"not_before": "soon"},
        {"duration_seconds": "long"},
        {"duration_seconds": 1e300},
        {"resources": None},
        {"resources": "vm1"},
        {"event_id": " "},
        {"event_type": None},
        {"status": {date(2026, 11, 21): 7}},
        {"description": date(2026, 11, 21)},
        {"not_before": reduce(lambda inner, _depth: [inner], range(5000))},
    ],
)
def test_an_event_in_json_with_an_unusable_member_raises_value_error(changes):
    found, _warnings = only()
    ((member, _value),) = changes.items()
    with pytest.raises(ValueError, match=f"^events\\[1\\]: ({member}|a value) "):
        ScheduledEvent.from_json(dict(found.as_dict(), **changes), "events[1]")


def test_an_event_in_json_may_lack_members_and_have_others():
    given = {"event_id": "A", "event_type": "REBOOT", "status": "started", "resources": [], "color": "red"}
    read = ScheduledEvent.from_json(given)
    assert read == ScheduledEvent("A", "Reboot", "Started", (), None, None, None, None, None)


@pytest.mark.parametrize(
    "raw",
    [
        document(event(DurationInSeconds="1\nforged\x1b[2J")),
        document(event(EventId="\n\u2028")),
        document(event(EventType="Rebo\x9bot", EventId="\u202eA")),
        json.dumps({"DocumentIncarnation": "7\r\nforged", "Events": []}),
    ],
)
def test_warnings_are_printable(raw):
    found = parse_document(raw).warnings
    assert found and all(text.isprintable() for text in found)


def test_raw_control_characters_are_read():
    text = document(event(Description="line one@line two")).replace("@", "\n\x01")
    assert parse_document(text).events[0].description == "line one\n\x01line two"


def test_same_warning_is_reported_once():
    parsed = parse_document(document(event(EventType="Hibernate"), event(EventType="Hibernate")))
    assert len([text for text in parsed.warnings if "Hibernate" in text]) == 1


def test_an_event_is_found_by_its_id_in_any_letter_case():
    parsed = parse_document(document(event(EventId="AbC")))
    assert parsed.find("aBc") is parsed.events[0]
    assert parsed.find("aB") is None


def test_ten_thousand_events_are_read():
    parsed = parse_document(document(*[event(EventId=f"ID-{number}") for number in range(10000)]))
    assert len(parsed.events) == 10000 and parsed.complete


@pytest.mark.parametrize("doubtful", [("aa",), ()])
def test_an_event_is_doubtful_if_its_vms_cannot_be_read(doubtful):
    for resources in [None, ..., 7, {"a": 1}, ["db-1", None], [{}]] if doubtful else [[], ["db-1"], "db-1"]:
        parsed = parse_document(document(event(EventId="Aa", Resources=resources), event(EventId="B")))
        assert parsed.doubtful == doubtful and len(parsed.events) == 2


def test_an_event_listed_twice_is_doubtful_once_if_either_entry_is():
    assert parse_document(
        document(event(EventId="A"), event(EventId="a", Resources=None), event(EventId="A", Resources=7))
    ).doubtful == ("a",)
