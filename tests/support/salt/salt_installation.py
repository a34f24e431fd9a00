# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""An environment with Salt, and further ones that share its packages."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path

SHAPE = "import json, sysconfig; print(json.dumps([sysconfig.get_python_version(), sysconfig.get_path('purelib')]))"
# deprecations inside Salt itself, printed before every answer
QUIET = {"PYTHONWARNINGS": "ignore", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True)
class SaltInstallation:
    """``python`` imports the environment's packages; ``bin`` has Salt's commands."""

    python: Path
    bin: Path

    @classmethod
    def at(cls, folder: Path) -> SaltInstallation:
        return cls(folder / "bin" / "python", folder / "bin")

    def command(self, name: str) -> list[str]:
        return [str(self.python), str(self.bin / name)]

    def shared_by(self, folder: Path) -> SaltInstallation:
        """Return a new environment with this one's packages, which can have more."""
        subprocess.run([self.python, "-m", "venv", "--without-pip", folder], check=True)
        answer = subprocess.run([self.python, "-c", SHAPE], capture_output=True, text=True, check=True)
        version, packages = json.loads(answer.stdout)
        own = sysconfig.get_path(
            "purelib", "venv", {"base": str(folder), "platbase": str(folder), "py_version_short": version}
        )
        Path(own, "shared.pth").write_text(packages + "\n")
        return SaltInstallation(folder / "bin" / "python", self.bin)

    def install(self, *words: str | Path) -> None:
        """Run this environment's pip."""
        subprocess.run([self.python, "-m", "pip", "install", "-qq", *words], check=True, env={**os.environ, **QUIET})
