# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The section azure_events: parsed values and refusals; the selection; the variables; the record."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from azure_events_steps.configuration import (
    DEFAULT_TIMEOUT,
    Step,
    digest,
    parse_configuration,
    parse_steps,
    refuse_ready_hooks,
)
from azure_events_steps.execution.cmd_syntax import without_cmd_syntax
from azure_events_steps.record import Reason, Record, record_from_json
from azure_events_steps.selection import evaluate
from azure_scheduled_events import parse_document
from support.salt.scripted import ScriptedImds

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def event(**fields: Any) -> Any:
    known = ScriptedImds.event("A", "vm1", "_VM2", kind="Reboot")
    listed = {**known, "NotBefore": "Sat, 21 Nov 2026 12:01:00 GMT", **fields}
    (found,) = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [listed]})).events
    return found


def test_every_form_of_a_step_is_read() -> None:
    steps = parse_steps(
        "prepare",
        [
            "leave --now",
            {"command": ["leave", "--now"], "timeout": "2m", "name": "leave"},
            {"function": "service.stop", "args": ["app"], "kwargs": {"no_block": True}},
            {"sls": "app.stopped", "pillar": {"app": 1}, "timeout": 5},
        ],
    )
    assert steps == (
        Step("leave --now", "command", "leave --now", (), {}, {}, DEFAULT_TIMEOUT),
        Step("leave", "command", ("leave", "--now"), (), {}, {}, 120.0),
        Step("service.stop", "function", "service.stop", ("app",), {"no_block": True}, {}, DEFAULT_TIMEOUT),
        Step("app.stopped", "sls", "app.stopped", (), {}, {"app": 1}, 5.0),
    )
    assert len({digest(steps), digest(steps[1:]), digest((steps[0]._replace(timeout=1.0), *steps[1:]))}) == 3


