# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run tests in a Windows Python under Wine, and those of a minion on it. `nox -s windows` installs what they need."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from support.repository import REPOSITORY
from support.windows.simulator_broker import ADDRESS_VARIABLE, simulator_broker
from support.windows.wine import Wine
from tools.repository.collection_tree import copy_tree
from tools.windows_python.build import build

# the tests of imds_exchange run beside Ansible, which is on Linux
HELPER = (
    "tests/unit/plugins/module_utils/azure_scheduled_events",
    "tests/functional/transport",
    "--ignore=tests/functional/transport/test_powershell.py",
    "--ignore=tests/functional/transport/test_windows_exchange.py",
)
# most tests wait; masters do not run on Windows
SALT = (
    "tests/unit/salt/azure_events_steps",
    "tests/unit/salt/azure_events_watch",
    "tests/salt/functional",
    "--ignore=tests/salt/functional/test_runner.py",
    *("-n", "3", "--dist", "loadgroup"),
)
LIMIT = 900
MINION = ("unshare", "--net", "--", sys.executable, "-m", "pytest", "-q", "-rs", "tests/system/windows")


def main() -> int:
    """Run all parts, also after one that fails, and return the exit status."""
    wine = build()
    try:
        failed = [inside(wine, HELPER), inside(wine, SALT)]
        # a server serves one network namespace, and the minion has its own
        wine.end()
        failed.append(
            subprocess.run(MINION, env={**os.environ, "WINDOWS_DRIVE": str(wine.folder)}, check=False).returncode
        )
    finally:
        wine.end()
    return 1 if any(failed) else 0


def inside(wine: Wine, tests: tuple[str, ...]) -> int:
    """Run pytest in the Windows Python, in a copy of the checkout on C:, and return its exit status."""
    tree = copy_tree(REPOSITORY, wine.drive / "tree")
    command = wine.python("-m", "pytest", "-q", "-rs", *tests)
    with simulator_broker() as broker:
        env = {**os.environ, **wine.variables, **python_path(wine, tree), ADDRESS_VARIABLE: broker}
        return subprocess.run(command, cwd=tree, env=env, timeout=LIMIT, check=False).returncode


def python_path(wine: Wine, tree: Path) -> Mapping[str, str]:
    """Return the variables with which the Windows Python finds the collection, and Salt a module wmi."""
    folders = (tree / "tests" / "support" / "windows" / "site", wine.drive / "tree")
    return {"PYTHONPATH": ";".join(map(wine.outside, folders))}


if __name__ == "__main__":
    sys.exit(main())
