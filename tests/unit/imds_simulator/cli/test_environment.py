# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from imds_simulator.__main__ import main
from imds_simulator.cli.environment import CONTROL, ENDPOINT, ENDPOINTS, parse_arguments, print_unknown, variables
from imds_simulator.cli.options import DEFAULT_CONTROL, exec_parser, serve_parser
from support import simulator_process


def parse(*arguments: str, **environment: str) -> argparse.Namespace:
    present = {f"IMDS_SIMULATOR_{name}": text for name, text in environment.items()}
    return parse_arguments(serve_parser(), arguments, environment=present)


def verb_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="imds_simulator record")
    parser.add_argument("--control", default="http://127.0.0.1:8168")
    parser.add_argument("--for", dest="seconds", type=int, required=True)
    parser.add_argument("--names", nargs="+")
    return parser


def test_every_option_has_its_variable() -> None:
    options = [
        next(each for each in action.option_strings if each.startswith("--"))
        for action in exec_parser()._actions
        if action.option_strings and action.dest not in ("help", "version")
    ]
    expected = {"IMDS_SIMULATOR_" + option.strip("-").replace("-", "_").upper() for option in options}
    assert set(variables(exec_parser())) == expected
    assert {"IMDS_SIMULATOR_SCENARIO", "IMDS_SIMULATOR_KNOB", "IMDS_SIMULATOR_SOURCE"} <= expected


def test_values_have_the_types_of_the_options() -> None:
    options = parse(
        SCENARIO="mine.yaml", LISTEN="127.0.0.2:0", SPEED="60", CLOCK="manual", QUIET="yes", CONTROL_ANYWHERE="0"
    )
    assert (options.scenario, str(options.listen), options.speed) == ("mine.yaml", "127.0.0.2:0", 60.0)
    assert (options.clock, options.quiet, options.control_anywhere) == ("manual", True, False)


def test_an_argument_has_precedence_and_an_empty_variable_counts_as_absent() -> None:
    options = parse("--speed", "2", SPEED="60", SCENARIO="")
    assert (options.speed, options.scenario) == (2.0, None)


@pytest.mark.parametrize(
    "text", ["notice_overrides=Freeze:5m,Reboot:1m,etag=off", "notice_overrides=Freeze:5m,Reboot:1m\netag=off\n"]
)
def test_values_of_a_repeatable_option_are_separated(text: str) -> None:
    options = parse("--knob", "rate_limit=0", KNOB=text)
    pairs = [("notice_overrides", "Freeze:5m,Reboot:1m"), ("etag", "off"), ("rate_limit", "0")]
    assert options.knob == pairs


@pytest.mark.parametrize(
    ("name", "text"), [("SPEED", "fast"), ("LISTEN", "8169"), ("CLOCK", "manuel"), ("QUIET", "maybe"), ("KNOB", "etag")]
)
def test_a_bad_value_names_the_variable(name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse(**{name: text})
    assert stopped.value.code == 2
    assert f"IMDS_SIMULATOR_{name}: {text!r}" in capsys.readouterr().err


def test_help_ignores_bad_values(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse("--help", SPEED="fast")
    assert stopped.value.code == 0


def test_the_address_of_another_simulator_is_not_an_address_to_listen_at() -> None:
    assert parse(CONTROL="http://127.0.0.1:9999").control == DEFAULT_CONTROL
    assert str(parse(CONTROL="127.0.0.1:9999").control) == "127.0.0.1:9999"


def test_a_verb_has_variables_of_its_own_and_shares_the_control_address(capsys: pytest.CaptureFixture[str]) -> None:
    environment = {
        CONTROL: "http://127.0.0.1:9999",
        "IMDS_SIMULATOR_RECORD_FOR": "30",
        "IMDS_SIMULATOR_RECORD_NAMES": "a\nb",
        "IMDS_SIMULATOR_RECORD_FRO": "1",
        "IMDS_SIMULATOR_SPEED": "fast",
    }
    options = parse_arguments(verb_parser(), [], "record", environment)
    assert (options.control, options.seconds, options.names) == (environment[CONTROL], 30, ["a", "b"])
    warnings = capsys.readouterr().err.splitlines()
    assert [("RECORD_FRO:" in each, "RECORD_FOR" in each) for each in warnings] == [(True, True)]


def test_an_unknown_variable_is_a_warning(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("IMDS_SIMULATOR_SPEDE", "1")
    monkeypatch.setenv("IMDS_SIMULATOR_RECORD_FOR", "1")
    monkeypatch.setenv("IMDS_SIMULATOR_ENDPOINT", "http://127.0.0.1:1")
    print_unknown(variables(serve_parser()), ["record"])
    warnings = capsys.readouterr().err.splitlines()
    assert [("SPEDE:" in each, "IMDS_SIMULATOR_SPEED" in each) for each in warnings] == [(True, True)]
    monkeypatch.delenv("IMDS_SIMULATOR_SPEDE")
    monkeypatch.setenv("IMDS_SIMULATOR_EXEC_SPEED", "1")
    assert main(["--list-faults"]) == 0
    (warning,) = capsys.readouterr().err.splitlines()
    assert "EXEC_SPEED:" in warning and "IMDS_SIMULATOR_SPEED?" in warning


def test_a_removed_variable_is_a_warning_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("IMDS_SIMULATOR_NOTIFY_HEADER", "X-A=1")
    assert main(["--list-faults"]) == 0
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.endswith(
        "IMDS_SIMULATOR_NOTIFY_HEADER: this option was removed; set headers below the key notify of the scenario"
    )


def test_a_command_does_not_get_the_options_of_its_simulator() -> None:
    options = {"LISTEN": "127.0.0.1:0", "CONTROL": "127.0.0.1:0", "SPEED": "60", "QUIET": "1"}
    environment = {**simulator_process.environment(), **{f"IMDS_SIMULATOR_{name}": options[name] for name in options}}
    inner = [sys.executable, "-m", "imds_simulator", "--list-faults"]
    script = 'env | grep -o "^IMDS_SIMULATOR_[A-Z_]*" | sort; "$@" >/dev/null'
    command = [sys.executable, "-m", "imds_simulator", "exec", "--", "sh", "-ec", script, "sh", *inner]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [CONTROL, ENDPOINT, ENDPOINTS]
