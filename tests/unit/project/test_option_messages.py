# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Every frontend reads its options by the rules of the helper, whose message follows the place of the value.

The values that a rule accepts and refuses: tests/unit/plugins/module_utils/azure_scheduled_events/test_options.py
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

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
from azure_scheduled_events.selection import Selection
from hook_runner.cli import verbs
from hook_runner.config.settings import load_settings
from ready_hooks import hooks
from ready_hooks.core import arguments

Parse = Callable[[Any], object]

SELECTION: Mapping[str, Any] = dict.fromkeys(("event_ids", "types", "statuses", "sources", "affects"))


class Rule(NamedTuple):
    """A value that a rule refuses, a pattern of the end of its message, and a value that it accepts."""

    wrong: Any
    message: str
    accepted: Any


SECONDS = Rule("1h30m", r": expected seconds as a number, or a text like 30s, 15m, 2h or 5d, not '1h30m'", "45")
EVENT_TYPE = Rule(["Freeze", "rebot"], r": unknown event type 'rebot'; did you mean Reboot\?", "REBOOT")
WHOLE_NUMBER = Rule("1.5", r": expected a whole number, (at least \d+|\d+ to \d+), not '1\.5'", "7")
BOOLEAN = Rule("on", r": expected true or false, not 'on'", True)


def choice(accepted: str) -> Rule:
    return Rule("xyz", r"\bunknown [a-z ]+ 'xyz'; there are: \w[^;]*", accepted)


def config(key: str) -> Parse:
    """Return a parser of the daemon's configuration; ``key`` has its place in it."""

    def parse(value: Any) -> object:
        for name in reversed(key.split(".")):
            value = {name: value}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "config.yml")
            path.write_text(json.dumps(value), encoding="utf-8")
            return load_settings(str(path))

    return parse


def policy(when: str) -> Parse:
    return lambda value: Policy.from_mapping({"rules": [{"when": {when: value}}]})


def policy_file(rule: Mapping[str, Any]) -> Policy:
    return Policy.from_yaml(json.dumps({"rules": [rule]}), "p.yml")


def ready_hook(use: str, **options: Any) -> object:
    return arguments.from_mapping(hooks.load(use).options, options)


def call(**options: Any) -> EventCall:
    return EventCall({"timeout": 5, **SELECTION, **options}, False, lambda _text: None)


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


OPTIONS: dict[str, tuple[Parse, Rule]] = {
    "daemon's interval": (config("interval"), SECONDS),
    "hook's timeout": (config("hooks.10-x.timeout"), SECONDS),
    "command's notice": (lambda value: verbs.parser().parse_args(["try", "10-x", "--notice", value]), SECONDS),
    "policy's time_left": (policy("time_left"), SECONDS),
    "policy's delay": (lambda value: Policy.from_mapping({"rules": [{"approve": {"delay": value}}]}), SECONDS),
    "ready hook's pause": (lambda value: ready_hook("redis", address="/run/x", most_pause=value), SECONDS),
    "role's timeout": (lambda value: _ready_hooks.runs([{"use": "log", "settings": {"timeout": value}}], "x"), SECONDS),
    "engine's poll": (lambda value: engine.parse_settings({"poll": value}), SECONDS),
    "beacon's repeat": (lambda value: beacon.parse_settings([{"repeat": value}], {}), SECONDS),
    "minion's notice": (lambda value: parse_configuration({"minimum_notice": value}), SECONDS),
    "step's limit": (lambda value: parse_configuration({"prepare": [{"command": "true", "timeout": value}]}), SECONDS),
    "event source's due_within": (lambda value: parse_arguments({"due_within": value}), SECONDS),
    "role's deadline": (lambda value: parse_limits({"deadline": value}, ["vm1"], {}), SECONDS),
    "module's timeout": (lambda value: call(timeout=value), SECONDS),
    "hook's types": (config("hooks.10-x.types"), EVENT_TYPE),
    "policy's type": (policy("type"), EVENT_TYPE),
    "policy file's type": (lambda value: policy_file({"when": {"type": value}}), EVENT_TYPE),
    "role's types": (lambda value: _ready_hooks.runs([{"use": "log", "settings": {"types": value}}], "x"), EVENT_TYPE),
    "beacon's types": (lambda value: beacon.parse_settings([{"types": value}], {}), EVENT_TYPE),
    "minion's types": (lambda value: parse_configuration({"types": value}), EVENT_TYPE),
    "module's types": (lambda value: call(types=value).selection(), EVENT_TYPE),
    "daemon's history_events": (config("history_events"), WHOLE_NUMBER),
    "command's limit": (lambda value: verbs.parser().parse_args(["history", "--limit", value]), WHOLE_NUMBER),
    "ready hook's lag": (lambda value: ready_hook("redis", address="/run/x", most_lag=value), WHOLE_NUMBER),
    "ready hook's ports": (lambda value: ready_hook("connections", ports=[80, value]), WHOLE_NUMBER),
    "engine's at_once": (lambda value: engine.parse_settings({"at_once": value}), WHOLE_NUMBER),
    "daemon's dry_run": (config("dry_run"), BOOLEAN),
    "hook's rerun": (config("hooks.10-x.rerun"), BOOLEAN),
    "policy's only_me": (policy("only_me"), BOOLEAN),
    "policy file's hold": (lambda value: policy_file({"hold": value}), BOOLEAN),
    "ready hook's journal": (lambda value: ready_hook("log", journal=value), BOOLEAN),
    "beacon's pause": (lambda value: beacon.parse_settings([{"disable_during_state_run": value}], {}), BOOLEAN),
    "minion's allow_paths": (lambda value: parse_configuration({"allow_paths": value}), BOOLEAN),
    "module's gates": (lambda value: module_criteria(gates={"backup": value}), BOOLEAN),
    "function's release_others": (lambda value: function_criteria(release_others=value), BOOLEAN),
    "daemon's leader": (config("leader"), choice("First")),
    "hook's on_failure": (config("hooks.10-x.on_failure"), choice("STOP")),
    "command's type": (lambda value: verbs.parser().parse_args(["try", "10-x", "--type", value]), choice("reboot")),
    "policy's approve": (lambda value: Policy.from_mapping({"rules": [{"approve": value}]}), choice("Now")),
    "policy's weekday": (policy("weekday"), choice("mon")),
    "policy file's status": (lambda value: policy_file({"when": {"status": value}}), choice("STARTED")),
    "ready hook's on_timeout": (lambda value: ready_hook("connections", ports=80, on_timeout=value), choice("Fail")),
    "role's use": (lambda value: _ready_hooks.runs([{"use": value}], "x"), choice("LOG")),
    "minion's use": (lambda value: parse_configuration({"ready_hooks": [{"use": value}]}), choice("Log")),
    "engine's unknown_resources": (lambda value: engine.parse_settings({"unknown_resources": value}), choice("Hold")),
    "beacon's statuses": (lambda value: beacon.parse_settings([{"statuses": value}], {}), choice("scheduled")),
    "minion's sources": (lambda value: parse_configuration({"sources": value}), choice("user")),
    "module's sources": (lambda value: call(sources=value).selection(), choice("USER")),
    "module's prepared": (lambda value: module_criteria(prepared=value), choice("OK")),
    "function's prepared": (lambda value: function_criteria(prepared=value), choice("Failed")),
}


