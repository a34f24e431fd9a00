# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A hook outlives the daemon that started it, and the next daemon knows what became of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from hook_runner.clock import boot_id
from hook_runner.hooks.processes import is_supervised
from hook_runner.records import Cause
from support.daemon.runs_harness import LONG, SOURCES, RunsHarness, marked
from support.wait import wait_until

Earlier = Callable[..., None]

DAEMON = """
import os, sys
sys.path[:0] = %r
from hook_runner.hooks.runs import HookRuns
runs = HookRuns(sys.argv[1], {"MARK": sys.argv[2]}, 5.0)
runs.start(1, sys.argv[3], b"in", {}, float(sys.argv[4]))
print("started", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def earlier(runs: RunsHarness) -> Earlier:
    """Starts a hook by a daemon of its own, which is then killed."""

    def run(path: str, limit: float = LONG, wait: str = "") -> None:
        command = [sys.executable, "-c", DAEMON % SOURCES, str(runs.folder / "run"), runs.mark, path, str(limit)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as daemon:
            assert daemon.stdout is not None and daemon.stdout.readline() == b"started\n"
            if wait:
                runs.wait_for(wait)
            daemon.kill()

    return run


def test_a_hook_outlives_its_daemon_and_the_next_one_gets_its_result(runs: RunsHarness, earlier: Earlier) -> None:
    earlier(
        runs.hook(
            f"echo up >{runs.folder}/up\nwhile [ ! -e {runs.folder}/go ]; do sleep 0.02; done\necho done; exit 6\n"
        ),
        wait="up",
    )
    assert runs.hook_runs.collect_finished() == []
    assert runs.hook_runs.adopt(1)
    assert runs.hook_runs.active() == {1}
    assert runs.hook_runs.collect_finished() == []
    (runs.folder / "go").touch()
    result = runs.result()
    assert (result.exit_status, result.output, result.error) == (6, "done\n", "")


def test_the_result_of_a_hook_that_ended_while_no_daemon_lived_is_found(runs: RunsHarness, earlier: Earlier) -> None:
    earlier(runs.hook("exit 6\n"))
    wait_until((runs.folder / "run/runs/1/result").exists, "the result")
    assert runs.hook_runs.adopt(1)
    assert runs.result().exit_status == 6
    # a daemon that was killed before it recorded the result gets it again
    again = runs.restarted()
    assert again.adopt(1)
    assert runs.result(hook_runs=again).exit_status == 6
    again.remove(1)
    wait_until(lambda: not runs.restarted().adopt(1), "the end of the supervisor")


def test_a_hook_is_ended_in_time_even_if_no_daemon_lives(runs: RunsHarness, earlier: Earlier) -> None:
    earlier(runs.hook("sleep 60\n"), limit=0.3)
    wait_until((runs.folder / "run/runs/1/result").exists, "the result")
    assert runs.hook_runs.adopt(1)
    assert runs.result().cause is Cause.TIME_LIMIT


def test_an_adopted_hook_can_be_ended(runs: RunsHarness, earlier: Earlier) -> None:
    earlier(runs.hook(f"trap '' TERM\necho up >{runs.folder}/up\nwhile :; do sleep 0.05; done\n"), wait="up")
    assert runs.hook_runs.adopt(1)
    runs.hook_runs.stop(1, 0.2)
    assert runs.result().exit_status == -signal.SIGKILL


def test_adopted_hook_whose_supervisor_was_killed_is_ended(runs: RunsHarness, earlier: Earlier) -> None:
    earlier(runs.hook(f"echo up >{runs.folder}/up\nsleep 60\n"), wait="up")
    os.kill(runs.supervisor(), signal.SIGKILL)
    wait_until(lambda: not is_supervised(str(runs.folder / "run/runs/1")), "the supervisor's end")
    assert runs.hook_runs.adopt(1)
    assert runs.result().cause is Cause.SUPERVISOR_LOST


def test_nothing_is_adopted_after_a_reboot_or_where_nothing_began(runs: RunsHarness) -> None:
    assert not runs.hook_runs.adopt(7)
    folder = runs.folder / "run/runs/7"
    folder.mkdir(parents=True)
    assert not runs.hook_runs.adopt(7)
    # a run directory that is not a tmpfs: the supervisor's process id has no meaning any more
    innocent = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        (folder / "lock").write_text(f"another-boot\n{innocent.pid}\n")
        assert not runs.hook_runs.adopt(7)
        runs.hook_runs.discard(7)
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()
    assert runs.hook_runs.collect_finished() == []


def test_a_number_that_was_given_away_since_is_not_killed(runs: RunsHarness) -> None:
    folder = runs.folder / "run/runs/7"
    folder.mkdir(parents=True)
    innocent = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        (folder / "lock").write_bytes(boot_id() + b"\n%d\n" % innocent.pid)
        assert runs.hook_runs.adopt(7)
        assert runs.result(7).cause is Cause.SUPERVISOR_LOST
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"exit_status": "0", "output": "", "seconds": 0, "error": ""}', "\xff"]
)
def test_a_result_that_cannot_be_read_is_an_error_and_not_a_success(runs: RunsHarness, text: str) -> None:
    folder = runs.folder / "run/runs/7"
    folder.mkdir(parents=True)
    (folder / "result").write_text(text, encoding="latin-1")
    assert runs.hook_runs.adopt(7)
    result = runs.result(7)
    assert result.exit_status is None
    assert "unreadable result" in result.error


def test_orphaned_runs_are_ended_and_removed(runs: RunsHarness, earlier: Earlier) -> None:
    earlier(runs.hook(f"echo up >{runs.folder}/up\nsleep 60\n"), wait="up")
    for name in ("5", "6", "other"):
        (runs.folder / "run/runs" / name).mkdir()
    runs.hook_runs.stop_orphans({6})
    assert runs.hook_runs.active() == set()
    wait_until(
        lambda: (
            runs.hook_runs.collect_finished() == [] and sorted(os.listdir(runs.folder / "run/runs")) == ["6", "other"]
        ),
        "their end",
    )


def test_number_given_again_after_lost_records_ends_the_old_run_first(runs: RunsHarness, earlier: Earlier) -> None:
    earlier(runs.hook(f"trap '' TERM\necho up >{runs.folder}/up\nsleep 60\n"), wait="up")
    result = runs.run(runs.hook("echo new\n", "20-new"))
    assert (result.exit_status, result.output) == (0, "new\n")


DOOMED = """
import sys
sys.path[:0] = %r
from hook_runner.hooks.runs import HookRuns
runs = HookRuns(sys.argv[1], {"MARK": sys.argv[2]}, 5.0)
print("ready", flush=True)
sys.stdin.readline()
runs.start(1, sys.argv[3], b"in", {}, 30.0)
print("started", flush=True)
sys.stdin.read()
"""


def test_hook_has_run_once_and_is_known_or_has_not_run_whenever_the_daemon_is_killed(
    runs: RunsHarness,
) -> None:
    path = runs.hook(f"echo x >>{runs.folder}/ran\nexit 5\n")
    found = []
    # and at last when it has started the hook, however long that takes
    for delay in [*(number * 0.0002 for number in range(15)), 0.005, 0.01, 0.02, None]:
        command = [sys.executable, "-IS", "-c", DOOMED % SOURCES, str(runs.folder / "run"), runs.mark, path]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as daemon:
            assert daemon.stdin is not None and daemon.stdout is not None and daemon.stdout.readline() == b"ready\n"
            daemon.stdin.write(b"\n")
            daemon.stdin.flush()
            if delay is None:
                assert daemon.stdout.readline() == b"started\n"
            else:
                time.sleep(delay)
            daemon.kill()
        later = runs.restarted()
        found.append(later.adopt(1))
        if found[-1]:
            assert runs.result(hook_runs=later).exit_status == 5
        # a run that was not adopted must not begin later
        wait_until(lambda: not marked(runs.mark), "the end")
        assert (runs.folder / "ran").exists() is found[-1]
        if found[-1]:
            assert (runs.folder / "ran").read_text() == "x\n"
            (runs.folder / "ran").unlink()
        later.stop_orphans(set())
        wait_until(
            lambda: later.collect_finished() == [] and not list(runs.folder.glob("run/runs/*")), "the folder's end"
        )
    assert found[-1] is True
