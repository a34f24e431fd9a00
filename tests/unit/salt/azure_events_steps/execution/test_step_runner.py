# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One step in processes of its own: results, output, variables and limits, on Linux and on Windows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from azure_events_steps import lock
from azure_events_steps.configuration import COMMAND, FUNCTION, Step
from azure_events_steps.execution.posix_program import run_program
from azure_events_steps.execution.results import DONE, FAILED, TAIL, TIMEOUT, Call, StepResult, decode_windows_output
from azure_events_steps.execution.step_runner import run_step
from support.salt import steps
from support.salt.job_process import is_running, pid_in
from support.salt.steps import WINDOWS, python, shell, variable

VARIABLES = {"EVENT_ID": "C7061BAC", "EVENT_DESCRIPTION": "a&b \u00fc\u6f22"}


def command(action: Any, timeout: float = 60, **variables: str) -> StepResult:
    step = Step("x", COMMAND, tuple(action) if isinstance(action, list) else action, (), {}, {}, timeout)
    return run_step(step, {**VARIABLES, **variables}, steps.raises)


def function(call: Call, timeout: float = 60, *args: Any) -> StepResult:
    return run_step(Step("x", FUNCTION, "a.b", args, {}, {}, timeout), VARIABLES, call)


@pytest.mark.parametrize(
    ("action", "outcome", "output"),
    [
        ("echo one", DONE, "one"),
        ("exit 3", FAILED, "exit code 3"),
        (python("print('one'); print('two')"), DONE, "one\ntwo"),
        (python("import sys; sys.stderr.write('why'); sys.exit(7)"), FAILED, "why\nexit code 7"),
        (python("import sys; print(repr(sys.stdin.read()))"), DONE, "''"),
        (python("import sys; sys.stdout.buffer.write(sys.argv[1].encode())", "\u00fc\u6f22"), DONE, "\u00fc\u6f22"),
        (python("import os; print(os.path.dirname(os.getcwd()) == os.getcwd())"), DONE, "True"),
    ],
    ids=["text", "exit-code", "list", "error", "no-input", "argument", "root-folder"],
)
def test_command_has_its_outcome_and_output(action: Any, outcome: str, output: str) -> None:
    result = command(action)
    assert (result.name, result.kind, result.outcome, result.output) == ("x", COMMAND, outcome, output)


def test_program_that_does_not_exist_is_a_failure() -> None:
    assert command(["/no/such/program"]).output.startswith("the command cannot be started: ")


def test_variables_are_in_the_environment_of_a_command() -> None:
    code = "import os, sys; sys.stdout.buffer.write(os.environ['EVENT_DESCRIPTION'].encode())"
    assert command(python(code)).output == ("a?b \u00fc\u6f22" if WINDOWS else "a&b \u00fc\u6f22")


@pytest.mark.parametrize("text", ["x & echo y", "x | echo y", 'x" & echo y', "x %EVENT_ID% (y)"])
def test_value_of_a_variable_is_no_command_of_the_shell(text: str) -> None:
    result = command(f"echo {variable('EVENT_DESCRIPTION')}", EVENT_DESCRIPTION=text)
    expected = "".join("?" if character in '"&|%()' else character for character in text) if WINDOWS else text
    assert (result.outcome, result.output) == (DONE, expected)


@pytest.mark.skipif(not WINDOWS, reason="only code pages of Windows replace characters")
@pytest.mark.parametrize("sign", ["\uff02", "\u02ba", "\u030e", "\u201c", "\uff06", "\uff05", "\u2039"])
def test_code_page_does_not_turn_a_sign_into_one_of_the_shell(sign: str) -> None:
    result = command(f"echo {variable('EVENT_DESCRIPTION')}", EVENT_DESCRIPTION=f"x{sign}y")
    assert (result.outcome, result.output) == (DONE, "x?y")


def test_long_variable_arrives_whole() -> None:
    code = "import os; print(len(os.environ['EVENT_RESOURCES']))"
    assert command(python(code), EVENT_RESOURCES="x" * 31 * 1024).output == str(31 * 1024)


def test_command_that_exceeds_its_timeout_is_ended_with_its_output() -> None:
    # ten times the start of a Python
    limit = 3 if WINDOWS else 1
    result = command(python("import time; print('begun', flush=True); time.sleep(300)"), timeout=limit)
    assert (result.outcome, result.output) == (TIMEOUT, f"ended after {limit} seconds; begun")
    assert limit <= result.seconds < 30


