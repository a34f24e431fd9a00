# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A file root with the ready hooks of this checkout, of which ``command`` is the hook of the tests."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from support.repository import REPOSITORY

HOOKS = Path("azure_events", "hooks", "ready_hooks")
LINKS = REPOSITORY / "salt" / HOOKS
PROBE = Path(__file__).with_name("probe_hook.py")


class HookTree:
    """A copy of the ready hooks below ``root``, and a folder for the files and records of the hooks."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "file_root"
        self.folder = folder / "hooks"
        self.folder.mkdir()
        shutil.copytree(LINKS, self.root / HOOKS)
        shutil.rmtree(self.root / HOOKS / "hooks" / "command", ignore_errors=True)
        shutil.copy(PROBE, self.root / HOOKS / "hooks" / "command.py")

    def hook(self, **options: Any) -> dict[str, Any]:
        """Return a step with the hook of the tests."""
        places = {"file": str(self.folder / "ran"), "state_directory": str(self.folder / "records")}
        return {"use": "command", **places, **options}

    @property
    def ran(self) -> list[str]:
        """Name and verb of each run, in order."""
        return [" ".join(line.split()[:2]) for line in self.lines]

    @property
    def lines(self) -> list[str]:
        file = self.folder / "ran"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []
