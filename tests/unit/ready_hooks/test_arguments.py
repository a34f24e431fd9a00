# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import argparse

import pytest

from ready_hooks.core import arguments
from ready_hooks.core.arguments import Option
from ready_hooks.core.errors import UsageError
from ready_hooks.core.options import parse_integer

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
        ({"server": "a", "wiat": 1}, "wiat"),
        ({"server": ["a"]}, "server"),
        ({"server": "a", "wait": "soon"}, "wait"),
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


@pytest.mark.parametrize(
    ("value", "expected"),
    [(5, 5.0), (0, 0.0), (0.5, 0.5), ("30s", 30.0), ("1.5m", 90.0), ("2 h", 7200.0)],
)
def test_seconds_reads_numbers_and_time_spans(value: object, expected: float) -> None:
    assert arguments.seconds(value) == expected


@pytest.mark.parametrize("value", [True, None, -1, "-1s", "", "s", "5 days", "1e3", "nan", "9" * 400, "9999h", [5]])
def test_seconds_refuses_what_is_not_a_usable_time_span(value: object) -> None:
    with pytest.raises(ValueError):
        arguments.seconds(value)


@pytest.mark.parametrize("value", [True, None, "", " ", "a\0b", 1.5, ["a"], {}])
def test_text_refuses_other_values(value: object) -> None:
    with pytest.raises(ValueError):
        arguments.text(value)


def test_numbers_and_paths_refuse_what_is_out_of_range() -> None:
    assert (arguments.port("65535"), parse_integer("0"), arguments.path("/run/x")) == (65535, 0, "/run/x")
    for parse, value in (
        (arguments.port, 0),
        (arguments.port, 65536),
        (parse_integer, -1),
        (arguments.path, "run/x"),
    ):
        with pytest.raises(ValueError):
            parse(value)


def test_boolean_reads_yaml_and_command_line() -> None:
    assert [arguments.boolean(value) for value in (True, False, "yes", "true", "no", "false")] == [
        *(True, False),
        *(True, True, False, False),
    ]
    with pytest.raises(ValueError):
        arguments.boolean(1)


def test_text_refuses_half_characters() -> None:
    with pytest.raises(ValueError, match="half characters"):
        arguments.text("a\ud800")


def test_command_is_a_list_or_a_text_for_the_shell() -> None:
    assert arguments.command(["save", 5]) == ("save", "5")
    assert arguments.command("save --all | cat") == ("/bin/sh", "-c", "save --all | cat")


@pytest.mark.parametrize("value", [[], "", [""], {}, None])
def test_command_refuses_an_empty_one(value: object) -> None:
    with pytest.raises(ValueError):
        arguments.command(value)


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
