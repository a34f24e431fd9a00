# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Base of a master and a minion: a folder, a configuration in it, and a process."""

from __future__ import annotations

import contextlib
import getpass
import itertools
import json
import os
from pathlib import Path
from typing import Any

import psutil

from support.salt.guarded_process import GuardedProcess
from support.salt.salt_installation import QUIET, SaltInstallation

# each test process has an address of its own on loopback: no other one can take its ports
ADDRESS = f"127.{128 + (os.getpid() >> 16)}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
# below the ports that the kernel assigns
PORTS = itertools.count(20000)


class SaltProcess:
    """``kind`` is master or minion. The configuration is written as JSON, which is YAML."""

    def __init__(self, kind: str, folder: Path, installation: SaltInstallation, config: dict[str, Any]) -> None:
        self.kind = kind
        self.folder = folder
        self.installation = installation
        folder.mkdir(parents=True)
        self.log = folder / "output"
        private = {name: str(folder / name) for name in ("pki_dir", "cachedir", "sock_dir")}
        self.config: dict[str, Any] = {
            "user": getpass.getuser(),
            "root_dir": str(folder),
            **private,
            "extension_modules": str(folder / "cachedir" / "extmods"),
            "pidfile": str(folder / "pid"),
            "log_file": str(folder / "log"),
            "log_level": "warning",
            "log_level_logfile": "info",
            "loop_interval": 1,
            **config,
        }
        self.configure()
        self.process: GuardedProcess | None = None

    def configure(self, **config: Any) -> None:
        """Change and write the configuration; the daemon reads it at its next start."""
        self.config.update(config)
        (self.folder / self.kind).write_text(json.dumps(self.config))

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.running

    def start(self) -> None:
        if self.running:
            return
        # of a daemon that was killed
        self._pidfile.unlink(missing_ok=True)
        command = [*self.installation.command(f"salt-{self.kind}"), "-c", str(self.folder)]
        self.process = GuardedProcess(command, self.log, {**os.environ, **QUIET})

    def stop(self) -> None:
        """End the daemon as `systemctl stop` does."""
        if self.process:
            self.process.stop()

    def kill(self) -> None:
        if self.process:
            self.process.kill()

    def log_text(self) -> str:
        """Return the daemon's log and output."""
        files = (self.log, self.folder / "log")
        return "".join(file.read_text(errors="replace") for file in files if file.exists())

    def pids(self) -> list[int]:
        """Return its processes, the main one first."""
        main = psutil.Process(int(self._pidfile.read_text()))
        return [main.pid, *(child.pid for child in main.children(recursive=True))]

    @property
    def _pidfile(self) -> Path:
        return Path(self.config["pidfile"])

    def memory(self) -> float:
        """Return the memory of its processes in MB; shared memory counts once."""
        total = 0
        for pid in self.pids():
            with contextlib.suppress(psutil.NoSuchProcess):
                total += psutil.Process(pid).memory_full_info().pss
        return total / 1024**2
