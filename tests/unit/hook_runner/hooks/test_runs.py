# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A hook gets the event and nothing else, and whatever it prints or is, its result is known."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hook_runner.hooks.runs import RunResult
from hook_runner.hooks.spawning import SUPERVISOR
from hook_runner.records import Cause
from support.daemon.runs_harness import RunsHarness, marked
from support.wait import wait_until


def test_a_hook_gets_the_event_and_variables_and_its_output_and_status_are_kept(runs: RunsHarness) -> None:
    path = runs.hook('cat; echo " $EVENT_ID"; echo err >&2; exit 3\n')
    result = runs.run(path, input=b'{"a": 1}', variables={"EVENT_ID": "ä b"})
    assert (result.exit_status, result.output, result.error) == (3, '{"a": 1} ä b\nerr\n', "")
    assert 0 <= result.seconds < 10
    assert runs.hook_runs.active() == set()
    runs.hook_runs.remove(1)
    assert os.listdir(runs.folder / "run/runs") == []


def test_a_hooks_environment_is_clean(runs: RunsHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/x")
    monkeypatch.setenv("LC_ALL", "C")
    # cat shows what the kernel gave it, and then the hook itself; a shell would add variables of
    # its own
    result = runs.run(runs.hook("#!/bin/cat /proc/self/environ\n"), variables={"EVENT_ID": "7"})
    found = dict(item.split("=", 1) for item in result.output.partition("?#!")[0].split("?"))
    assert set(found) == {"PATH", "LANG", "HOME", "MARK", "EVENT_ID"}
    assert found["PATH"].startswith("/usr/local/sbin:")
    assert found["LANG"] == "C.UTF-8"


def test_configured_environment_may_change_the_usual_variables_but_not_the_events(runs: RunsHarness) -> None:
    hook_runs = runs.restarted(environment={"MARK": runs.mark, "PATH": "/bin:/usr/bin", "EVENT_ID": "no"})
    runs.start(runs.hook('echo "$PATH $EVENT_ID"\n'), variables={"EVENT_ID": "yes"}, hook_runs=hook_runs)
    assert runs.result(hook_runs=hook_runs).output == "/bin:/usr/bin yes\n"


def test_a_hook_inherits_nothing_but_its_three_descriptors(runs: RunsHarness) -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
    old_handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        result = runs.run(
            runs.python(
                "mask = os.umask(0)\n"
                "lines = open('/proc/self/status').read().splitlines()\n"
                "status = dict(line.split(':\\t', 1) for line in lines if ':\\t' in line)\n"
                "fds = sorted(int(fd) for fd in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + fd))\n"
                "is_leader, is_session = os.getpgrp() == os.getpid(), os.getsid(0) == os.getppid()\n"
                "print(fds, os.getcwd(), oct(mask), status['SigBlk'], is_leader, is_session)\n"
            )
        )
    finally:
        signal.signal(signal.SIGHUP, old_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
        os.close(read)
        os.close(write)
    assert result.output == "[0, 1, 2] / 0o22 0000000000000000 True True\n"


def test_signals_have_their_ordinary_effect_in_a_hook(runs: RunsHarness) -> None:
    old = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGUSR2, signal.SIGQUIT)}
    try:
        result = runs.run(runs.hook("exec grep -E '^Sig(Ign|Blk):' /proc/self/status\n"))
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
    assert {int(line.split()[1], 16) & 0x7FFFFFFF for line in result.output.splitlines()} == {0}


def test_a_hook_with_a_megabyte_on_stdin_need_not_read_it(runs: RunsHarness) -> None:
    assert runs.run(runs.hook("exit 0\n"), input=b"x" * (1 << 20)).exit_status == 0
    assert runs.run(runs.hook("wc -c\n"), input=b"x" * (1 << 20)).output.strip() == "1048576"


def test_a_shell_sees_nothing_of_values(runs: RunsHarness) -> None:
    hostile = f"$(touch {runs.folder}/pwned) `id`; exit 5 \"'"
    result = runs.run(runs.hook('printf "%s" "$EVENT_DESCRIPTION"\n'), variables={"EVENT_DESCRIPTION": hostile})
    assert (result.exit_status, result.output) == (0, hostile)
    assert not (runs.folder / "pwned").exists()


