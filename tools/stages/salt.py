# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stages of Salt: loader, masters and minions of each series, in a virtual environment of its own."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tools.interpreters import Interpreter
from tools.stage import Job, Outcome, Skip
from tools.stages.pytest_stage import pytest_folder

# the minor versions of Python that a series runs on, in the order in which they are tried
PYTHONS = {3006: (11, 10), 3007: (11, 10), 3008: (11, 12, 13, 10)}
# a stage runs docs/salt.md and the faults with this series alone
NEWEST = 3008
# the tests wait more than they compute; tests that share a master and its minions are a group
SIDE_BY_SIDE = ("-n", "3", "--dist", "loadgroup")


def salt(job: Job, series: int) -> Outcome:
    """Run all tests of Salt; the documentation and the faults with the newest series alone."""
    passed = functional(job, series) + live(job, series, "salt/live")
    return passed + guide(job, series) if series == NEWEST else passed


def salt_short(job: Job, series: int) -> Outcome:
    """Run the functional tests, and the tests on real masters and minions that are marked as short."""
    return functional(job, series) + live(job, series, "salt/live salt/guide salt/faults", "-m", "short")


def functional(job: Job, series: int) -> Outcome:
    """Run the modules, states and the beacon in Salt's loader."""
    home = install(job, series)
    return pytest_folder(
        job,
        "salt/functional",
        options=SIDE_BY_SIDE,
        results=f"salt-{series}-functional",
        python=home / "bin" / "python",
        env={"SALT_HOME": str(home)},
    )


def live(job: Job, series: int, folders: str, *options: str) -> Outcome:
    """Run the tests of these folders on real masters and minions."""
    return pytest_folder(
        job,
        folders,
        options=(*SIDE_BY_SIDE, *options),
        results=f"salt-{series}-{folders.rpartition('/')[2]}",
        env={"SALT_HOME": str(install(job, series))},
    )


def guide(job: Job, series: int) -> Outcome:
    """Run docs/salt.md as printed, and the table of faults and attacks."""
    return live(job, series, "salt/guide") + live(job, series, "salt/faults")


def install(job: Job, series: int) -> Path:
    """Return the environment at .cache/salt/SERIES; make it again if its requirements or its Python changed."""
    requirements = job.environment.repository / "tests" / "salt" / f"requirements-{series}.txt"
    interpreter = interpreter_for(job, series)
    folder = job.environment.cache / "salt" / str(series)
    marker = folder / "made-of"
    wanted = f"{hashlib.sha256(requirements.read_bytes()).hexdigest()} on Python {interpreter.version}\n"
    if not (marker.exists() and marker.read_text() == wanted):
        job.run_or_fail(interpreter.path, "-m", "venv", "--clear", folder)
        job.run_or_fail(folder / "bin" / "python", "-m", "pip", "install", "-qq", "--requirement", requirements)
        marker.write_text(wanted)
    return folder


def interpreter_for(job: Job, series: int) -> Interpreter:
    """Return the Python that runs this series.

    Raises:
        Skip: this machine has none.
    """
    there = {interpreter.minor: interpreter for interpreter in job.environment.interpreters}
    for minor in PYTHONS[series]:
        if minor in there:
            return there[minor]
    raise Skip(f"Salt {series} needs a Python of " + ", ".join(f"3.{minor}" for minor in sorted(PYTHONS[series])))
