# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stage of Windows: a Windows Python with Salt under Wine, and a minion on it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from support.windows.simulator_broker import ADDRESS_VARIABLE, simulator_broker
from support.windows.wine import Wine
from tools.junit import read_junit
from tools.repository.collection_tree import copy_tree
from tools.stage import Job, Outcome, Skip
from tools.stages import salt
from tools.stages.apt_packages import install_missing
from tools.stages.namespace import UNSHARE_COMMAND, skip_reason
from tools.stages.pytest_stage import pytest_folder
from tools.windows_python.build import COMPILER, build

PACKAGES = {"wine": "wine", COMPILER: "gcc-mingw-w64-x86-64"}
SERIES = 3008


class Part(NamedTuple):
    """Tests that run in the Windows Python.

    Attributes:
        results: the name of the JUnit file.
        folders: folders below tests/.
        options: options of pytest.
        limit: seconds until the run is ended.
    """

    results: str
    folders: tuple[str, ...]
    options: tuple[str, ...] = ()
    limit: float = 600


# the tests of imds_exchange run beside Ansible, which is on Linux
HELPER = Part(
    "windows-helper",
    ("unit/plugins/module_utils/azure_scheduled_events", "functional/transport"),
    (
        "--ignore=tests/functional/transport/test_powershell.py",
        "--ignore=tests/functional/transport/test_windows_exchange.py",
    ),
    limit=300,
)
# most tests wait; masters do not run on Windows
SALT = Part(
    "windows-salt",
    ("unit/salt/azure_events_steps", "unit/salt/azure_events_watch", "salt/functional"),
    ("-n", "3", "--dist", "loadgroup", "--ignore=tests/salt/functional/test_runner.py"),
)


def windows(job: Job) -> Outcome:
    """Run the tests in the Windows Python, and those of a minion on it."""
    if reason := skip_reason():
        raise Skip(reason)
    install_missing(job, PACKAGES)
    wine = build(job)
    try:
        outcome = inside(job, wine, HELPER) + inside(job, wine, SALT)
        # a server serves one network namespace, and the minion has its own
        wine.end()
        return outcome + minion(job, wine)
    finally:
        wine.end()


def inside(job: Job, wine: Wine, part: Part) -> Outcome:
    """Run pytest in the Windows Python, in a copy of the checkout on C:."""
    tree = copy_tree(job.environment.repository, wine.drive / "tree")
    report = wine.drive / "results" / f"{part.results}.xml"
    report.parent.mkdir(exist_ok=True)
    report.unlink(missing_ok=True)
    folders = [f"tests/{folder}" for folder in part.folders]
    pytest = ("-m", "pytest", "-q", "-rs", *folders, *part.options, f"--junitxml={wine.outside(report)}")
    with simulator_broker() as broker:
        env = {**wine.variables, **python_path(wine, tree), ADDRESS_VARIABLE: broker}
        status = job.run(*wine.python(*pytest), cwd=tree, env=env, limit=part.limit)
    results = job.environment.cache / "results" / report.name
    results.parent.mkdir(exist_ok=True)
    results.unlink(missing_ok=True)
    if report.exists():
        shutil.copy(report, results)
    return read_junit(results, status)


def python_path(wine: Wine, tree: Path) -> Mapping[str, str]:
    """Return the variables with which the Windows Python finds the collection, and Salt a module wmi."""
    folders = (tree / "tests" / "support" / "windows" / "site", wine.drive / "tree")
    return {"PYTHONPATH": ";".join(map(wine.outside, folders))}


def minion(job: Job, wine: Wine) -> Outcome:
    """Run a minion on Wine with a master on Linux, in a network namespace with the address of IMDS."""
    home = salt.install(job, SERIES)
    return pytest_folder(
        job,
        "windows",
        prefix=UNSHARE_COMMAND,
        results="windows-minion",
        env={"SALT_HOME": str(home), "WINDOWS_DRIVE": str(wine.folder)},
    )
