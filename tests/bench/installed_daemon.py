# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon azure-scheduled-events as a host has it: a copy of its files with their bytecode, started by a few lines of Python."""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.repository import REPOSITORY

PACKAGES = (
    REPOSITORY / "roles" / "hook_runner" / "files" / "hook_runner",
    REPOSITORY / "plugins" / "module_utils" / "azure_scheduled_events",
)
COMMAND = "import sys; sys.path.insert(0, %r); from hook_runner.cli.main import main; sys.exit(main())"
# nothing of the developer's own settings reaches what is measured, and nothing keeps Python from
# its bytecode
ENVIRONMENT = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def install(folder: Path, repository: Path = REPOSITORY) -> Path:
    """Copy and compile both packages of a checkout of this repository; returns the folder that goes on the path."""
    for package in PACKAGES:
        package = repository / package.relative_to(REPOSITORY)
        shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    if not compileall.compile_dir(str(folder), quiet=1):
        raise RuntimeError("the daemon cannot be compiled")
    return folder


class Daemon:
    """One VM's daemon: `hook` as wanted, then `start`. ``config`` are keys of config.yml."""

    def __init__(self, library: Path, folder: Path, endpoint: str, **config: Any) -> None:
        self.folder = folder
        self._library = library
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        folder.chmod(0o755)
        fixed = {
            "endpoint": endpoint,
            "hooks_directory": str(folder / "hooks.d"),
            "journal": str(folder / "state" / "journal.db"),
            "run_directory": str(folder / "run"),
        }
        # JSON is YAML
        self._write(folder / "config.yml", json.dumps({**fixed, **config}), 0o600)

    def hook(self, name: str, text: str) -> None:
        """Write the hook STAGE/NAME."""
        self._write(self.folder / "hooks.d" / name, text, 0o755)

    def start(self) -> int:
        """Start it, or start it again; returns its process id at once."""
        self.kill()
        with open(self.folder / "log", "ab") as log:
            command = [
                sys.executable,
                "-I",
                "-c",
                COMMAND % str(self._library),
                "run",
                "--config",
                str(self.folder / "config.yml"),
            ]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=ENVIRONMENT)
        return self._process.pid

    def wait_until_it_watches(self) -> None:
        wait_for(lambda: "IMDS answers" in self.log(), "the daemon watches", self.log)

    def log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8")

    def kill(self) -> None:
        """End it without a warning, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _write(self, path: Path, text: str, mode: int) -> None:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)


def wait_for(is_so: Callable[[], bool], what: str, tell: Callable[[], str] = str, seconds: float = 60.0) -> None:
    """Look every ten milliseconds; raises RuntimeError when it has not come in time."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            raise RuntimeError(f"it did not come that {what}\n{tell()}")
        time.sleep(0.01)
