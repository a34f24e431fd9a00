# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A hook gets the event and nothing else, ends in time, and its result is known, in a unit or as a child."""

from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path

import pytest

from hook_runner.hooks.children import ChildRun
from hook_runner.hooks.systemd import UnitRun
from hook_runner.records import Cause
from support.daemon.runs_harness import KILL_AFTER, RunsHarness, marked
from support.wait import wait_until

WAITS = "echo up >%s/up\nwhile [ ! -e %s/go ]; do sleep 0.02; done\n"


def test_hook_gets_the_event_and_variables_and_its_output_and_status_are_kept(runs: RunsHarness) -> None:
    hook = runs.hook('cat; echo " $EVENT_ID"; echo err >&2; exit 3\n')
    result = runs.run(hook, input=b'{"a": 1}', variables={"EVENT_ID": "ä b"})
    assert (result.exit_status, result.output, result.error) == (3, '{"a": 1} ä b\nerr\n', "")
    assert 0 <= result.seconds < 10
    runs.hook_runs.remove_collected()
    assert runs.files() == []


def test_environment_of_a_hook_has_nothing_of_the_daemon(runs: RunsHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/x")
    # cat prints what the kernel gave it, and then the hook itself; a shell would add variables of its own
    result = runs.run(runs.hook("#!/bin/cat /proc/self/environ\n"), variables={"EVENT_ID": "7"})
    found = dict(item.split("=", 1) for item in result.output.partition("?#!")[0].split("?"))
    assert set(found) - {"PWD", "OLDPWD"} == {"PATH", "LANG", "HOME", "MARK", "EVENT_ID"}
    assert found["PATH"].startswith("/usr/local/sbin:") and found["LANG"] == "C.UTF-8"


def test_hook_with_a_megabyte_on_stdin_need_not_read_it(runs: RunsHarness) -> None:
    assert runs.run(runs.hook("exit 0\n"), input=b"x" * (1 << 20)).exit_status == 0
    assert runs.run(runs.hook("wc -c\n"), input=b"x" * (1 << 20), number=2).output.strip() == "1048576"


def test_shell_sees_nothing_of_values(runs: RunsHarness) -> None:
    hostile = f"$(touch {runs.folder}/pwned) `id`; exit 5 \"' \\ %h"
    result = runs.run(runs.hook('printf "%s" "$EVENT_DESCRIPTION"\n'), variables={"EVENT_DESCRIPTION": hostile})
    assert (result.exit_status, result.output) == (0, hostile)
    assert not (runs.folder / "pwned").exists()


def test_hook_that_may_not_be_executed_or_is_missing_is_not_started(runs: RunsHarness) -> None:
    hook = runs.hook("exit 0\n")
    Path(hook.path).chmod(0o644)
    for _time in range(2):
        with pytest.raises(OSError, match="executable" if runs.in_units else None):
            runs.start(hook)
        Path(hook.path).unlink(missing_ok=True)
    assert runs.files() == [] and runs.hook_runs.next_check_in() is None and runs.systemd.units() == []


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGTERM])
def test_signal_that_ends_a_hook_is_not_a_success(runs: RunsHarness, number: signal.Signals) -> None:
    result = runs.run(runs.hook(f"kill -{number.value} $$\n"))
    assert (result.exit_status, result.cause) == (-number, Cause.NONE)


def test_flood_of_output_is_bounded_and_its_end_is_kept(runs: RunsHarness) -> None:
    result = runs.run(runs.python("for _ in range(400): os.write(1, b'y\\n' * 65536)\nprint('last', flush=True)\n"))
    assert result.exit_status == 0
    assert len(result.output) <= 4096 and result.output.endswith("y\ny\nlast\n")


def test_output_cannot_control_a_terminal(runs: RunsHarness) -> None:
    result = runs.run(runs.python("os.write(1, b'a\\x1b[31mb\\rc\\x00\\xff\\xc2\\x9b\\td\\n\\xe2\\x80\\xae')\n"))
    assert result.output == "a?[31mb?c?\ufffd?\td\n?"


