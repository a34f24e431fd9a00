# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Check format, linter, types, rules of the repository, and the unit tests of the changed packages.

Without a change in a package the unit tests of all packages run.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from tools.environment import open_environment
from tools.process_reaper import run_and_reap
from tools.run import run
from tools.stage import Stage
from tools.stages.catalogue import STAGES
from tools.stages.pytest_stage import pytest_folder

REPOSITORY = Path(__file__).resolve().parents[1]
ALWAYS = ("ruff", "mypy", "project")
# each folder of unit tests, and the files that it belongs to
PACKAGES = {
    "unit/hook_runner": ("roles/hook_runner/files/", "tests/unit/hook_runner/", "tests/support/daemon/"),
    "unit/imds_simulator": ("roles/imds_simulator/files/", "tests/unit/imds_simulator/"),
    "unit/salt": ("salt/", "tests/unit/salt/", "tests/support/salt_simulation/"),
    "unit/plugins": ("plugins/", "tests/unit/plugins/"),
}
FAST = ("-m", "not slow", "-n", "2")
SIDE_BY_SIDE = 2


def main() -> int:
    """Run the stages, and return their exit status."""
    chosen = stages(unit_tests_of(changed_files()) or list(PACKAGES))
    return run_and_reap(partial(run, open_environment(REPOSITORY), chosen, SIDE_BY_SIDE))


def stages(folders: Iterable[str]) -> list[Stage]:
    """Return the stages that always run, and one for each of these folders of unit tests, without slow tests."""
    known = {stage.name: stage for stage in STAGES}
    unit = [
        Stage(folder.replace("/", "-"), "", partial(pytest_folder, folder=folder, options=FAST)) for folder in folders
    ]
    return [*unit, *(known[name] for name in ALWAYS)]


def changed_files() -> list[str]:
    """Return the files that differ from the last commit, and new ones."""
    commands = (["diff", "--name-only", "HEAD"], ["ls-files", "--others", "--exclude-standard"])
    listed = [
        subprocess.run(["git", *command], cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
        for command in commands
    ]
    return "".join(listed).splitlines()


def unit_tests_of(files: Iterable[str]) -> list[str]:
    """Return the folders of unit tests that belong to these files."""
    changed = list(files)
    return [folder for folder, parts in PACKAGES.items() if any(file.startswith(parts) for file in changed)]


if __name__ == "__main__":
    sys.exit(main())
