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
        """Start a server that stays until `end`. Without it, Windows boots with the first program, and ends with the last."""
        self._server("--persistent")

    def end(self) -> None:
        """End all programs and the server, as the end of a boot does."""
        self._server("--kill")
        self.wait()

    def wait(self) -> None:
        """Wait until the server has written the registry and ended."""
        self._server("--wait")

    def _server(self, option: str) -> None:
        subprocess.run(
            ["wineserver", option],
            env={**os.environ, **self.variables},
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60,
        )
