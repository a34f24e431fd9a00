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
from support.daemon.runs_harness import RunsHarness, marked
from support.wait import wait_until

WAITS = "echo up >%s/up\nwhile [ ! -e %s/go ]; do sleep 0.02; done\necho done; exit 6\n"


def catches(process: int, number: int) -> bool:
    """Whether a process has a handler for the signal."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return bool(int(dict(line.split(":\t", 1) for line in lines)["SigCgt"], 16) & 1 << number - 1)


@pytest.fixture
def swept(runs: RunsHarness) -> RunsHarness:
    """A hook that runs until the file `go` is there, in a run directory that has been removed."""
    runs.start(runs.hook(WAITS % (runs.folder, runs.folder)))
    runs.wait_for("up")
    wait_until(lambda: catches(runs.supervisor(), signal.SIGTERM))
    shutil.rmtree(runs.folder / "run")
    return runs


def test_hook_whose_folder_was_removed_runs_on_and_its_result_is_known(swept: RunsHarness) -> None:
    assert swept.hook_runs.collect_finished() == [] and swept.hook_runs.active() == {1}
    (swept.folder / "go").touch()
    result = swept.result()
    assert (result.exit_status, result.output, result.error) == (6, "done\n", "")
    swept.hook_runs.remove(1)
    assert list((swept.folder / "run/runs").iterdir()) == []


def test_next_daemon_takes_over_a_hook_whose_folder_was_removed(swept: RunsHarness) -> None:
    again = swept.restarted()
    assert again.adopt(1) and again.collect_finished() == []
    (swept.folder / "go").touch()
    assert swept.result(hook_runs=again).exit_status == 6


def test_hook_whose_folder_was_removed_can_be_ended(swept: RunsHarness) -> None:
    swept.hook_runs.stop(1, 0.5)
    assert swept.result().exit_status == -15


def test_supervisor_that_was_killed_without_its_folder_is_noticed(swept: RunsHarness) -> None:
    supervisor = supervisor_pid(str(swept.folder / "run/runs/1"))
    assert supervisor is not None
    os.killpg(supervisor, signal.SIGKILL)
    assert swept.result().exit_status is None
    (swept.folder / "go").touch()  # its remains cannot be found any more
    wait_until(lambda: not marked(swept.mark))


def test_hook_starts_where_the_run_directory_was_removed(runs: RunsHarness) -> None:
    assert runs.run(runs.hook("exit 0\n")).exit_status == 0
    runs.hook_runs.remove(1)
    shutil.rmtree(runs.folder / "run")
    runs.start(runs.hook("exit 0\n"), step=2)
    assert runs.result(2).exit_status == 0


def test_result_is_not_written_below_a_folder_that_others_can_write(swept: RunsHarness) -> None:
    swept.folder.chmod(0o777)
    (swept.folder / "go").touch()
    assert swept.result().exit_status is None and not (swept.folder / "run").exists()
