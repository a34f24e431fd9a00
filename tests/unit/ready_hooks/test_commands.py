# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ready_hooks.core import commands
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError, OutOfTime
from support.wait import wait_until

AMPLE = 120.0


def shell(script: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", script)


def has_ended(pid: int) -> bool:
    """Return True if the process has ended; its zombie may remain."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_run_returns_status_and_both_outputs() -> None:
    result = commands.run(shell("echo out; echo first >&2; echo last >&2; exit 3"), Deadline(AMPLE))
    assert result == (3, "out\n", "first\nlast\n")
    assert result.reason == "last"


def test_run_gives_input_and_environment_and_keeps_the_other_variables() -> None:
    script = shell('cat; echo "$WORD"; test -n "$PATH"')
    assert commands.run(script, Deadline(AMPLE), given="given ä ", environment={"WORD": "set"}) == (
        0,
        "given ä set\n",
        "",
    )


def test_run_passes_large_input_and_output() -> None:
    """Also if the program takes its time before it reads."""
    text = "x" * (4 << 20)
    assert commands.run(shell("sleep 0.3; cat"), Deadline(AMPLE), given=text).output == text


def test_run_of_a_missing_program_names_it() -> None:
    with pytest.raises(HookError, match="^missing-program: it cannot be started"):
        commands.run(("missing-program",), Deadline(AMPLE))


def test_run_at_the_time_limit_ends_the_whole_process_group(tmp_path: Path) -> None:
    script = f"sleep 600 & echo $! >{tmp_path}/child; echo $$ >{tmp_path}/parent; trap '' TERM; wait"
    with pytest.raises(OutOfTime):
        commands.run(shell(script), Deadline(AMPLE), most=1)
    for name in ("child", "parent"):
        pid = int((tmp_path / name).read_text(encoding="ascii"))
        wait_until(partial(has_ended, pid), f"{name} has ended")


def test_run_at_the_end_of_the_hook_ends_the_program() -> None:
    with pytest.raises(OutOfTime):
        commands.run(("sleep", "30"), Deadline(0.2), most=AMPLE)


def test_run_does_not_wait_for_a_process_in_the_background(tmp_path: Path) -> None:
    before = time.monotonic()
    result = commands.run(shell(f"sleep 600 & echo $! >{tmp_path}/child; echo out"), Deadline(AMPLE))
    child = int((tmp_path / "child").read_text(encoding="ascii"))
    try:
        assert (result.status, result.output) == (0, "out\n")
        assert time.monotonic() - before < AMPLE / 2
        assert not has_ended(child)
    finally:
        os.kill(child, signal.SIGKILL)


def test_run_at_the_time_limit_ends_although_a_process_has_left_the_group(tmp_path: Path) -> None:
    script = f"setsid sh -c 'echo $$ >{tmp_path}/child.new; mv {tmp_path}/child.new {tmp_path}/child; sleep 600' & wait"
    before = time.monotonic()
    with pytest.raises(OutOfTime):
        commands.run(shell(script), Deadline(AMPLE), most=1)
    assert time.monotonic() - before < AMPLE / 2
    wait_until((tmp_path / "child").exists)
    os.killpg(int((tmp_path / "child").read_text(encoding="ascii")), signal.SIGKILL)


@pytest.mark.parametrize("script", ["exec cat /dev/zero", "exec cat /dev/zero >&2"])
def test_run_ends_a_program_that_prints_without_end(script: str) -> None:
    with pytest.raises(HookError, match="MiB") as caught:
        commands.run(shell(script), Deadline(AMPLE))
    assert not isinstance(caught.value, OutOfTime)


def test_must_run_returns_the_output_and_raises_for_a_failure() -> None:
    assert commands.must_run(("echo", "out"), Deadline(AMPLE)) == "out\n"
    with pytest.raises(HookError, match="status 4: reason"):
        commands.must_run(shell("echo reason >&2; exit 4"), Deadline(AMPLE))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a program as another user")
def test_run_as_another_user() -> None:
    assert commands.must_run(("id", "-un"), Deadline(AMPLE), user="nobody") == "nobody\n"
    assert commands.must_run(("id", "-un"), Deadline(AMPLE), user="root") == "root\n"
    assert commands.run(("id", "-un"), Deadline(AMPLE), user="no-such-user").status != 0


def test_sigterm_that_arrives_while_a_program_is_started_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    popen, started = subprocess.Popen, []

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*arguments, **options))
        signal.raise_signal(signal.SIGTERM)
        return started[-1]

    def end(*_signal: object) -> None:
        raise SystemExit(9)

    monkeypatch.setattr(subprocess, "Popen", start)
    before = signal.signal(signal.SIGTERM, end)
    try:
        with pytest.raises(SystemExit):
            commands.run(["/bin/sleep", "600"], Deadline(600))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert started[0].returncode == -signal.SIGKILL


def test_sigterm_to_the_hook_ends_the_program_that_it_runs(tmp_path: Path) -> None:
    code = (
        "import signal, sys\n"
        "from ready_hooks.core import commands\n"
        "from ready_hooks.core.deadline import Deadline\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
        f"commands.run(['/bin/sh', '-c', 'echo $$ >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; sleep 600'],"
        " Deadline(600))\n"
    )
    hook = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    wait_until((tmp_path / "pid").exists)
    hook.terminate()
    assert hook.wait(AMPLE) == 9
    pid = int((tmp_path / "pid").read_text(encoding="ascii"))
    wait_until(partial(has_ended, pid), "the program has ended")


def test_run_replaces_bytes_that_are_not_utf_8_and_returns_the_number_of_a_signal() -> None:
    result = commands.run(shell(r"cat; printf '\377'; kill -9 $$"), Deadline(AMPLE))
    assert (result.status, result.output) == (-9, "\ufffd")


def test_run_through_passes_output_and_status_and_ends_at_the_time_limit(capfd: pytest.CaptureFixture[str]) -> None:
    assert commands.run_through(shell("echo out; echo error >&2; exit 5"), Deadline(AMPLE)) == 5
    assert capfd.readouterr() == ("out\n", "error\n")
    with pytest.raises(OutOfTime):
        commands.run_through(("sleep", "30"), Deadline(0.2), most=AMPLE)
