# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Finds the Pythons of this machine.

A version manager's shim of a version that is not selected exits with 127, and programs that take it for an interpreter
fail. Therefore the search leaves folders of shims out, and adds those of the interpreters that pyenv has installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

QUESTION = "import os, sys; print(os.path.join(sys.base_prefix, 'bin', 'python3.%d' % sys.version_info[1]))"


def search_path() -> str:
    """Return PATH without folders of shims, with the folders of pyenv's interpreters in front of the others."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    interpreters = sorted(map(str, pyenv.glob("versions/3.*/bin")), key=_numbers)
    others = [folder for folder in os.get_exec_path() if Path(folder).name != "shims"]
    return os.pathsep.join(dict.fromkeys([*interpreters, *others]))


def find_python(minor: int) -> Path | None:
    """Return the program of Python 3.`minor`, outside of a virtual environment, or None."""
    found = shutil.which(f"python3.{minor}", path=search_path())
    if found is None:
        return None
    try:
        answer = subprocess.run([found, "-c", QUESTION], capture_output=True, timeout=10, check=True, text=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return Path(answer.stdout.strip())


def _numbers(path: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.rpartition("versions/")[2])]