def problem(parse: Parse, value: Any, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the message about a value; argparse prints it."""
    with pytest.raises((Exception, SystemExit)) as caught:
        parse(value)
    return capsys.readouterr().err if isinstance(caught.value, SystemExit) else str(caught.value)


@pytest.mark.parametrize(("parse", "rule"), OPTIONS.values(), ids=OPTIONS)
def test_option_has_the_rule_and_the_message_of_the_helper(
    parse: Parse, rule: Rule, capsys: pytest.CaptureFixture[str]
) -> None:
    parse(rule.accepted)
    assert re.search(rf"{rule.message}\s*\Z", problem(parse, rule.wrong, capsys))


@pytest.mark.parametrize(
    ("parse", "key", "near"),
    [
        pytest.param(lambda key: config(key)(1), "Interval", "interval", id="daemon"),
        pytest.param(lambda key: config(f"hooks.10-x.{key}")(1), "timout", "timeout", id="hook"),
        pytest.param(lambda key: policy(key)("Reboot"), "tipe", "type", id="policy"),
        pytest.param(lambda key: ready_hook("redis", **{key: 1}), "most_puase", "most_pause", id="ready hook"),
        pytest.param(lambda key: engine.parse_settings({key: 1}), "awnser", "answer", id="engine"),
        pytest.param(lambda key: beacon.parse_settings([{key: 1}], {}), "intervall", "interval", id="beacon"),
        pytest.param(lambda key: parse_configuration({key: []}), "prepair", "prepare", id="minion"),
        pytest.param(lambda key: parse_configuration({"prepare": [{key: "true"}]}), "comand", "command", id="step"),
        pytest.param(lambda key: parse_arguments({key: 1}), "intervall", "interval", id="event source"),
    ],
)
def test_unknown_key_has_one_message(parse: Parse, key: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert problem(parse, key, capsys).endswith(f"unknown key '{key}'; did you mean {near}?")


@pytest.mark.parametrize(
    "parse",
    [
        pytest.param(config("policy"), id="daemon"),
        pytest.param(config("policy.preset"), id="daemon's mapping"),
        pytest.param(lambda value: Policy.from_yaml(json.dumps({"preset": value}), "p.yml"), id="policy file"),
        pytest.param(lambda value: module_criteria(policy=value), id="module"),
        pytest.param(lambda value: function_criteria(policy=value), id="function"),
    ],
)
def test_unknown_policy_has_one_message(parse: Parse, capsys: pytest.CaptureFixture[str]) -> None:
    expected = ": unknown policy 'documentd'; did you mean documented?"
    assert problem(parse, "documentd", capsys).endswith(expected)