@pytest.mark.parametrize(
    "script, says",
    [
        ("#!/no/such/interpreter\n", "the interpreter that its first line names is missing"),
        ("#!\n", "does not begin with #!"),
        ("#!/\n", "may not be executed"),
    ],
)
def test_a_hook_that_cannot_be_started_has_a_result_that_says_why(runs: RunsHarness, script: str, says: str) -> None:
    result = runs.run(runs.hook(script))
    assert result.exit_status is None
    assert result.cause is Cause.NOT_STARTED
    assert says in result.error
    assert "supervisor" not in result.error


def test_no_shell_guesses_what_a_file_without_interpreter_might_be(runs: RunsHarness) -> None:
    path = runs.hook("#!/bin/sh\n")
    Path(path).write_text(f"touch {runs.folder}/guessed\n")
    assert "does not begin with #!" in runs.run(path).error
    assert not (runs.folder / "guessed").exists()
    Path(path).write_bytes(b"")
    assert runs.run(path).error
    Path(path).unlink()
    assert "No such file" in runs.run(path).error


def test_signal_of_the_hook_itself_is_in_the_result(runs: RunsHarness) -> None:
    result = runs.run(runs.hook("kill -SEGV $$\n"))
    assert (result.exit_status, result.error) == (-signal.SIGSEGV, "")


def test_a_flood_of_output_is_bounded_and_its_end_is_kept(runs: RunsHarness, capfd: pytest.CaptureFixture[str]) -> None:
    result = runs.run(runs.python("for _ in range(400): os.write(1, b'y\\n' * 65536)\nprint('last', flush=True)\n"))
    assert result.exit_status == 0
    assert len(result.output) <= 4096
    assert result.output.endswith("y\ny\nlast\n")
    log = capfd.readouterr().err
    assert log.startswith("prepare/10-hook: y\n")
    assert "more lines" in log
    assert log.count("\n") < 5000


def test_memory_of_the_supervisor_stays_small_under_an_endless_line(runs: RunsHarness) -> None:
    runs.start(runs.python(f"open('{runs.folder}/up', 'w').write('1')\nwhile True: os.write(1, b'x' * 65536)\n"))
    runs.wait_for("up")
    supervisor = runs.supervisor()
    end = time.monotonic() + 1
    while time.monotonic() < end:
        status = Path(f"/proc/{supervisor}/status").read_text()
        assert int(status.split("VmRSS:")[1].split()[0]) < 40000
        time.sleep(0.05)
    runs.hook_runs.stop(1)
    assert runs.result().output.endswith("xxx")


def test_output_cannot_steer_a_terminal_or_fake_lines_of_the_log(
    runs: RunsHarness, capfd: pytest.CaptureFixture[str]
) -> None:
    result = runs.run(runs.python("os.write(1, b'a\\x1b[31mb\\rc\\x00\\xff\\xc2\\x9b\\td\\n\\xe2\\x80\\xae')\n"))
    assert result.output == "a?[31mb?c?\ufffd?\td\n?"
    assert capfd.readouterr().err == "prepare/10-hook: a?[31mb?c?\ufffd?\td\nprepare/10-hook: ?\n"


def test_log_without_a_reader_does_not_delay_a_hook(runs: RunsHarness) -> None:
    read, write = os.pipe()
    saved = os.dup(2)
    os.dup2(write, 2)
    try:
        runs.start(
            runs.hook(
                "head -c 3000000 /dev/zero | tr '\\0' '\\n'; sleep 0.3\n"
                "i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done\n"
            )
        )
    finally:
        os.dup2(saved, 2)
        os.close(saved)
    result = runs.result()
    os.close(read)
    os.close(write)
    assert (result.exit_status, result.output[-5:]) == (0, "2999\n")


