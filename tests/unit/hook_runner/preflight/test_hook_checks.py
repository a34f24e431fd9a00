# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The checks that hooks make of themselves, with real processes."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from hook_runner.config.settings import HookSettings, Settings
from hook_runner.hooks.discovery import Hook
from hook_runner.preflight.check import run_checks
from hook_runner.preflight.hook_checks import MOST_LINES, check_hooks_themselves
from hook_runner.preflight.report import ERROR, INFO, WARNING
from support.daemon.documents import GUIDE, blocks
from support.daemon.hook_scripts import is_alive, write_program
from support.wait import wait_until

MARKED = "#!/bin/sh\n# azure-scheduled-events: answers check\n"


def hook(folder: Path, text: str, problem: str | None = None) -> Hook:
    file = write_program(folder / "10-a", text)
    return Hook("prepare", "10-a", str(file), HookSettings(), problem)


def found(made: Hook, limit: float = 30.0, settings: Settings | None = None) -> list[tuple[str, str]]:
    return [(each.severity, each.text) for each in check_hooks_themselves([made], settings or Settings(), limit)]


@pytest.mark.parametrize(
    ("script", "findings"),
    [
        ('echo "the socket answers: $1"; echo slow >&2', [(INFO, "the socket answers: check"), (WARNING, "slow")]),
        ("echo one >/dev/stderr; echo two >/dev/stderr", [(WARNING, "one"), (WARNING, "two")]),
        ("echo fine; echo no socket >&2; exit 1", [(INFO, "fine"), (ERROR, "no socket")]),
        ("exit 3", [(ERROR, "its check failed without a message (exit status 3)")]),
    ],
    ids=["ok", "dev-stderr", "failed", "no-message"],
)
def test_lines_of_a_check_are_findings(tmp_path: Path, script: str, findings: list[tuple[str, str]]) -> None:
    assert found(hook(tmp_path, MARKED + script)) == findings


@pytest.mark.parametrize(
    "text", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\n\n# azure-scheduled-events: answers check\nexit 1\n"]
)
def test_hook_without_the_marker_in_its_second_line_is_not_run(tmp_path: Path, text: str) -> None:
    assert found(hook(tmp_path, text)) == []


def test_hook_that_is_not_trusted_is_not_run(tmp_path: Path) -> None:
    assert found(hook(tmp_path, MARKED + "exit 1", problem="others can write it")) == []


@pytest.mark.parametrize(
    ("script", "limit", "finding"),
    [("wait", 1.0, (ERROR, "its check did not end within 1 s")), ("echo fine", 30.0, (INFO, "fine"))],
    ids=["hangs", "ends-first"],
)
def test_processes_of_a_check_end_with_it(tmp_path: Path, script: str, limit: float, finding: tuple[str, str]) -> None:
    made = hook(tmp_path, MARKED + f"sleep 600 & echo $! >{tmp_path}/child; {script}")
    assert found(made, limit) == [finding]
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: not is_alive(child), "the child has ended")


def test_process_that_left_the_group_of_its_check_cannot_print_for_ever(tmp_path: Path) -> None:
    prints = f"echo $$ >{tmp_path}/child; while echo more; do sleep 0.01; done"
    made = hook(tmp_path, MARKED + f"setsid sh -c '{prints}' & while ! test -s {tmp_path}/child; do sleep 0.01; done")
    assert {severity for severity, _text in found(made)} <= {INFO}
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: not is_alive(child), "the child has ended")


def test_check_that_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    made = hook(tmp_path, "#!/no/such/interpreter\n# azure-scheduled-events: answers check\n")
    ((severity, text),) = found(made)
    assert (severity, text.startswith("its check cannot be started: ")) == (ERROR, True)


def test_output_of_a_check_is_bounded(tmp_path: Path) -> None:
    assert len(found(hook(tmp_path, MARKED + "seq 20000"))) == MOST_LINES
    *lines, last = found(hook(tmp_path, MARKED + "exec yes"), limit=1.0)
    assert (len(lines), last) == (MOST_LINES, (ERROR, "its check did not end within 1 s"))


def test_check_has_the_environment_of_hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READY_HOOKS_PYTHON", "python3.11")
    monkeypatch.setenv("SECRET_OF_THE_CALLER", "x")
    monkeypatch.setenv("HOME", "/srv/of/the/caller")
    shown = "$SITE $READY_HOOKS_PYTHON ${SECRET_OF_THE_CALLER:-} $HOME $HOOK_SECONDS $PWD"
    made = hook(tmp_path, MARKED + f'echo "{shown}"')
    home = pwd.getpwuid(os.geteuid()).pw_dir
    assert found(made, settings=Settings(environment={"SITE": "west"})) == [(INFO, f"west python3.11  {home} 30 /")]


def test_documented_hook_answers(tmp_path: Path) -> None:
    (text,) = [block for block in blocks(GUIDE, "sh") if "\n# azure-scheduled-events: answers check\n" in block]
    write_program(tmp_path / "systemctl", f'#!/bin/sh\necho "$*" >>{tmp_path}/calls\n')
    settings = Settings(environment={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert found(hook(tmp_path, text), settings=settings) == [(INFO, "nginx starts at boot")]
    assert (tmp_path / "calls").read_text() == "--quiet is-enabled nginx\n"


@pytest.mark.parametrize("offline, ask, asked", [(True, False, False), (True, True, True), (False, False, True)])
def test_offline_check_asks_hooks_only_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: bool, ask: bool, asked: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    hook(tmp_path / "hooks.d" / "prepare", MARKED + "echo the workload answers")
    config = tmp_path / "config.yml"
    # a port that refuses connections
    config.write_text("endpoint: http://127.0.0.1:1\n")
    report = run_checks(str(config), "hooks.d", offline, str(tmp_path / "root"), ask)
    assert ("the workload answers" in [each.text for each in report.findings]) == asked
