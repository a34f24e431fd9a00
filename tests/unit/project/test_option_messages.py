# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A wrong value of an option has the same message in every frontend, after the place of the value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_tasks import approve
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_tasks.event_task import EventCall
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils import _ready_hooks
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.source_options import (
    parse_arguments,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.limits import parse_limits

import azure_events_engine.settings as engine
import azure_events_watch.settings as beacon
from azure_events_steps.configuration import parse_configuration
from azure_events_watch import approval_options
from azure_scheduled_events.policy import Policy
from azure_scheduled_events.policy_file import parse_policy
from azure_scheduled_events.selection import Selection
from hook_runner.cli import verbs
from hook_runner.config.settings import load_settings
from ready_hooks import hooks
from ready_hooks.core import arguments

Parse = Callable[[Any], object]

SELECTION: Mapping[str, Any] = dict.fromkeys(("event_ids", "types", "statuses", "sources", "affects"))


def config(key: str, tmp_path: Path) -> Parse:
    """Return a parser of the daemon's configuration; ``key`` has its place in it."""

    def parse(value: Any) -> object:
        for name in reversed(key.split(".")):
            value = {name: value}
        (tmp_path / "config.yml").write_text(json.dumps(value), encoding="utf-8")
        return load_settings(str(tmp_path / "config.yml"))

    return parse


def policy(when: str) -> Parse:
    return lambda value: Policy.from_mapping({"rules": [{"when": {when: value}}]})


def policy_file(rule: Mapping[str, Any]) -> Policy:
    return parse_policy(json.dumps({"rules": [rule]}), "p.yml")


def call(**options: Any) -> EventCall:
    return EventCall({"timeout": 5, **SELECTION, **options}, False, lambda _text: None)


def ready_hook(use: str, **options: Any) -> object:
    return arguments.from_mapping(hooks.load(use).options, options)


def problem(parse: Parse, value: Any, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the message about a value; argparse prints it."""
    with pytest.raises((Exception, SystemExit)) as caught:
        parse(value)
    return capsys.readouterr().err if isinstance(caught.value, SystemExit) else str(caught.value)


def durations(tmp_path: Path) -> dict[str, Parse]:
    return {
        "daemon": config("interval", tmp_path),
        "daemon's hook": config("hooks.10-x.timeout", tmp_path),
        "daemon's command": lambda value: verbs.parser().parse_args(["try", "10-x", "--notice", value]),
        "policy": policy("time_left"),
        "policy's delay": lambda value: Policy.from_mapping({"rules": [{"approve": {"delay": value}}]}),
        "ready hook": lambda value: ready_hook("redis", address="/run/x", most_pause=value),
        "ready hook of a role": lambda value: _ready_hooks.runs([{"use": "log", "settings": {"timeout": value}}], "x"),
        "engine": lambda value: engine.parse_settings({"poll": value}),
        "beacon": lambda value: beacon.parse_settings([{"repeat": value}], {}),
        "minion": lambda value: parse_configuration({"minimum_notice": value}),
        "step": lambda value: parse_configuration({"prepare": [{"command": "true", "timeout": value}]}),
        "event source": lambda value: parse_arguments({"due_within": value}),
        "role": lambda value: parse_limits({"deadline": value}, ["vm1"], {}),
        "module": lambda value: call(timeout=value),
    }


@pytest.mark.parametrize("value", ["soon", "15 minutes", "1:30", "250ms", "1h30m"])
def test_duration_has_one_message(value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = f": expected seconds as a number, or a text like 30s, 15m, 2h or 5d, not '{value}'"
    found = {name: problem(parse, value, capsys) for name, parse in durations(tmp_path).items()}
    assert {name: text for name, text in found.items() if not text.rstrip().endswith(expected)} == {}


@pytest.mark.parametrize("value", [45, "45", "45s"])
def test_duration_without_a_unit_is_seconds_in_every_frontend(value: Any, tmp_path: Path) -> None:
    for name, parse in durations(tmp_path).items():
        parse(str(value) if name == "daemon's command" else value)


def event_types(tmp_path: Path) -> dict[str, Parse]:
    return {
        "daemon's hook": config("hooks.10-x.types", tmp_path),
        "policy": policy("type"),
        "policy file": lambda value: policy_file({"when": {"type": value}}),
        "ready hook of a role": lambda value: _ready_hooks.runs([{"use": "log", "settings": {"types": value}}], "x"),
        "beacon": lambda value: beacon.parse_settings([{"types": value}], {}),
        "minion": lambda value: parse_configuration({"types": value}),
        "module": lambda value: call(types=value).selection(),
        "selection": lambda value: Selection.parse({"types": value}),
    }


@pytest.mark.parametrize("value", ["reboot", "REBOOT", ["reboot"], ["Freeze", "redeploy"], "Hibernate"])
def test_event_types_are_a_text_or_a_list_in_any_letter_case(value: Any, tmp_path: Path) -> None:
    for parse in event_types(tmp_path).values():
        parse(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Rebot", "unknown event type 'Rebot'; did you mean Reboot?"),
        (["Freeze", "rebot"], "unknown event type 'rebot'; did you mean Reboot?"),
        ("Reboot, Freeze", "expected an event type such as Reboot, not 'Reboot, Freeze'"),
    ],
)
def test_event_type_has_one_message(
    value: Any, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {name: problem(parse, value, capsys) for name, parse in event_types(tmp_path).items()}
    assert {name: text for name, text in found.items() if not text.endswith(f": {expected}")} == {}


@pytest.mark.parametrize(
    ("name", "key", "near"),
    [
        ("daemon", "intervall", "interval"),
        ("daemon", "Interval", "interval"),
        ("daemon's hook", "timout", "timeout"),
        ("policy", "tipe", "type"),
        ("ready hook", "most_puase", "most_pause"),
        ("engine", "awnser", "answer"),
        ("engine", "Answer", "answer"),
        ("beacon", "intervall", "interval"),
        ("beacon", "Types", "types"),
        ("minion", "prepair", "prepare"),
        ("step", "comand", "command"),
        ("event source", "intervall", "interval"),
        ("event source", "Timeout", "timeout"),
    ],
)
def test_unknown_key_has_one_message(
    name: str, key: str, near: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parsers: dict[str, Parse] = {
        "daemon": lambda key: config(key, tmp_path)(1),
        "daemon's hook": lambda key: config(f"hooks.10-x.{key}", tmp_path)(1),
        "policy": lambda key: policy(key)("Reboot"),
        "ready hook": lambda key: ready_hook("redis", **{key: 1}),
        "engine": lambda key: engine.parse_settings({key: 1}),
        "beacon": lambda key: beacon.parse_settings([{key: 1}], {}),
        "minion": lambda key: parse_configuration({key: []}),
        "step": lambda key: parse_configuration({"prepare": [{key: "true"}]}),
        "event source": lambda key: parse_arguments({key: 1}),
    }
    text = problem(parsers[name], key, capsys)
    assert text.endswith(f"unknown key '{key}'; did you mean {near}?")


def whole_numbers(tmp_path: Path) -> dict[str, Parse]:
    return {
        "daemon": config("history_events", tmp_path),
        "daemon's command": lambda value: verbs.parser().parse_args(["history", "--limit", value]),
        "ready hook": lambda value: ready_hook("redis", address="/run/x", most_lag=value),
        "ready hook's list": lambda value: ready_hook("connections", ports=[80, value]),
        "engine": lambda value: engine.parse_settings({"at_once": value}),
    }


@pytest.mark.parametrize("value", ["many", "1.5", "1e3", "5 hosts"])
def test_whole_number_has_one_message(value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = re.compile(rf": expected a whole number, (at least \d+|\d+ to \d+), not '{re.escape(value)}'\s*\Z")
    found = {name: problem(parse, value, capsys) for name, parse in whole_numbers(tmp_path).items()}
    assert {name: text for name, text in found.items() if not expected.search(text)} == {}


def test_whole_number_may_be_a_text_in_every_frontend(tmp_path: Path) -> None:
    for parse in whole_numbers(tmp_path).values():
        parse("7")


def module_criteria(**options: Any) -> object:
    """Return the criteria of a call of event_approve."""
    usual: dict[str, Any] = {
        "policy": None,
        "policy_file": None,
        "prepared": "none",
        "gates": {},
        "release_others": False,
    }
    return approve.parse_criteria(call(**{"types": "Reboot", **usual, **options}))


def function_criteria(policy: Any = None, prepared: Any = "none", release_others: Any = False) -> object:
    """Return the criteria of a call of the Salt function azure_events.approve."""
    selection = Selection.parse({"types": "Reboot"})
    return approval_options.parse_criteria(selection, policy, None, prepared, None, release_others, True)


@pytest.mark.parametrize("value", ["maybe", "on", 1, None])
def test_boolean_has_one_message(value: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parsers: dict[str, Parse] = {
        "daemon": config("dry_run", tmp_path),
        "daemon's hook": config("hooks.10-x.rerun", tmp_path),
        "policy": policy("only_me"),
        "policy file": lambda value: policy_file({"hold": value}),
        "beacon": lambda value: beacon.parse_settings([{"disable_during_state_run": value}], {}),
        "minion": lambda value: parse_configuration({"allow_paths": value}),
        "module": lambda value: module_criteria(gates={"backup": value}),
        "function": lambda value: function_criteria(release_others=value),
    }
    if value is not None:  # as a missing option, for a ready hook
        parsers["ready hook"] = lambda value: ready_hook("log", journal=value)
    for parse in parsers.values():
        parse(True)
    found = {name: problem(parse, value, capsys) for name, parse in parsers.items()}
    expected = f": expected true or false, not {value!r}"
    assert {name: text for name, text in found.items() if not text.endswith(expected)} == {}


def test_choice_has_one_message_and_any_letter_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parsers: dict[str, tuple[Parse, str]] = {
        "daemon": (config("leader", tmp_path), "First"),
        "daemon's hook": (config("hooks.10-x.on_failure", tmp_path), "STOP"),
        "daemon's command": (lambda value: verbs.parser().parse_args(["try", "10-x", "--type", value]), "reboot"),
        "policy": (lambda value: Policy.from_mapping({"rules": [{"approve": value}]}), "Now"),
        "policy's condition": (policy("weekday"), "mon"),
        "policy file": (lambda value: policy_file({"when": {"status": value}}), "STARTED"),
        "ready hook": (lambda value: ready_hook("connections", ports=80, on_timeout=value), "Fail"),
        "ready hook of a role": (lambda value: _ready_hooks.runs([{"use": value}], "x"), "LOG"),
        "ready hook of a minion": (lambda value: parse_configuration({"ready_hooks": [{"use": value}]}), "Log"),
        "engine": (lambda value: engine.parse_settings({"unknown_resources": value}), "Hold"),
        "beacon": (lambda value: beacon.parse_settings([{"statuses": value}], {}), "scheduled"),
        "minion": (lambda value: parse_configuration({"sources": value}), "user"),
        "module": (lambda value: call(sources=value).selection(), "USER"),
        "module event_approve": (lambda value: module_criteria(prepared=value), "OK"),
        "function": (lambda value: function_criteria(prepared=value), "Failed"),
    }
    for parse, known in parsers.values():
        parse(known)
    found = {name: problem(parse, "xyz", capsys) for name, (parse, _known) in parsers.items()}
    expected = re.compile(r"\bunknown [a-z ]+ 'xyz'; there are: \w[^;]*\Z")
    assert {name: text for name, text in found.items() if not expected.search(text)} == {}


def test_unknown_policy_has_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parsers: dict[str, Parse] = {
        "daemon": config("policy", tmp_path),
        "daemon's mapping": config("policy.preset", tmp_path),
        "policy file": lambda value: parse_policy(json.dumps({"preset": value}), "p.yml"),
        "module": lambda value: module_criteria(policy=value),
        "function": lambda value: function_criteria(policy=value),
    }
    found = {name: problem(parse, "documentd", capsys) for name, parse in parsers.items()}
    expected = ": unknown policy 'documentd'; did you mean documented?"
    assert {name: text for name, text in found.items() if not text.endswith(expected)} == {}
