# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A user other than root: for root one without an entry in /etc/passwd, otherwise the present user."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

USER = os.geteuid() or 12345
# arguments of subprocess to run a command as that user
AS_USER: dict[str, Any] = {} if os.geteuid() else {"user": USER, "group": USER, "extra_groups": []}


def python_for_user(requirement: str = "sys.version_info >= (3, 8)") -> Path | None:
    """Return the first Python on PATH that the user can run and that meets the requirement.

    The Python of the tests may be in root's home directory.
    """
    question = f"import sys; sys.exit(not ({requirement}))"
    for folder in os.environ["PATH"].split(os.pathsep):
        for python in sorted(Path(folder).glob("python3*")):
            if re.fullmatch(r"python3(\.\d+)?", python.name):
                try:
                    subprocess.run([python, "-c", question], check=True, capture_output=True, cwd="/", **AS_USER)
                except (OSError, subprocess.CalledProcessError):
                    continue
                return python
    return None


@contextlib.contextmanager
def folder_for_user() -> Iterator[Path]:
    """Create a temporary folder that the user can enter; pytest closes its own to other users."""
    with tempfile.TemporaryDirectory(prefix="other-user-") as name:
        os.chmod(name, 0o711)
        yield Path(name)