@pytest.mark.parametrize(
    ("section", "complaint"),
    [
        ("leave", "azure_events: expected a mapping, not str"),
        ({"minimum_notice": -1}, "at least 0 seconds"),
        ({"types": []}, "types: an empty list selects no event"),
        ({"statuses": ["Gone"]}, "statuses: unknown status"),
        ({"sources": [3]}, "sources: expected a text"),
        ({"receipts": 7}, "receipts: expected the path"),
        ({"resource_name": ""}, "resource_name: expected"),
        ({"endpoint": "auto"}, "endpoint: 'auto' is not an address of IMDS"),
        ({"prepare": "leave"}, "prepare: expected a list of steps, not str"),
        ({"recover": None}, "recover: expected a list of steps, not NoneType"),
        ({"prepare": ["x"] * 101}, "at most 100 steps, not 101"),
        ({"prepare": [{"name": "x"}]}, "expected exactly one of command, function, sls, use, not none"),
        ({"prepare": [{"command": "x", "sls": "y"}]}, "not command, sls"),
        ({"prepare": [{"command": "x", "args": []}]}, "args does not belong to a step of the kind command"),
        ({"prepare": [{"sls": "x", "kwargs": {}}]}, "kwargs does not belong"),
        ({"prepare": [{"function": "stop"}]}, "expected MODULE.FUNCTION"),
        ({"prepare": [{"function": "a.b", "args": "x"}]}, "args: expected a list"),
        ({"prepare": [{"function": "a.b", "kwargs": {1: 2}}]}, "kwargs: expected a mapping with texts"),
        ({"prepare": [{"command": []}]}, "a list of texts that begins with a program"),
        ({"prepare": [{"command": " "}]}, "command: expected a text"),
        ({"prepare": [{"command": "a\0b"}]}, "a null character"),
        ({"prepare": [{"command": "x", "timeout": 0}]}, "timeout: expected at least 0.1 seconds"),
        ({"prepare": [{"command": "x", "name": 1}]}, "name: expected a text"),
        ({"prepare": [7]}, "expected a command, or a mapping"),
    ],
)
def test_invalid_section_is_refused_with_its_place(section: Any, complaint: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_configuration(section)
    assert complaint in str(refused.value) and str(refused.value).startswith("azure_events: ")


def test_beacon_of_the_minion_is_part_of_its_selection() -> None:
    configuration = parse_configuration(
        {"types": ["Reboot", "Freeze"]}, [{"interval": 1}, {"types": ["Freeze"]}, {"affects": "any"}]
    )
    assert evaluate(event(EventType="Freeze"), "vm1", configuration, NOON).selected
    assert evaluate(event(), "vm1", configuration, NOON).code == "types"
    assert evaluate(event(EventType="Freeze"), "vm3", configuration, NOON).code == "affects"
    with pytest.raises(ValueError, match="beacon azure_events: types"):
        parse_configuration({}, [{"types": ["Rebot"]}])


@pytest.mark.parametrize(
    ("section", "code"),
    [
        ({}, ""),
        ({"types": "reboot"}, ""),
        ({"types": ["Freeze"]}, "types"),
        ({"sources": ["User"]}, "sources"),
        ({"statuses": ["Started"]}, "statuses"),
        ({"minimum_notice": 60}, ""),
        ({"minimum_notice": "61s"}, "minimum_notice"),
    ],
)
def test_selection_names_the_key_that_excludes_the_event(section: dict[str, Any], code: str) -> None:
    assert evaluate(event(), "VM1", parse_configuration(section), NOON).code == code


def test_unknown_not_before_and_source_are_not_selected() -> None:
    assert (
        evaluate(event(NotBefore=""), "vm1", parse_configuration({"minimum_notice": 1}), NOON).code == "minimum_notice"
    )
    assert (
        evaluate(event(EventSource=None), "vm1", parse_configuration({"sources": ["Platform"]}), NOON).code == "sources"
    )


def test_value_for_cmd_contains_no_command() -> None:
    """cmd.exe replaces variables by their values before it parses a command."""
    assert without_cmd_syntax('a" & del x | y > z ^ %PATH% !B! (c)') == "a? ? del x ? y ? z ? ?PATH? ?B? ?c?"
    plain = "C7061BAC-AFDC-4513-B24B-AA5F13A16123 vm_1 2026-11-21T12:00:00Z \u00fc\u6f22 a;b,c=d'e"
    assert without_cmd_syntax(plain) == plain


@pytest.mark.parametrize("key", ["ready_hooks", "prepare", "recover"])
def test_ready_hook_is_refused_where_none_can_run(key: str) -> None:
    hook = {"use": "haproxy", "name": "web", "server": "web/web1"}
    with pytest.raises(ValueError, match="azure_events: the step 'web' is a ready hook, which runs on Linux only; "):
        refuse_ready_hooks(parse_configuration({key: [hook]}))
    refuse_ready_hooks(parse_configuration({"prepare": ["leave"], "recover": []}))
    refuse_ready_hooks(parse_configuration(None))


def test_record_round_trip_is_exact_and_other_content_is_refused() -> None:
    record = Record(
        "prepared",
        "boot",
        2,
        "digest",
        "2026-11-21T12:00:00Z",
        "",
        (Reason("A\ud800", "Reboot", ("vm1",), True), Reason("B", returned=True), Reason("")),
    )
    data = json.loads(json.dumps(record.to_json()))
    assert record_from_json(data) == record
    for damage in (
        {"phase": "well"},
        {"steps_done": -1},
        {"steps_done": "2"},
        {"reasons": []},
        {"reasons": [7]},
        {"reasons": None},
    ):
        with pytest.raises(ValueError):
            record_from_json({**data, **damage})
    with pytest.raises(ValueError):
        record_from_json({})


def test_timeout_of_a_ready_hook_is_in_its_settings_as_in_the_roles() -> None:
    with pytest.raises(ValueError, match=r"prepare: step 1: timeout: .*write settings: \{timeout: 90s\}"):
        parse_configuration({"prepare": [{"use": "notify", "timeout": "90s"}]})


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ({"ready_hooks": [{"use": "haproxi"}]}, "ready_hooks: step 1: use: unknown ready hook 'haproxi'; did you"),
        ({"prepare": [{"use": None}]}, "prepare: step 1: use"),
        ({"ready_hooks": [{"use": "log"}, {"use": "log"}]}, "prepare: two ready hooks have the name 'log'"),
        ({"ready_hooks": [{"use": "log"}], "recover": [{"use": "log"}]}, "recover: two ready hooks"),
        ({"ready_hooks": ["true"]}, "ready_hooks: step 1: expected a mapping with use"),
        ({"ready_hooks": {"use": "log"}}, "ready_hooks: expected a list"),
        ({"prepare": [{"use": "log", "name": "../x"}]}, "name: expected at most 80"),
        ({"prepare": [{"use": "log", "settings": {"types": ["Reboot"]}}]}, "settings.types: in Salt"),
        ({"prepare": [{"use": "log", "settings": "1m"}]}, "settings: expected a mapping"),
        ({"prepare": [{"use": "log", "file": {1, 2}}]}, "file: expected numbers"),
        ({"prepare": [{"use": "log", "file": "x" * 10000}]}, "file: expected at most"),
        ({"prepare": [{"use": "log", 3: "x"}]}, "as name of an option"),
    ],
)
def test_invalid_ready_hook_is_refused(section: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        parse_configuration(section)
