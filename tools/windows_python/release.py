# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The releases of CPython for Windows that a wheel on PyPI contains.

The wheels of panda3d for win_amd64 have python3XY.dll and the extension modules of the standard library.
The rest of the standard library is the folder `Lib`, which is the same on all platforms. It has to be of the
same release: Salt fails with a DLL of 3.11.9 and a `Lib` of 3.11.7.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from support.interpreters import find_python

QUESTION = "import platform, sysconfig; print(platform.python_version(), sysconfig.get_path('stdlib'))"


class Release(NamedTuple):
    """A release of CPython, such as 3.11.7, and the version of panda3d with its DLL."""

    python: str
    panda3d: str

    @property
    def minor(self) -> int:
        """The minor version, such as 11."""
        return int(self.python.split(".")[1])

    @property
    def dll(self) -> str:
        """The name of the DLL without its extension, such as python311."""
        return f"python3{self.minor}"


# in the order in which they are tried
RELEASES = (Release("3.11.7", "1.10.14"), Release("3.12.1", "1.10.14"), Release("3.13.0", "1.10.15"))


class Chosen(NamedTuple):
    """A release, and the `Lib` of this machine's Python of the same release."""

    release: Release
    library: Path


def choose() -> Chosen:
    """Return the first release of which this machine has the standard library; raise SystemExit if there is none."""
    found = dict(ask(python) for release in RELEASES if (python := find_python(release.minor)))
    for release in RELEASES:
        if release.python in found:
            return Chosen(release, found[release.python])
    wanted = ", ".join(release.python for release in RELEASES)
    raise SystemExit(
        f"windows: needs the standard library of exactly Python {wanted}; this machine has {', '.join(found) or 'none'}"
    )


def ask(python: Path) -> tuple[str, Path]:
    """Return the exact version of an interpreter, and the folder of its standard library."""
    answer = subprocess.run([python, "-c", QUESTION], capture_output=True, text=True, check=True)
    version, folder = answer.stdout.strip().split(" ", 1)
    return version, Path(folder)
