# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One simulator for all tests of this folder, and VMs in front of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hook_runner.records import STAGES
from support import simulator_process
from support.daemon.daemon_process import Daemon
from support.daemon.engine_harness import Rig
from support.daemon.runs_harness import Bench, marked, until, zombies
from support.daemon.simulated_azure import GROUPS, Azure, clean
from support.simulator_process import Simulator


@pytest.fixture(scope="session")
def _simulator() -> Iterator[tuple[Simulator, dict[str, Any]]]:
    options = ["--clock", "manual", "--knob", "rate_limit=off", "--quiet"]
    with simulator_process.start({"groups": GROUPS}, args=options) as running:
        yield running, running.get("/knobs")


@pytest.fixture
def azure(_simulator: tuple[Simulator, dict[str, Any]]) -> Azure:
    """Azure without events and faults, whose clock the test moves."""
    clean(*_simulator)
    return Azure(_simulator[0])


@pytest.fixture
def make_rig(azure: Azure, tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    """Make a VM of Azure with this configuration; vm1 unless another `name` is given."""
    made: list[Rig] = []

    def make(name: str = "vm1", **config: Any) -> Rig:
        folder = tmp_path / name
        folder.mkdir()
        made.append(Rig(folder, azure, name, **config))
        return made[-1]

    yield make
    for rig in made:
        rig.close()


@pytest.fixture
def me(make_rig: Callable[..., Rig]) -> Rig:
    """vm1 with a hook for each stage, which approves when it has prepared."""
    rig = make_rig()
    for stage in STAGES:
        rig.hook(stage + "/10-a")
    return rig


@pytest.fixture
def make_daemon(make_rig: Callable[..., Rig]) -> Iterator[Callable[..., Daemon]]:
    """Make a VM whose daemon is a process of its own; it is not started yet."""
    made: list[Daemon] = []

    def make(name: str = "vm1", **config: Any) -> Daemon:
        made.append(Daemon(make_rig(name, **config)))
        return made[-1]

    yield make
    for daemon in made:
        daemon.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Hook runs in a folder, of which nothing is left afterwards."""
    bench = Bench(tmp_path)
    others = set(zombies())
    yield bench
    until(
        lambda: not [pid for pid in marked(bench.mark) if not bench.may_leave or pid in marked("supervisor.py")],
        "the end of all processes",
        3,
    )
    for pid in marked(bench.mark):
        os.kill(pid, signal.SIGKILL)
    for daemon in bench.daemons:
        until(daemon.is_idle, "the end of all runs", 3)
    assert set(zombies()) <= others
