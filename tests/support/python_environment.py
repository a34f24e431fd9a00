# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Virtual environments with the libraries that a test asks for, in the cache that all checkouts share."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from support.shared_cache import entry, only_one


def python_environment(python: Path, *requirements: str) -> Path:
    """Return the Python of an environment of `python` with these requirements."""
    folder = entry("python", python, requirements)
    complete = folder / "complete"
    with only_one(folder.name):
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            make_environment(python, folder, *requirements)
            complete.touch()
    return folder / "bin" / "python"


def make_environment(python: Path, folder: Path, *requirements: str | Path) -> None:
    """Make an environment in `folder`: the pip of the tests takes less time than a pip of its own."""
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    install = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "-qq"]
    subprocess.run([*install, *map(str, requirements)], check=True)
