# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Find the Python interpreters of this machine.

A version manager puts shims named python3.8, python3.9 and so on into PATH. A shim of a version that
is not selected exits with 127, and ansible-test fails on it. Therefore each candidate is run first.
"""

from __future__ import annotations

import glob
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

KNOWN_MINORS = range(8, 15)
QUESTION = "import json, sys, venv; print(json.dumps([sys.version_info[:2], sys.base_prefix, sys.executable]))"


@dataclass(frozen=True, order=True)
class Interpreter:
    """A Python 3 of this machine: its minor version, and the path of its program."""

    minor: int
    path: Path

    @property
    def version(self) -> str:
        """The version as a text, such as 3.11."""
        return f"3.{self.minor}"


def find_interpreters(path: str, home: Path) -> tuple[Interpreter, ...]:
    """Return the first working interpreter of each version in PATH or in pyenv's folders, oldest version first."""
    found = {}
    for folder in [*map(Path, path.split(os.pathsep)), *pyenv_folders(home)]:
        for minor in KNOWN_MINORS:
            candidate = folder / f"python3.{minor}"
            if minor not in found and (real := real_interpreter(candidate, minor)):
                found[minor] = Interpreter(minor, real)
    return tuple(sorted(found.values()))


def pyenv_folders(home: Path) -> list[Path]:
    """Return the folders of the interpreters that pyenv has installed."""
    pyenv = os.environ.get("PYENV_ROOT") or str(home / ".pyenv")
    return sorted(Path(folder) for folder in glob.glob(f"{glob.escape(pyenv)}/versions/3.*/bin"))


def real_interpreter(candidate: Path, minor: int) -> Path | None:
    """Return the interpreter of `candidate`, which may be a shim or part of a virtual environment, or None."""
    if not os.access(candidate, os.X_OK):
        return None
    try:
        answer = subprocess.run(
            [candidate, "-c", QUESTION], capture_output=True, timeout=10, check=True, stdin=subprocess.DEVNULL
        )
        version, prefix, executable = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    if version != [3, minor]:
        return None
    outside_venv = Path(prefix, "bin", candidate.name)
    return outside_venv if outside_venv.exists() else Path(executable)


def clean_path(path: str, interpreters: tuple[Interpreter, ...]) -> str:
    """Return `path` without the folders of shims, and with the folder of each interpreter in front."""
    ours = dict.fromkeys(str(interpreter.path.parent) for interpreter in interpreters)
    theirs = (folder for folder in path.split(os.pathsep) if folder and Path(folder).name != "shims")
    return os.pathsep.join(dict.fromkeys([*ours, *theirs]))
