# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest

from ready_hooks.core import arguments
from ready_hooks.core.arguments import Option
from ready_hooks.core.errors import UsageError

OPTIONS = (
    Option("server", arguments.text, "a server", required=True),
    Option("wait", arguments.seconds, "seconds", 30.0),
    Option("units", arguments.text, "units", many=True),
)


def test_from_mapping_parses_values_and_adds_defaults() -> None:
    assert arguments.from_mapping(OPTIONS, {"server": "web/web1", "wait": "2m", "units": "a"}) == {
        "server": "web/web1",
        "wait": 120.0,
        "units": ("a",),
    }


@pytest.mark.parametrize(
    ("given", "subject"),
    [
        ({}, "server"),
        ({"server": ["a"]}, "server"),
        ([], "options"),
    ],
)
def test_from_mapping_names_the_option_that_is_wrong(given: object, subject: str) -> None:
    with pytest.raises(UsageError, match=f"^{subject}: "):
        arguments.from_mapping(OPTIONS, given)


@pytest.mark.parametrize("given", [{"units": []}, {"units": None}, {}])
def test_required_list_without_a_value_is_an_error(given: object) -> None:
    with pytest.raises(UsageError, match="^units: it is required"):
        arguments.from_mapping((Option("units", arguments.text, "units", required=True, many=True),), given)


def test_command_is_a_list_or_a_text_for_the_shell() -> None:
    assert arguments.command(["save", 5]) == ("save", "5")
    assert arguments.command("save --all | cat") == ("/bin/sh", "-c", "save --all | cat")


@pytest.mark.parametrize("given", ["{", "[]", "7", "null", '"text"'])
def test_from_json_of_another_value_than_an_object_is_an_error(given: str) -> None:
    with pytest.raises(UsageError):
        arguments.from_json(OPTIONS, given)


def test_flags_and_json_have_the_same_values() -> None:
    parser = argparse.ArgumentParser()
    every = (*OPTIONS, Option("dry_run", arguments.boolean, "change nothing, 100 %", False))
    arguments.add_flags(parser, every)
    parsed = parser.parse_args(["--server", "a", "--units", "b", "--units", "c", "--wait", "1m", "--dry-run"])
    assert arguments.from_namespace(every, parsed) == arguments.from_json(
        every, '{"server": "a", "units": ["b", "c"], "wait": 60, "dry_run": true}'
    )
    assert "100 %" in parser.format_help()
    assert arguments.from_namespace(every, parser.parse_args([])) is None


def test_numbers_paths_and_booleans_are_read() -> None:
    assert (arguments.port("65535"), arguments.path("/run/x"), arguments.seconds("8784h")) == (
        65535,
        "/run/x",
        31622400,
    )
    words = (True, False, "yes", "true", "no", "false")
    assert [arguments.boolean(word) for word in words] == [True, False, True, True, False, False]


@pytest.mark.parametrize(
    ("parse", "values"),
    [
        (arguments.port, [0, 65536]),
        (arguments.path, ["run/x"]),
        (arguments.seconds, ["8785h", -1]),
        (arguments.boolean, [1]),
        (arguments.text, [True, None, "", " ", "a\0b", "a\ud800", 1.5, ["a"], {}]),
        (arguments.command, [[], "", [""], {}, None]),
    ],
)
def test_other_values_are_refused(parse: Callable[[object], object], values: list[object]) -> None:
    for value in values:
        with pytest.raises(ValueError):
            parse(value)
