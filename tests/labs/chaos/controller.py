# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The controller: ansible-playbook processes, their output with times, and ways to kill them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

PROGRAM = str(Path(sys.executable).with_name("ansible-playbook"))


class Controller:
    """One process of ansible-playbook, in its own session as from a terminal.

    Each line of ``log`` has its time.

    Attributes:
        began, ended: Unix times.
        status: exit status; negative for a signal.
        killed: how it was killed; empty when it ended by itself.
    """

    def __init__(self, name: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.name, self.log = name, log
        self.began = time.time()
        self.ended: float | None = None
        self.killed = ""
        self._lines: list[str] = []
        self._process = subprocess.Popen(
            [PROGRAM, *arguments],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self.log.open("w") as log:
            for line in self._process.stdout or ():
                self._lines.append(line)
                log.write(f"{time.time() - self.began:.3f} {line}")
                log.flush()

    @property
    def status(self) -> int | None:
        return self._process.poll()

    @property
    def is_running(self) -> bool:
        if self.status is not None and self.ended is None:
            self.ended = time.time()
        return self.ended is None

    @property
    def output(self) -> str:
        return "".join(self._lines)

    def wait(self, seconds: float) -> bool:
        """Return True if it ends by itself within this time."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self.ended = self.ended or time.time()
        self._reader.join(5)
        return True

    def kill(self, how: str) -> None:
        """Kill it; the processes that it has started remain as the chosen way leaves them.

        ``how``: `kill-9` of its main process; `kill-9-all`: with its workers, as when the machine is short of memory;
        `ctrl-c`.
        """
        if not self.is_running:
            return
        self.killed = how
        # without the connections that ssh keeps open in the background
        workers = psutil.Process(self._process.pid).children(recursive=True)
        if how == "ctrl-c":
            os.killpg(self._process.pid, signal.SIGINT)
            return
        self._process.kill()
        if how == "kill-9-all":
            for worker in workers:
                with contextlib.suppress(psutil.NoSuchProcess):
                    worker.kill()