def test_function_gets_step_and_variables_and_returns_its_text() -> None:
    result = function(steps.Returns(True, "\u00fc\u6f22"), 60, "one", {"two": 2})
    assert (result.kind, result.outcome) == (FUNCTION, DONE)
    assert result.output == "\u00fc\u6f22 C7061BAC ('one', {'two': 2})"


@pytest.mark.parametrize(
    ("call", "output"),
    [
        (steps.Returns(False, "no"), "no C7061BAC ()"),
        (steps.raises, "LookupError: why"),
        (steps.exits, "SystemExit: why"),
        (steps.dies, "the process that ran the step has ended with 3"),
    ],
    ids=["false", "exception", "exit", "death"],
)
def test_function_that_fails_has_its_reason(call: Call, output: str) -> None:
    result = function(call)
    assert (result.outcome, result.output) == (FAILED, output)


def test_function_that_exceeds_its_timeout_is_ended() -> None:
    result = function(steps.hangs, 0.2)
    assert (result.outcome, result.output) == (TIMEOUT, "ended after 0.2 seconds;")
    assert 0.2 <= result.seconds < 30


def test_thread_that_goes_on_does_not_delay_the_result() -> None:
    result = function(steps.leaves_a_thread, 20)
    assert (result.outcome, result.output) == (DONE, "done")


@pytest.mark.skipif(WINDOWS, reason="no process of a step inherits a descriptor")
@pytest.mark.parametrize("kind", [COMMAND, FUNCTION])
def test_service_that_a_step_starts_does_not_hold_the_lock_of_the_job(tmp_path: Path, kind: str) -> None:
    service = tmp_path / "service"
    step = Step("x", kind, f"sleep 300 & echo $! > {service}", (str(service),), {}, {}, 20)
    with lock.acquire(str(tmp_path), lock.PREPARATION, 0) as held:
        assert held is not None
        assert run_step(step, {}, steps.starts_a_service, (held.fd,)).outcome == DONE
    try:
        with lock.acquire(str(tmp_path), lock.PREPARATION, 0) as free:
            assert free is not None and is_running(pid_in(service))
    finally:
        os.kill(pid_in(service), signal.SIGKILL)


@pytest.mark.skipif(WINDOWS, reason="Windows has no such account of memory")
def test_service_that_writes_without_end_does_not_fill_the_memory() -> None:
    code = """
import resource
from azure_events_steps.configuration import Step
from azure_events_steps.execution.step_runner import run_step
step = Step("x", "command", "timeout 2 cat /dev/zero & exit 0", (), {}, {}, 20.0)
print(run_step(step, {}, None).outcome, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
    ran = subprocess.run(
        python(code), env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, stdout=subprocess.PIPE, check=True
    )
    outcome, kilobytes = ran.stdout.decode().split()
    assert outcome == DONE and int(kilobytes) < 60_000


@pytest.mark.skipif(WINDOWS, reason="ready hooks run on Linux only")
def test_program_ends_at_its_time_limit_though_a_service_keeps_its_output() -> None:
    began = time.monotonic()
    assert run_program(shell("setsid sleep 6 & sleep 30"), os.environ, 0.5) is None
    assert time.monotonic() - began < 5


def test_function_imports_no_module_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('a module of another user')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    assert function(steps.Returns(True, "one")).outcome == DONE


@pytest.mark.skipif(sys.platform != "win32", reason="a fork needs no pickled call")
@pytest.mark.parametrize("call", [lambda _step, _variables: (True, ""), steps.Unsendable()], ids=["local", "own-error"])
def test_call_that_cannot_be_sent_is_a_failure(call: Call) -> None:
    assert function(call).output.startswith(
        "the function cannot be started: its call cannot be sent to another process: "
    )


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"one\r\ntwo\r\n", "one\ntwo\n"),
        ("\u00fc\u20ac\u6f22".encode(), "\u00fc\u20ac\u6f22"),
        ("Gr\u00fc\u00dfe".encode("cp850"), "Gr\u00fc\u00dfe"),
        ("cut \u20ac".encode()[:-1], "cut "),
        (b"\x80 is not cut", "\u00c7 is not cut"),
    ],
    ids=["empty", "lines", "utf-8", "code-page", "ended-within-a-character", "short"],
)
def test_output_is_utf_8_or_else_in_the_code_page(data: bytes, text: str) -> None:
    assert decode_windows_output(data, "cp850") == text


@pytest.mark.parametrize("cut", [1, 2])
def test_end_of_a_long_output_that_begins_within_a_character_is_utf_8(cut: int) -> None:
    data = ("\u20ac" * TAIL).encode()[cut : cut + TAIL]
    assert set(decode_windows_output(data, "cp850")) == {"\u20ac"}