def test_hook_that_closes_its_output_is_waited_for(runs: RunsHarness) -> None:
    result = runs.run(runs.hook("exec >&- 2>&- <&-; sleep 0.2; exit 4\n"))
    assert result.exit_status == 4
    assert result.seconds >= 0.1


def test_stop_sends_term_to_all_processes_and_kill_follows(runs: RunsHarness) -> None:
    runs.start(
        runs.hook(f"trap 'echo got it' TERM\nsleep 60 & sleep 60 & echo up >{runs.folder}/up\nwhile :; do wait; done\n")
    )
    runs.wait_for("up")
    runs.hook_runs.stop(1, 0.4)
    runs.hook_runs.stop(1, 60)
    runs.hook_runs.stop(99, 60)
    result = runs.result()
    assert result.exit_status == -signal.SIGKILL and "got it" in result.output
    wait_until(lambda: not marked(runs.mark), "the end of all processes")


def test_hook_that_no_signal_ends_gets_kill_once_a_second(runs: RunsHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    for kind in (ChildRun, UnitRun):
        monkeypatch.setattr(kind, "signal", lambda _run, number: sent.append(number))
    now = [100.0]
    hook_runs = runs.restarted(clock=lambda: now[0])
    runs.start(runs.hook("sleep 60\n"), hook_runs=hook_runs)
    for _tick in range(15):
        hook_runs.stop(1, 0.0)
        assert hook_runs.collect_finished() == []
        now[0] += 0.1
    assert sent == [signal.SIGTERM, signal.SIGKILL, signal.SIGKILL]


def test_hook_may_tidy_up_on_term(runs: RunsHarness) -> None:
    runs.start(runs.hook(f"trap 'echo tidy; exit 7' TERM\necho up >{runs.folder}/up\nwhile :; do sleep 0.02; done\n"))
    runs.wait_for("up")
    runs.hook_runs.stop(1, KILL_AFTER)
    result = runs.result()
    assert result.exit_status == 7 and "tidy\n" in result.output


def test_what_a_hook_leaves_is_ended_when_its_result_is_recorded(runs: RunsHarness) -> None:
    hook = runs.hook("sleep 60 &\n(trap '' TERM; while :; do sleep 0.05; done) &\nexit 0\n")
    assert runs.run(hook, kill_after=0.1).exit_status == 0
    runs.hook_runs.remove_collected()
    wait_until(lambda: not marked(runs.mark), "the end of all processes")


def is_readable(runs: RunsHarness, seconds: float) -> bool:
    asked = select.poll()
    asked.register(runs.hook_runs, select.POLLIN)
    return bool(asked.poll(seconds * 1000))


def test_end_of_a_run_makes_the_descriptor_readable_and_nothing_else_does(runs: RunsHarness) -> None:
    runs.start(runs.hook(WAITS % (runs.folder, runs.folder)))
    runs.wait_for("up")
    assert runs.hook_runs.collect_finished() == []
    due = runs.hook_runs.next_check_in()
    assert due is not None and due > time.monotonic() + 1
    assert not is_readable(runs, 0.0)
    (runs.folder / "go").touch()
    assert is_readable(runs, 20.0)
    assert runs.result().exit_status == 0
    assert not is_readable(runs, 0.0) and runs.hook_runs.next_check_in() is None


@pytest.mark.parametrize("error", [OSError(38, "Function not implemented"), AttributeError("pidfd_open")])
def test_kernel_or_python_without_pidfd_is_asked(
    runs: RunsHarness, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def unknown(pid: int) -> int:
        raise error

    monkeypatch.setattr(os, "pidfd_open", unknown)
    runs.start(runs.hook(WAITS % (runs.folder, runs.folder) + "exit 6\n"))
    runs.wait_for("up")
    (runs.folder / "go").touch()
    assert runs.result().exit_status == 6


def test_descriptors_of_runs_are_closed(runs: RunsHarness) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for number in range(1, 4):
        runs.run(runs.hook("exit 0\n"), number=number)
        runs.hook_runs.remove_collected()
    assert len(os.listdir("/proc/self/fd")) == before