def test_a_log_whose_reader_has_gone_holds_no_hook_up(runs: RunsHarness) -> None:
    read, write = os.pipe()
    saved = os.dup(2)
    os.dup2(write, 2)
    try:
        runs.start(runs.hook("echo a; echo b\n"))
    finally:
        os.dup2(saved, 2)
        for descriptor in (saved, read, write):
            os.close(descriptor)
    assert runs.result()[:2] == (0, "a\nb\n")


def test_a_hook_that_closes_its_output_is_waited_for(runs: RunsHarness) -> None:
    result = runs.run(runs.hook("exec >&- 2>&- <&-; sleep 0.2; exit 4\n"))
    assert result.exit_status == 4
    assert result.seconds >= 0.2


def test_folders_and_files_of_a_run_are_for_their_owner_only(runs: RunsHarness) -> None:
    runs.start(runs.hook(f"echo up >{runs.folder}/up\nsleep 60\n"))
    runs.wait_for("up")
    folder = runs.folder / "run/runs/1"
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    assert b"EVENT" not in Path(f"/proc/{runs.supervisor()}/cmdline").read_bytes()
    runs.hook_runs.stop(1)
    runs.result()


def test_a_run_that_cannot_be_made_raises_and_leaves_nothing(runs: RunsHarness) -> None:
    (runs.folder / "run").write_text("a file where a folder should be")
    with pytest.raises(OSError):
        runs.start(runs.hook("exit 0\n"))
    assert runs.hook_runs.active() == set()


def test_a_missing_python_raises_and_leaves_nothing(runs: RunsHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/python")
    with pytest.raises(FileNotFoundError):
        runs.start(runs.hook("exit 0\n"))
    assert os.listdir(runs.folder / "run/runs") == []


def test_a_folder_that_is_removed_under_a_run_is_an_error_and_not_a_crash(runs: RunsHarness) -> None:
    runs.start(runs.hook(f"echo up >{runs.folder}/up\nsleep 0.2\n"))
    runs.wait_for("up")
    runs.hook_runs.remove(1)
    assert runs.hook_runs.active() == set()
    wait_until(lambda: not marked(runs.mark), "the hook's end")


def test_a_variable_with_a_nul_is_an_error_of_that_hook(runs: RunsHarness) -> None:
    assert runs.run(runs.hook("exit 0\n"), variables={"EVENT_ID": "a\0b"}).cause is Cause.NOT_STARTED


def test_hooks_run_beside_each_other(runs: RunsHarness) -> None:
    path = runs.hook(f"echo up >{runs.folder}/$STEP\nsleep 60\n")
    for step in range(1, 6):
        runs.start(path, step, variables={"STEP": f"up-{step}"})
    for step in range(1, 6):
        runs.wait_for(f"up-{step}")
        runs.hook_runs.stop(step)
    ended: dict[int, RunResult] = {}

    def all_ended() -> bool:
        ended.update(runs.hook_runs.collect_finished())
        return len(ended) == 5

    wait_until(all_ended, "all five")
    assert {result.exit_status for result in ended.values()} == {-signal.SIGTERM}


def test_fifty_runs_in_a_row_take_seconds_and_leave_nothing(runs: RunsHarness) -> None:
    path = runs.hook("exit 0\n")
    took = []
    descriptors = len(os.listdir("/proc/self/fd"))
    for step in range(1, 51):
        began = time.monotonic()
        runs.start(path, step)
        assert runs.result(step).exit_status == 0
        runs.hook_runs.remove(step)
        took.append(time.monotonic() - began)
    # a machine that is busy makes some of them slow, but not each of them
    assert min(took) < 0.5
    assert os.listdir(runs.folder / "run/runs") == []
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_supervisor_imports_little_before_the_hook_runs(runs: RunsHarness) -> None:
    read = "exec(compile(open(%r).read().replace('__main__', 'no'), 'supervisor', 'exec'))"
    code = "import sys; sys.argv = ['supervisor', '/nowhere']; " + read + "; print(sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code % SUPERVISOR], capture_output=True, text=True, check=True
    )
    modules = set(json.loads(done.stdout.replace("'", '"')))
    assert not modules & {"json", "re", "enum", "signal", "subprocess", "typing", "hook_runner"}
