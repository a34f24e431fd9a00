# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A folder with Wine's drive C:, and commands that run in it.

Three properties of Wine decide on the form of a command: a program needs pipes for standard input, output
and error; the drive Z: would show this machine's files, and `/proc` with them; and an environment
with LC_ALL decides on the encoding of file names.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path, PurePosixPath, PureWindowsPath

# Wine asks for .NET and for a browser at the first start; both would be downloads
WITHOUT = "mscoree=d;mshtml=d"
PIPED = ("bash", "-o", "pipefail", "-c", 'true | "$@" 2>&1 | cat', "piped")
PYTHON = r"C:\Python\python.exe"


class Wine:
    """One drive C:, with a Wine server of its own while a program runs.

    Attributes:
        folder: what WINEPREFIX names.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def drive(self) -> Path:
        """The folder of C:."""
        return self.folder / "drive_c"

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables of all commands."""
        return {
            "WINEPREFIX": str(self.folder),
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": WITHOUT,
            "PYTHONPYCACHEPREFIX": r"C:\pycache",
            "LC_ALL": "C.UTF-8",
        }

    def command(self, *words: str) -> list[str]:
        """Return the command that runs a program of C:, with its output on standard output."""
        return [*PIPED, "wine", *words]

    def run(self, *words: str) -> str:
        """Run a program of C: in the root folder of C:, and return its output; AssertionError if it fails."""
        ran = subprocess.run(
            self.command(*words),
            env={**os.environ, **self.variables},
            cwd=self.drive,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def python(self, *words: str) -> list[str]:
        """Return the command that runs the Windows Python."""
        return self.command(PYTHON, *words)

    def inside(self, path: PureWindowsPath | str) -> Path:
        r"""Return the file of this machine for a path such as C:\ProgramData."""
        return self.drive.joinpath(*PureWindowsPath(path).parts[1:])

    def outside(self, path: Path) -> str:
        r"""Return the path below C:\ of a file in the folder of C:."""
        return "C:\\" + str(PureWindowsPath(PurePosixPath(path.relative_to(self.drive))))

    def boot(self) -> None:
        """Boot Windows, until `end`. Otherwise it boots with the first program and ends with the last one."""
        self._run("wineserver", "--persistent")
        # the services of Windows would keep the pipes of the program that starts them
        self._run("wine", "wineboot.exe")

    def end(self) -> None:
        """End all programs and the server, as the end of a boot does."""
        self._run("wineserver", "--kill")
        self.wait()

    def wait(self) -> None:
        """Wait until the server has written the registry and ended."""
        self._run("wineserver", "--wait")

    def _run(self, *command: str) -> None:
        nothing = subprocess.DEVNULL
        env = {**os.environ, **self.variables}
        subprocess.run(command, env=env, check=False, stdin=nothing, stdout=nothing, stderr=nothing, timeout=60)
