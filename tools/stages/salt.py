# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stages of Salt: each series in an environment of its own, a master and minions of it, and its loader."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tools.interpreters import Interpreter
from tools.pytest_stage import pytest_folder
from tools.stage import Job, Outcome, Skip

# the minor versions of Python that a series runs on, the first of them that is there is taken; 3.11
# runs them all
PYTHONS = {3006: (11, 10), 3007: (11, 10), 3008: (11, 12, 13, 10)}
# make test runs docs/salt.md and the faults with this series alone
NEWEST = 3008
# they wait more than they compute; tests that share a master and its minions are a group
SIDE_BY_SIDE = ("-n", "3", "--dist", "loadgroup")


def salt(job: Job, series: int) -> Outcome:
    environment = {"SALT_HOME": str(install(job, series))}
    ran = Outcome()
    if (job.workshop.repository / "tests" / "salt" / "functional").is_dir():
        python = Path(environment["SALT_HOME"], "bin", "python")
        ran += pytest_folder(
            job, "salt/functional", *SIDE_BY_SIDE, results=f"salt-{series}-functional", python=python, env=environment
        )
    ran += pytest_folder(job, "salt/live", *SIDE_BY_SIDE, results=f"salt-{series}-live", env=environment)
    return ran + guide(job, series) if series == NEWEST else ran


def guide(job: Job, series: int) -> Outcome:
    """docs/salt.md as printed, and the short form of the fault tables."""
    environment = {"SALT_HOME": str(install(job, series))}
    ran = pytest_folder(job, "salt/guide", *SIDE_BY_SIDE, results=f"salt-{series}-guide", env=environment)
    return ran + pytest_folder(
        job, "salt/faults", "-m", "short", *SIDE_BY_SIDE, results=f"salt-{series}-faults", env=environment
    )


def install(job: Job, series: int) -> Path:
    """The environment at .cache/salt/SERIES, made anew when what it is made of has changed."""
    requirements = job.workshop.repository / "tests" / "salt" / f"requirements-{series}.txt"
    interpreter = interpreter_for(job, series)
    folder = job.workshop.cache / "salt" / str(series)
    marker = folder / "made-of"
    wanted = f"{hashlib.sha256(requirements.read_bytes()).hexdigest()} on Python {interpreter.version}\n"
    if not (marker.exists() and marker.read_text() == wanted):
        job.must(interpreter.path, "-m", "venv", "--clear", folder)
        job.must(folder / "bin" / "python", "-m", "pip", "install", "-qq", "--requirement", requirements)
        marker.write_text(wanted)
    return folder


def interpreter_for(job: Job, series: int) -> Interpreter:
    there = {interpreter.minor: interpreter for interpreter in job.workshop.interpreters}
    for minor in PYTHONS[series]:
        if minor in there:
            return there[minor]
    raise Skip(f"Salt {series} needs a Python of " + ", ".join(f"3.{minor}" for minor in sorted(PYTHONS[series])))
