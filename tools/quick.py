# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Check what has changed: format, linter, types, rules of the repository, and the unit tests of the changed packages.

Without a change in a package the unit tests of all packages run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
ALWAYS = ("ruff", "mypy", "project")
# the files that each stage of unit tests belongs to
PACKAGES = {
    "unit-hook_runner": ("roles/hook_runner/files/", "tests/unit/hook_runner/", "tests/support/daemon/"),
    "unit-simulator": ("roles/imds_simulator/files/", "tests/unit/imds_simulator/"),
    "unit-salt": ("salt/", "tests/unit/salt/", "tests/support/salt_simulation/"),
    "unit-plugins": ("plugins/", "tests/unit/plugins/"),
}


def main() -> None:
    """Run the stages."""
    stages = [*ALWAYS, *(unit_tests_of(changed_files()) or PACKAGES)]
    os.execv(sys.executable, [sys.executable, "-m", "tools.run", *stages])


def changed_files() -> list[str]:
    """Return the files that differ from the last commit, and new ones."""
    commands = (["diff", "--name-only", "HEAD"], ["ls-files", "--others", "--exclude-standard"])
    listed = [
        subprocess.run(["git", *command], cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
        for command in commands
    ]
    return "".join(listed).splitlines()


def unit_tests_of(files: Iterable[str]) -> list[str]:
    """Return the stages of the unit tests that belong to these files."""
    changed = list(files)
    return [stage for stage, parts in PACKAGES.items() if any(file.startswith(parts) for file in changed)]


if __name__ == "__main__":
    main()
