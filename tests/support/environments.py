# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Virtual environments that all checkouts share: Salt, which is built from its sources, and old libraries."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from support.repository import REPOSITORY
from support.shared_cache import entry, only_one

# the Pythons that a series of Salt runs on, in the order in which they are tried
SALT_PYTHONS = {3006: ("3.11", "3.10"), 3008: ("3.11", "3.12", "3.13", "3.10")}


def environment(name: str, requirements: Sequence[str], pythons: Sequence[str]) -> Path:
    """Return the environment with these packages, on the first of these versions of Python that this machine has.

    Raises:
        FileNotFoundError: this machine has none of the Pythons.
        CalledProcessError: the packages cannot be installed.
    """
    found = next((path for path in (shutil.which(f"python{version}") for version in pythons) if path), None)
    if found is None:
        raise FileNotFoundError(f"{name}: needs Python {' or '.join(pythons)}; install one of them")
    uv = str(Path(sys.executable).with_name("uv"))
    with only_one(name):
        folder = entry(name, requirements, found)
        # the last file that is made: an environment without it is half made
        complete = folder / "complete"
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([uv, "venv", "--quiet", "--seed", "--python", found, str(folder)], check=True)
            python = str(folder / "bin" / "python")
            subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *requirements], check=True)
            complete.touch()
    return folder


def salt(series: int) -> Path:
    """Return the environment with this series of Salt and what its tests need."""
    lines = (REPOSITORY / "tests" / "salt" / f"requirements-{series}.txt").read_text(encoding="utf-8").splitlines()
    requirements = [line.partition("#")[0].strip() for line in lines]
    return environment(f"salt-{series}", list(filter(None, requirements)), SALT_PYTHONS[series])


def main() -> None:
    """Print the path of the environment of a series of Salt."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("series", type=int, choices=SALT_PYTHONS)
    print(salt(parser.parse_args().series))


if __name__ == "__main__":
    main()
