# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Simulators for tests that use HTTP."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from imds_simulator.__main__ import main
from imds_simulator.testing import Simulator
from support import simulator_process
from support.simulator.simulations import PAIR


@pytest.fixture(scope="session", autouse=True)
def _default_sighup() -> None:
    """Restore the default of SIGHUP: under nohup every simulator would inherit that SIGHUP is ignored."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Done(NamedTuple):
    """The exit code of a command, and what it printed."""

    code: object
    out: str
    err: str


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Return a function that runs the command line in this process."""

    def run(*arguments: object) -> Done:
        try:
            code: object = main([*map(str, arguments)])
        except SystemExit as stop:
            code = stop.code
        return Done(code, *capfd.readouterr())

    return run


@pytest.fixture
def start_simulator() -> Iterator[Callable[..., Simulator]]:
    """Return a function that starts a ``Simulator``; the started ones end after the test."""
    with ExitStack() as running:
        yield lambda *args, **kwargs: running.enter_context(Simulator(*args, **kwargs))


@pytest.fixture
def start_pair(start_simulator: Callable[..., Simulator]) -> Callable[..., Simulator]:
    """Return a function that starts a simulator of two VMs, with further keys of a scenario; without a rate limit."""
    return lambda **more: start_simulator({"groups": PAIR, "knobs": {"rate_limit": 0}, **more})


@pytest.fixture
def start_process() -> Iterator[Callable[..., simulator_process.Simulator]]:
    """Return ``simulator_process.start``, for tests of the process; the started ones end after the test."""
    with ExitStack() as running:
        yield lambda *args, **kwargs: running.enter_context(simulator_process.start(*args, **kwargs))


@pytest.fixture(scope="session")
def _shared_simulator() -> Iterator[Simulator]:
    """One simulator for tests that share it: manual clock, no rate limit."""
    scenario = {
        "title": "tests",
        "knobs": {"rate_limit": 0},
        "groups": {
            **PAIR,
            "other": {"kind": "standalone", "vms": {"stranger": {}}},
            "pool": {"kind": "scale_set", "vms": {"pool_0": {}, "pool_3": {}}},
        },
    }
    with Simulator(scenario) as running:
        running.knobs_at_start = running.get("/knobs")
        yield running


@pytest.fixture
def sim(_shared_simulator: Simulator) -> Simulator:
    """Return the shared simulator without events, faults or changed knobs."""
    _shared_simulator.delete("/faults")
    for event in _shared_simulator.get("/events")["events"]:
        if event["status"] != "Gone":
            _shared_simulator.post(f"/events/{event['id']}/complete")
    if _shared_simulator.get("/knobs") != _shared_simulator.knobs_at_start:
        _shared_simulator.post("/knobs", _shared_simulator.knobs_at_start)
    return _shared_simulator


@pytest.fixture
def vm1(sim: Simulator) -> str:
    """Return the URL of vm1 of the shared simulator."""
    return sim.endpoint


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """Return environment variables with which python3 is the Python of the tests."""
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    found = simulator_process.environment()
    return {**found, "PATH": f"{python.parent}{os.pathsep}{found['PATH']}"}


@pytest.fixture
def run_printed(tmp_path: Path, variables: dict[str, str]) -> Callable[..., bytes]:
    """Return a function that runs commands as a page prints them; the options are further variables."""

    def run(script: str, **more: str) -> bytes:
        command, environment = ["bash", "-ec", script], {**variables, **more}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, f"{script}: {done.stderr.decode()}"
        return done.stdout

    return run
