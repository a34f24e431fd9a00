# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Command line and protocol with the oldest libraries of the wheel, and with the aiohttp of Debian 12 and 13."""

from __future__ import annotations

import subprocess
import tomllib

import pytest

from support.environments import environment
from support.interpreters import find_python
from support.repository import REPOSITORY

pytestmark = pytest.mark.all

PROJECT = tomllib.loads((REPOSITORY / "roles/imds_simulator/files/pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
OLDEST_PYTHON = int(PROJECT["requires-python"].rpartition(".")[2])
PROTOCOL = ["cli/test_commands.py", "protocol", "replay/test_answers.py", "server"]
NEWEST = ["click", "PyYAML", "requests"]


@pytest.mark.parametrize(
    "minor, libraries",
    [
        # requests is a library of the tests
        (OLDEST_PYTHON, [*(each.replace(">=", "==") for each in PROJECT["dependencies"]), "requests"]),
        (11, ["aiohttp==3.8.4", *NEWEST]),
        (13, ["aiohttp==3.11.16", *NEWEST]),
    ],
    ids=["oldest", "bookworm", "trixie"],
)
def test_simulator_is_the_same_with_these_libraries(minor: int, libraries: list[str]) -> None:
    found = find_python(minor)
    if found is None:
        pytest.skip(f"there is no Python 3.{minor}")
    python = environment("simulator", found, "pytest", *libraries) / "bin" / "python"
    tests = [REPOSITORY / "tests/unit/imds_simulator" / each for each in PROTOCOL]
    ran = subprocess.run([python, "-m", "pytest", "-q", *tests], cwd=REPOSITORY, check=False)
    assert ran.returncode == 0
