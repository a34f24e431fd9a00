# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Virtual environments with other Pythons or libraries than .venv, in the cache that all checkouts share."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from support.interpreters import find_python
from support.repository import REPOSITORY
from support.shared_cache import entry, only_one

# the minor versions of Python that a series of Salt runs on, in the order in which they are tried
SALT_PYTHONS = {3006: (11, 10), 3008: (11, 12, 13, 10)}


def environment(name: str, python: Path, *requirements: str) -> Path:
    """Return the folder of an environment of `python` with these requirements; the first call makes it."""
    folder = entry(name, python, requirements)
    # the last file that is made: an environment without it is half made
    complete = folder / "complete"
    with only_one(folder.name):
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            make_environment(python, folder, *requirements)
            complete.touch()
    return folder


def make_environment(python: Path, folder: Path, *requirements: str | Path) -> None:
    """Make an environment in `folder`, with pip; CalledProcessError if the packages cannot be installed."""
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "--quiet", "--seed", "--python", python, folder], check=True)
    inside = folder / "bin" / "python"
    # the daemons of Salt write no bytecode
    install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(inside)]
    subprocess.run([*install, *map(str, requirements)], check=True)


def first_python(minors: Iterable[int]) -> Path:
    """Return the first of these Pythons that this machine has; FileNotFoundError if it has none."""
    wanted = list(minors)
    found = next(filter(None, map(find_python, wanted)), None)
    if found is None:
        raise FileNotFoundError(f"Python {' or '.join(f'3.{minor}' for minor in wanted)}: not found; install one")
    return found


def salt(series: int) -> Path:
    """Return the folder of the environment with this series of Salt and what its tests need."""
    lines = (REPOSITORY / "tests" / "salt" / f"requirements-{series}.txt").read_text(encoding="utf-8").splitlines()
    requirements = filter(None, (line.partition("#")[0].strip() for line in lines))
    return environment(f"salt-{series}", first_python(SALT_PYTHONS[series]), *requirements)


def main() -> None:
    """Print the folder of the environment of a series of Salt."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("series", type=int, choices=SALT_PYTHONS)
    print(salt(parser.parse_args().series))


if __name__ == "__main__":
    main()
