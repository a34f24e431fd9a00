# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hooks end in time and leave nothing behind, whatever they do against it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from hook_runner.hooks import supervisor
from hook_runner.hooks.processes import is_supervised
from hook_runner.records import Cause
from support.daemon.runs_harness import LONG, RunsHarness, marked
from support.wait import wait_until


def test_a_hook_is_ended_when_its_time_is_up(runs: RunsHarness) -> None:
    result = runs.run(runs.hook("sleep 60\n"), limit=0.3)
    assert result.exit_status == -signal.SIGTERM
    assert (result.cause, result.error) == (Cause.TIME_LIMIT, "its time limit of 0.3 s was up")
    assert 0.3 <= result.seconds < 5


def test_what_ignores_term_is_killed_after_its_time(runs: RunsHarness) -> None:
    hook_runs = runs.restarted(kill_after=0.2)
    runs.start(runs.hook("trap '' TERM\nwhile :; do sleep 0.05; done\n"), limit=1.5, hook_runs=hook_runs)
    result = runs.result(hook_runs=hook_runs)
    assert result.exit_status == -signal.SIGKILL
    assert 1.7 <= result.seconds < 20


def test_stop_reaches_the_whole_group_at_once_and_kill_follows(runs: RunsHarness) -> None:
    runs.start(
        runs.hook(f"trap 'echo got it' TERM\nsleep 60 & sleep 60 & echo up >{runs.folder}/up\nwhile :; do wait; done\n")
    )
    runs.wait_for("up")
    began = time.monotonic()
    runs.hook_runs.stop(1, 0.4)
    runs.hook_runs.stop(1, 60)
    result = runs.result()
    assert (result.exit_status, result.cause) == (-signal.SIGKILL, Cause.ENDED_EARLY)
    assert "got it" in result.output
    assert 0.3 <= time.monotonic() - began < 20
    runs.hook_runs.stop(1)
    runs.hook_runs.stop(99)


def test_a_hook_may_tidy_up_on_term(runs: RunsHarness) -> None:
    runs.start(runs.hook(f"trap 'echo tidy; exit 7' TERM\necho up >{runs.folder}/up\nwhile :; do sleep 0.02; done\n"))
    runs.wait_for("up")
    runs.hook_runs.stop(1)
    result = runs.result()
    assert result.exit_status == 7
    assert "tidy\n" in result.output


def test_a_stop_that_comes_before_the_hook_has_begun_is_not_lost(runs: RunsHarness) -> None:
    runs.start(runs.hook("sleep 60\n"))
    runs.hook_runs.stop(1)
    assert runs.result().cause is Cause.ENDED_EARLY


def test_a_later_stop_can_only_be_more_urgent(runs: RunsHarness) -> None:
    runs.start(runs.hook(f"trap '' TERM\necho up >{runs.folder}/up\nwhile :; do sleep 0.05; done\n"))
    runs.wait_for("up")
    runs.hook_runs.stop(1, 60)
    runs.hook_runs.stop(1, 0)
    assert runs.result().exit_status == -signal.SIGKILL


@pytest.mark.parametrize("ends_by", ["term", "kill"])
def test_a_hook_that_stops_itself_is_ended(runs: RunsHarness, ends_by: str) -> None:
    trap = "trap '' TERM\n" if ends_by == "kill" else ""
    runs.start(runs.hook(f"{trap}echo up >{runs.folder}/up\nkill -STOP $$\nwhile :; do sleep 0.05; done\n"))
    runs.wait_for("up")
    runs.hook_runs.stop(1, 0.3)
    assert runs.result().exit_status == (-signal.SIGTERM if ends_by == "term" else -signal.SIGKILL)


