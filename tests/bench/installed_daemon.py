# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon azure-scheduled-events as on a host: a copy of its files with their bytecode."""

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
# the measured process gets no settings of the developer, and Python uses its bytecode
ENVIRONMENT = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def install(folder: Path) -> Path:
    """Copy and compile both packages; return the folder for the import path."""
    for package in PACKAGES:
        shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    if not compileall.compile_dir(str(folder), quiet=1):
        raise RuntimeError("the daemon cannot be compiled")
    return folder


class Daemon:
    """The daemon of one VM: call `hook` for each hook, then `start`. ``config`` are keys of config.yml."""

    def __init__(self, library: Path, folder: Path, endpoint: str, **config: Any) -> None:
        self.folder = folder
        self._library = library
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        folder.chmod(0o755)
        fixed = {
            "endpoint": endpoint,
            "hooks_directory": str(folder / "hooks.d"),
            "state_directory": str(folder / "state"),
            "run_directory": str(folder / "run"),
        }
        # JSON is YAML
        self._write(folder / "config.yml", json.dumps({**fixed, **config}), 0o600)

    def hook(self, name: str, text: str) -> None:
        """Write the hook STAGE/NAME."""
        self._write(self.folder / "hooks.d" / name, text, 0o755)

    def start(self) -> int:
        """Start or restart the daemon, and return its process id at once."""
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

    def wait_until_ready(self) -> None:
        wait_for(lambda: "IMDS answers" in self.log(), "an answer of IMDS in the log", self.log)

    def log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _write(self, path: Path, text: str, mode: int) -> None:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)


def wait_for(condition: Callable[[], bool], what: str, details: Callable[[], str] = str, seconds: float = 60.0) -> None:
    """Wait for a condition, checked every ten milliseconds; RuntimeError after so many seconds."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError(f"waited {seconds:.0f} s for: {what}\n{details()}")
        time.sleep(0.01)
