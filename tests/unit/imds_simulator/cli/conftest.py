# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A user without rights who runs the simulator."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from support import simulator_process
from support.other_user import AS_USER, USER, folder_for_user, python_for_user


@pytest.fixture
def as_user():
    """Arguments of subprocess.run for a user without rights, who has the simulator in a separate folder."""
    python = python_for_user(f"sys.version_info[:2] == {sys.version_info[:2]}")
    if python is None:
        pytest.skip(f"no Python {sys.version_info[0]}.{sys.version_info[1]} on PATH that another user can run")
    libraries = Path(aiohttp.__file__).parents[1]
    with folder_for_user() as folder:
        shutil.copytree(simulator_process.PACKAGE_ROOT / "imds_simulator", folder / "sources" / "imds_simulator")
        own = folder / "own"
        own.mkdir()
        os.chown(own, USER, -1)
        environment = {
            "PATH": os.environ["PATH"], "PYTHONPATH": f"{folder / 'sources'}:{libraries}", "HOME": str(own),
        }  # fmt: skip
        tried = subprocess.run(
            [python, "-c", "import aiohttp"], env=environment, cwd=own, capture_output=True, check=False, **AS_USER
        )
        if tried.returncode:
            pytest.skip(f"another user cannot read {libraries}")
        yield {"python": python, "env": environment, "cwd": own, **AS_USER}