def test_what_a_hook_leaves_in_its_group_is_ended(runs: RunsHarness) -> None:
    result = runs.run(runs.hook("sleep 60 &\n(trap '' TERM; while :; do sleep 0.05; done) &\nexit 0\n"))
    assert result.exit_status == 0
    assert result.seconds < 5
    assert not [pid for pid in marked(runs.mark) if b"supervisor.py" not in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_daemon_that_leaves_the_group_is_left_alone_and_delays_nothing(runs: RunsHarness) -> None:
    runs.may_leave = True
    leave = (
        "if os.fork() == 0:\n  os.setsid()\n"
        "  if os.fork() == 0:\n    open('%s/up', 'w').write(str(os.getpid()))\n    time.sleep(60)\n"
        "  os._exit(0)\n"
    )
    result = runs.run(runs.python(leave % runs.folder + "os.wait()\n"))
    assert result.exit_status == 0
    assert result.seconds < 5
    os.kill(int(runs.wait_for("up")), 0)
    wait_until(lambda: not is_supervised(str(runs.folder / "run/runs/1")), "the supervisor's end")


def test_a_daemon_may_leave_the_group_a_moment_after_the_hook_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """daemon(3) does it so: the parent ends, and then the child makes a session of its own."""
    script = (
        "import os, sys, time\nif os.fork() == 0:\n"
        "  sys.stdin.read()\n  os.setsid()\n  print(os.getpid(), flush=True)\n  time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-ISc", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    ) as hook:
        assert hook.stdin and hook.stdout
        go, pids = hook.stdin, hook.stdout
        os.waitid(os.P_PID, hook.pid, os.WEXITED | os.WNOWAIT)
        left: list[int] = []

        def sleep(_seconds: float) -> None:
            if not left:
                go.close()
                left.append(int(pids.readline()))

        monkeypatch.setattr(supervisor, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: float(len(left))))
        output = supervisor.OutputCapture(b"hooks.d/prepare/10-hook")
        output.descriptor, writer = os.pipe()
        os.set_blocking(output.descriptor, False)
        supervisor.HookSupervisor(hook.pid, output, 0.0, LONG, 5.0).terminate_group()
        os.kill(left[0], signal.SIGKILL)  # fails where it was ended with the group
        for end in (output.descriptor, writer):
            os.close(end)


def test_a_hook_that_leaves_its_own_group_is_still_ended(runs: RunsHarness) -> None:
    away = "child = os.fork()\nif not child:\n  time.sleep(60)\nos.setpgid(child, child)\nos.setpgid(0, child)\n"
    script = away + "open('%s/up', 'w').write('1')\ntime.sleep(60)\n"
    runs.may_leave = True
    runs.start(runs.python(script % runs.folder))
    runs.wait_for("up")
    runs.hook_runs.stop(1)
    assert runs.result().exit_status == -signal.SIGTERM


def test_hook_ends_with_a_supervisor_that_is_killed(runs: RunsHarness) -> None:
    runs.start(runs.hook(f"trap '' TERM\nsleep 60 &\necho up >{runs.folder}/up\nwhile :; do sleep 0.05; done\n"))
    runs.wait_for("up")
    os.kill(runs.supervisor(), signal.SIGKILL)
    result = runs.result()
    assert (result.exit_status, result.cause) == (None, Cause.SUPERVISOR_LOST)
    wait_until(lambda: not marked(runs.mark), "the hook's end")


def test_hanging_supervisor_does_not_keep_its_hook_alive(runs: RunsHarness) -> None:
    now = [0.0]
    hook_runs = runs.restarted(clock=lambda: now[0])
    runs.start(runs.hook(f"echo up >{runs.folder}/up\nsleep 60\n"), hook_runs=hook_runs)
    runs.wait_for("up")
    os.kill(runs.supervisor(), signal.SIGSTOP)
    hook_runs.stop(1, 2)
    assert hook_runs.collect_finished() == []
    now[0] = 60.0
    assert runs.result(hook_runs=hook_runs).cause is Cause.SUPERVISOR_LOST


def test_supervisor_that_gets_term_ends_its_hook_also_in_its_first_moment(runs: RunsHarness) -> None:
    before = children()
    runs.start(runs.hook("sleep 60\n"))
    (process,) = children() - before
    os.kill(process, signal.SIGTERM)
    result = runs.result()
    assert (result.exit_status, result.cause) == (-signal.SIGTERM, Cause.HOST_SHUTDOWN)


def children() -> set[int]:
    return {int(number) for path in Path("/proc/self/task").glob("*/children") for number in path.read_text().split()}
