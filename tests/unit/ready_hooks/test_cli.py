# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ready_hooks import cli, hooks
from ready_hooks.core import arguments
from ready_hooks.core.arguments import Option
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError
from ready_hooks.core.hook import ERROR, INFO, WARNING, Finding, RecordingHook
from ready_hooks.core.record import Record


class Valve(RecordingHook):
    """A hook that closes a valve; a file has its state."""

    name = "haproxy"
    summary = "Closes a valve."
    options = (Option("valve", arguments.path, "file with the state", required=True),)

    def check(self) -> Iterator[Finding]:
        valve = Path(self.run.options["valve"])
        yield Finding(INFO, f"{valve}: {self.run.deadline.left():.1f} s")
        if valve.suffix:
            yield Finding(WARNING, f"{valve}: it has a suffix")
        if not valve.exists():
            yield Finding(ERROR, f"{valve}: missing")

    def prepare(self) -> None:
        valve = Path(self.run.options["valve"])
        if not valve.exists():
            raise HookError(str(valve), "missing", "install it")
        self.run.remember({"state": valve.read_text(encoding="utf-8")})
        self.run.act("close the valve", valve.write_text, f"closed for {self.run.event.event_type}")

    def undo(self, record: dict[str, Any]) -> None:
        self.run.act("open the valve", Path(self.run.options["valve"]).write_text, record["state"])


@pytest.fixture
def valve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(hooks, "load", lambda _name: Valve)
    monkeypatch.delenv("HOOK_SECONDS", raising=False)
    valve = tmp_path / "valve"
    valve.write_text("open", encoding="utf-8")
    return valve


def main(valve: Path, verb: str, **more: object) -> int:
    given = {"valve": str(valve), "state_directory": str(valve.parent / "records"), **more}
    return cli.main(["haproxy", verb, "--json", json.dumps(given)])


def test_prepare_then_recover(valve: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENT_TYPE", "Reboot")
    assert main(valve, "recover") == 0
    assert main(valve, "prepare") == 0
    assert valve.read_text(encoding="utf-8") == "closed for Reboot"
    assert main(valve, "recover") == 0
    assert valve.read_text(encoding="utf-8") == "open"
    valve.write_text("half open", encoding="utf-8")
    assert main(valve, "recover") == 0
    assert valve.read_text(encoding="utf-8") == "half open"


def test_dry_run_changes_nothing_and_creates_no_folder(valve: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(valve, "prepare", dry_run=True) == 0
    assert valve.read_text(encoding="utf-8") == "open"
    assert not (valve.parent / "records").exists()
    assert capsys.readouterr().out == "would close the valve\n"


def test_dry_run_does_not_wait_for_another_run(valve: Path) -> None:
    with Record(str(valve.parent / "records"), "haproxy", "haproxy").locked(Deadline(60)):
        assert main(valve, "prepare", dry_run=True) == 0


def test_failure_is_a_message_and_status_1(valve: Path, capsys: pytest.CaptureFixture[str]) -> None:
    valve.unlink()
    assert main(valve, "prepare") == 1
    assert capsys.readouterr().err == f"haproxy: {valve}: missing; install it\n"


def test_error_of_the_program_is_one_line_without_a_traceback(
    valve: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(_hook: Valve) -> Iterator[Finding]:
        raise KeyError("state\nof the valve")

    monkeypatch.setattr(Valve, "check", check)
    assert main(valve, "check") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("haproxy: cli.py:") and "unexpected KeyError: 'state" in line


def test_two_names_have_two_records(valve: Path) -> None:
    other = valve.with_name("other")
    other.write_text("half open", encoding="utf-8")
    assert main(valve, "prepare") == main(other, "prepare", name="other") == 0
    assert main(valve, "recover") == 0
    assert (valve.read_text(encoding="utf-8"), other.read_text(encoding="utf-8")) == ("open", "closed for ")


def test_check_prints_findings_by_severity(valve: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(valve, "check", limit=10) == 0
    assert capsys.readouterr() == (f"haproxy: {valve}: 9.0 s\n", "")
    missing = valve.with_suffix(".old")
    assert main(missing, "check", name="old", limit=10) == 1
    assert capsys.readouterr() == (
        f"old: {missing}: 9.0 s\n",
        f"old: {missing}: it has a suffix\nold: {missing}: missing\n",
    )


def test_hook_seconds_is_the_limit_of_the_run(
    valve: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOOK_SECONDS", "20")
    assert main(valve, "check", limit=10) == 0
    assert capsys.readouterr().out == f"haproxy: {valve}: 18.0 s\n"
    monkeypatch.setenv("HOOK_SECONDS", "soon")
    assert main(valve, "check") == 2


@pytest.mark.parametrize(
    "more", [{"vavle": "/x"}, {"name": "../x"}, {"name": "."}, {"limit": "soon"}, {"state_directory": "x"}]
)
def test_wrong_option_is_status_2(valve: Path, more: dict[str, object]) -> None:
    assert main(valve, "prepare", **more) == 2
    assert valve.read_text(encoding="utf-8") == "open"


@pytest.mark.parametrize("arguments", [["haproxy"], ["haproxy", "emergency"], ["haproxy", "prepare", "--val=x"]])
def test_wrong_verb_or_flag_is_status_2(valve: Path, arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(arguments)


@pytest.mark.parametrize(
    "words", ["", "run", "no-such-hook prepare", "haproxy prepare", "haproxy prepare --valve=/x --json={}"]
)
def test_unusable_command_line_is_status_2(valve: Path, words: str) -> None:
    assert cli.main(words.split()) == 2


@pytest.mark.parametrize(
    ("use", "options", "named"),
    [
        ("command", {"check": "true"}, "prepare"),
        ("connections", {"ports": 80, "wait": 1}, "wait"),
        ("log", {"journal": False}, "journal"),
        ("notify", {}, "url"),
        ("postgresql", {"switch_back": True}, "switch_back"),
        ("postgresql", {"data_directory": "/srv/db"}, "unit"),
    ],
)
def test_validate_refuses_options_that_do_not_go_together(
    use: str, options: dict[str, object], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([use, "validate", "--json", json.dumps(options)]) == 2
    assert capsys.readouterr().err.startswith(f"{use}: {named}: ")


def test_error_of_a_check_is_its_last_finding(
    valve: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(_hook: Valve) -> Iterator[Finding]:
        yield Finding(INFO, "valve: open")
        raise HookError("pump", "it does not answer", "start it")

    monkeypatch.setattr(Valve, "check", check)
    assert main(valve, "check", name="pump-2") == 1
    assert capsys.readouterr() == ("pump-2: valve: open\n", "pump-2: pump: it does not answer; start it\n")
