# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A full run directory loses no result, and the daemon collects results without frequent checks."""

from __future__ import annotations

import os
import select

import pytest

from hook_runner.hooks.runs import HookRuns
from hook_runner.hooks.supervisor import LITTLE_OUTPUT
from hook_runner.records import Cause
from support.daemon.child_processes import fill_up, on_small_disk
from support.daemon.runs_harness import ObservedRuns, RunsHarness
from support.wait import wait_until

WAITS = "echo up >%s/up\nwhile [ ! -e %s/go ]; do sleep 0.02; done\n"
# each of these characters has two bytes, and six in the result
TALKS_MUCH = "yes é | tr -d '\\n' | head -c 9000; echo; echo end\n"


def waiting(runs: RunsHarness, then: str = "") -> str:
    return runs.hook(WAITS % (runs.folder, runs.folder) + then)


def test_hook_that_succeeds_while_the_file_system_is_full_has_succeeded(runs: RunsHarness) -> None:
    path = waiting(runs, TALKS_MUCH)
    disk = runs.folder / "disk"
    disk.mkdir()

    def work() -> None:
        hook_runs = HookRuns(str(disk), {}, 5.0)
        hook_runs.start(1, path, b"{}", {}, 60.0)
        runs.wait_for("up")
        fill_up(str(disk / "others"))
        (runs.folder / "go").touch()
        ((_number, result),) = wait_until(hook_runs.collect_finished, "the result")
        assert (result.exit_status, result.error) == (0, ""), result
        # of its output there is what there is room for
        assert result.output.endswith("éé\nend\n") and len(result.output) == LITTLE_OUTPUT

    if (status := on_small_disk(str(disk), 1 << 17, work)) == 77:
        pytest.skip("a file system of a test's own needs root and mount namespaces")
    assert status == 0


def test_result_that_cannot_be_written_is_kept_and_written_later(runs: RunsHarness) -> None:
    now = [0.0]
    hook_runs = runs.restarted(clock=lambda: now[0])
    runs.start(waiting(runs), hook_runs=hook_runs)
    runs.wait_for("up")
    obstacle = runs.folder / "run/runs/1/result.new"
    obstacle.unlink()
    obstacle.mkdir()
    (runs.folder / "go").touch()
    wait_until(lambda: not (runs.folder / "run/runs/1/input").exists(), "an attempt")
    # the daemon ends the supervisor for its time; the hook's result is not affected, and the supervisor goes
    # on
    hook_runs.stop(1, 1)
    now[0] = 60.0
    assert hook_runs.collect_finished() == []
    assert not runs.restarted().adopt(2)
    later = runs.restarted()
    assert later.adopt(1) and later.collect_finished() == []
    obstacle.rmdir()
    assert runs.result(hook_runs=later).exit_status == 0
    assert runs.result(hook_runs=hook_runs).exit_status == 0


def test_supervisor_that_can_never_write_is_ended(runs: RunsHarness) -> None:
    now = [0.0]
    hook_runs = runs.restarted(clock=lambda: now[0])
    runs.start(waiting(runs), hook_runs=hook_runs)
    runs.wait_for("up")
    (runs.folder / "run/runs/1/result.new").unlink()
    (runs.folder / "run/runs/1/result.new").mkdir()
    (runs.folder / "go").touch()
    wait_until(lambda: not (runs.folder / "run/runs/1/input").exists(), "an attempt")
    hook_runs.stop(1, 1)
    now[0] = 3600.0
    assert runs.result(hook_runs=hook_runs).cause is Cause.SUPERVISOR_LOST


def is_readable(hook_runs: ObservedRuns, seconds: float) -> bool:
    asked = select.poll()
    asked.register(hook_runs, select.POLLIN)
    return bool(asked.poll(seconds * 1000))


@pytest.mark.parametrize("adopted", [False, True], ids=["own", "adopted"])
def test_end_of_a_run_makes_the_descriptor_readable_and_nothing_else_does(runs: RunsHarness, adopted: bool) -> None:
    runs.start(waiting(runs))
    runs.wait_for("up")
    hook_runs = runs.hook_runs
    if adopted:
        hook_runs = runs.restarted()
        assert hook_runs.adopt(1)
    assert hook_runs.collect_finished() == [] and hook_runs.next_check_in() is None
    assert not is_readable(hook_runs, 0.0)
    (runs.folder / "go").touch()
    assert is_readable(hook_runs, 20.0)
    assert runs.result(hook_runs=hook_runs).exit_status == 0
    assert not is_readable(hook_runs, 0.0) and hook_runs.next_check_in() is None


def test_run_whose_pipe_was_removed_is_checked_each_second(runs: RunsHarness) -> None:
    now = [5.0]
    runs.start(waiting(runs))
    runs.wait_for("up")
    (runs.folder / "run/runs/1/alive").unlink()
    hook_runs = runs.restarted(clock=lambda: now[0])
    assert hook_runs.adopt(1) and hook_runs.next_check_in() == 6.0
    (runs.folder / "go").touch()
    assert runs.result(hook_runs=hook_runs).exit_status == 0
    runs.result()


def test_run_that_has_to_end_is_checked_after_the_time_of_its_supervisor(runs: RunsHarness) -> None:
    now = [5.0]
    hook_runs = runs.restarted(clock=lambda: now[0])
    runs.start(
        runs.hook(f"trap '' TERM\necho up >{runs.folder}/up\nwhile :; do sleep 0.05; done\n"), hook_runs=hook_runs
    )
    runs.wait_for("up")
    assert hook_runs.next_check_in() is None
    hook_runs.stop(1, 0.2)
    assert hook_runs.next_check_in() == pytest.approx(5.0 + 0.2 + 3.0)
    assert runs.result(hook_runs=hook_runs).exit_status == -9


def test_descriptors_of_runs_are_closed(runs: RunsHarness) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for number in range(1, 4):
        runs.start(runs.hook("exit 0\n"), number)
        runs.result(number)
        runs.hook_runs.remove(number)
    assert len(os.listdir("/proc/self/fd")) == before
