# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A configuration and hooks in a folder, without a daemon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.daemon.hook_scripts import write_program

# the first line of a hook; alone it is a hook that succeeds
SHELL = "#!/bin/sh\n"


class Site:
    """Files as they are before the daemon starts; folders of records and runs do not exist yet."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o755)
        self.folder = folder
        self.config = folder / "config.yml"
        self.configure()

    def configure(self, **keys: Any) -> None:
        """Write the configuration, one key in each line."""
        fixed = {
            "hooks_directory": str(self.folder / "hooks.d"),
            "run_directory": str(self.folder / "run"),
            "state_directory": str(self.folder / "state"),
        }
        lines = (f"{key}: {json.dumps(value)}\n" for key, value in {**fixed, **keys}.items())
        self.config.write_text("".join(lines), encoding="utf-8")

    def hook(self, name: str, text: str = SHELL, mode: int = 0o755) -> Path:
        """Write the file STAGE/NAME."""
        return write_program(self.folder / "hooks.d" / name, text, mode)
