# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Finds a Python of this machine by its minor version."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

QUESTION = "import os, sys; print(os.path.join(sys.base_prefix, 'bin', 'python3.%d' % sys.version_info[1]))"


def find_python(minor: int) -> Path | None:
    """Return the program of Python 3.`minor` from PATH or pyenv's folders, outside of a virtual environment, or None.

    A candidate is run first: a version manager's shim of a version that is not selected exits with 127.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders = [*map(Path, os.get_exec_path()), *sorted(pyenv.glob(f"versions/3.{minor}.*/bin"))]
    for folder in folders:
        try:
            answer = subprocess.run(
                [folder / f"python3.{minor}", "-c", QUESTION], capture_output=True, timeout=10, check=True, text=True
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return Path(answer.stdout.strip())
    return None
