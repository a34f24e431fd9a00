# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The run directory is removed while a hook runs: the hook runs on, once, and its result is known."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from hook_runner.hooks.processes import supervisor_pid
from support.daemon.runs_harness import Bench, marked, until

WAITS = "echo up >%s/up\nwhile [ ! -e %s/go ]; do sleep 0.02; done\necho done; exit 6\n"


def catches(process: int, number: int) -> bool:
    """Whether a process has a handler for the signal."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return bool(int(dict(line.split(":\t", 1) for line in lines)["SigCgt"], 16) & 1 << number - 1)


@pytest.fixture
def swept(bench: Bench) -> Bench:
    """A hook that runs until the file `go` is there, in a run directory that has been removed."""
    bench.start(bench.hook(WAITS % (bench.folder, bench.folder)))
    bench.wait_for("up")
    until(lambda: catches(bench.keeper(), signal.SIGTERM))
    shutil.rmtree(bench.folder / "run")
    return bench


def test_hook_whose_folder_was_removed_runs_on_and_its_result_is_known(swept: Bench) -> None:
    assert swept.runs.collect_finished() == [] and swept.runs.active() == {1}
    (swept.folder / "go").touch()
    result = swept.result()
    assert (result.exit_status, result.output, result.error) == (6, "done\n", "")
    swept.runs.remove(1)
    assert list((swept.folder / "run/runs").iterdir()) == []


def test_next_daemon_takes_over_a_hook_whose_folder_was_removed(swept: Bench) -> None:
    again = swept.restarted()
    assert again.adopt(1) and again.collect_finished() == []
    (swept.folder / "go").touch()
    assert swept.result(runs=again).exit_status == 6


def test_hook_whose_folder_was_removed_can_be_ended(swept: Bench) -> None:
    swept.runs.stop(1, 0.5)
    assert swept.result().exit_status == -15


def test_keeper_that_was_killed_without_its_folder_is_noticed(swept: Bench) -> None:
    keeper = supervisor_pid(str(swept.folder / "run/runs/1"))
    assert keeper is not None
    os.killpg(keeper, signal.SIGKILL)
    assert swept.result().exit_status is None
    (swept.folder / "go").touch()  # what it left cannot be found any more
    until(lambda: not marked(swept.mark))


def test_hook_starts_where_the_run_directory_was_removed(bench: Bench) -> None:
    assert bench.run(bench.hook("exit 0\n")).exit_status == 0
    bench.runs.remove(1)
    shutil.rmtree(bench.folder / "run")
    bench.start(bench.hook("exit 0\n"), step=2)
    assert bench.result(2).exit_status == 0


def test_result_is_not_written_below_a_folder_that_others_can_write(swept: Bench) -> None:
    swept.folder.chmod(0o777)
    (swept.folder / "go").touch()
    assert swept.result().exit_status is None and not (swept.folder / "run").exists()
