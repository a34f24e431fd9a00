# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A Windows host behind the connection plugin windows_stand_in, as a test sees it."""

from __future__ import annotations

import json
import os
import urllib.parse
from pathlib import Path
from typing import Any

from support.repository import REPOSITORY

# files in the folder of a host
RUNS = "runs.jsonl"
DOWN = "down"
REFUSALS = "refusals"
FILES = "files"

PLUGINS = REPOSITORY / "tests" / "support" / "windows_hosts" / "connection_plugins"


class WindowsHost:
    """A host without PowerShell."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / FILES).mkdir(parents=True)
        self.variables = {
            "ansible_connection": "windows_stand_in",
            "ansible_shell_type": "powershell",
            "ansible_windows_stand_in_folder": str(folder),
        }

    def runs(self) -> list[dict[str, Any]]:
        """Return the file name and the options of each module that ran."""
        file = self._folder / RUNS
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def exchanges(self) -> list[dict[str, Any]]:
        """Return the options of each run of imds_exchange."""
        return [run["options"] for run in self.runs() if run["module"] == "imds_exchange.ps1"]

    def write_file(self, path: str, text: str) -> None:
        """Put a file at a path of the host."""
        (self._folder / FILES / urllib.parse.quote(path, safe="")).write_text(text, encoding="utf-8")

    def go_down(self) -> None:
        """End all connections and accept none."""
        (self._folder / REFUSALS).unlink(missing_ok=True)
        (self._folder / DOWN).touch()

    def has_refused(self) -> bool:
        """Return True if a connection failed since the host went down."""
        return (self._folder / REFUSALS).exists()

    def come_up(self) -> None:
        """Accept connections again."""
        (self._folder / DOWN).unlink()


def environment() -> dict[str, str]:
    """Return the variables with which Ansible finds the connection plugin."""
    paths = [str(REPOSITORY), str(REPOSITORY / "tests")]
    return {"ANSIBLE_CONNECTION_PLUGINS": str(PLUGINS), "PYTHONPATH": os.pathsep.join(paths)}
