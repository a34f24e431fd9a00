# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One simulator for all tests, and VMs that use it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hook_runner.records import STAGES
from support import simulator_process
from support.daemon.daemon_process import DaemonProcess, MakeDaemon
from support.daemon.runner_harness import MakeVm, RunnerHarness
from support.daemon.runs_harness import RunsHarness
from support.daemon.simulated_azure import GROUPS, Azure, clean
from support.simulator_process import Simulator
from support.wait import wait_until


@pytest.fixture(scope="session")
def _simulator() -> Iterator[tuple[Simulator, dict[str, Any]]]:
    options = ["--clock", "manual", "--knob", "rate_limit=off", "--quiet"]
    with simulator_process.start({"groups": GROUPS}, args=options) as running:
        yield running, running.get("/knobs")


@pytest.fixture
def azure(_simulator: tuple[Simulator, dict[str, Any]]) -> Azure:
    """Azure without events and faults, with a clock of the test."""
    clean(*_simulator)
    made = Azure(_simulator[0])
    # events have whole seconds: a fraction that an earlier test has left would move them
    made.advance(-made.now().timestamp() % 1)
    return made


@pytest.fixture
def make_vm(azure: Azure, tmp_path: Path) -> Iterator[MakeVm]:
    """Make a VM of Azure with this configuration; vm1 unless another `name` is given."""
    made: list[RunnerHarness] = []

    def make(name: str = "vm1", **config: Any) -> RunnerHarness:
        folder = tmp_path / name
        folder.mkdir()
        made.append(RunnerHarness(folder, azure, name, **config))
        return made[-1]

    yield make
    for harness in made:
        harness.close()


@pytest.fixture
def vm(make_vm: MakeVm) -> RunnerHarness:
    """vm1 with a hook for each stage; it approves after preparation."""
    harness = make_vm()
    for stage in STAGES:
        harness.hook(stage + "/10-a")
    return harness


@pytest.fixture
def make_daemon(make_vm: MakeVm) -> Iterator[MakeDaemon]:
    """Make a VM whose daemon is a separate process, which is not started yet."""
    made: list[DaemonProcess] = []

    def make(name: str = "vm1", **config: Any) -> DaemonProcess:
        made.append(DaemonProcess(make_vm(name, **config)))
        return made[-1]

    yield make
    for daemon in made:
        daemon.close()


@pytest.fixture(params=[True, False], ids=["units", "children"])
def in_units(request: pytest.FixtureRequest) -> bool:
    """Whether systemd runs hooks."""
    return bool(request.param)


@pytest.fixture
def runs(tmp_path: Path, in_units: bool) -> Iterator[RunsHarness]:
    """Hook runs in a folder; afterwards no process of them may remain."""
    runs = RunsHarness(tmp_path, in_units)
    yield runs
    runs.kill()
    for daemon in runs.daemons:
        wait_until(lambda daemon=daemon: daemon.collect_finished() == [] and daemon.next_check_in() is None)  # type: ignore[misc]
