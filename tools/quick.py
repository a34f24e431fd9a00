# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Check what has changed: format, linter, types, and the unit tests of the changed packages.

Without a change in a package, and with --all, the unit tests of all packages run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
# the folder of the code of each folder of unit tests
PACKAGES = {
    "tests/unit/plugins": ("plugins/", "tests/unit/plugins/"),
    "tests/unit/hook_runner": ("roles/hook_runner/files/", "tests/unit/hook_runner/", "tests/support/daemon/"),
    "tests/unit/imds_simulator": ("roles/imds_simulator/files/", "tests/unit/imds_simulator/"),
    "tests/unit/salt": ("salt/", "tests/unit/salt/", "tests/support/salt_simulation/"),
}
PYTEST = ("-m", "pytest", "-q", "-n", "auto", "--dist", "loadgroup")


def main() -> int:
    """Run the checks one after the other, and return 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="run the unit tests of all packages")
    options = parser.parse_args()
    folders = list(PACKAGES) if options.all else unit_tests_of(changed_files()) or list(PACKAGES)
    checks = (
        ("-m", "ruff", "format", "--check", "--quiet", "."),
        ("-m", "ruff", "check", "--quiet", "."),
        ("-m", "mypy", "--no-error-summary"),
        (*PYTEST, "tests/project", *folders),
    )
    return max(map(run, checks))


def run(arguments: Iterable[str]) -> int:
    """Run the Python of .venv with these arguments, and return 1 if it fails."""
    print("python", *arguments, flush=True)
    return int(bool(subprocess.run([sys.executable, *arguments], cwd=REPOSITORY, check=False).returncode))


def changed_files() -> list[str]:
    """Return the files that differ from the last commit, and new ones."""
    commands = (["diff", "--name-only", "HEAD"], ["ls-files", "--others", "--exclude-standard"])
    listed = [
        subprocess.run(["git", *command], cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
        for command in commands
    ]
    return "".join(listed).splitlines()


def unit_tests_of(files: Iterable[str]) -> list[str]:
    """Return the folders of the unit tests that belong to these files."""
    return [folder for folder, parts in PACKAGES.items() if any(file.startswith(parts) for file in files)]


if __name__ == "__main__":
    sys.exit(main())
