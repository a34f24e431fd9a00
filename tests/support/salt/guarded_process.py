# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A process that ends with the one that started it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

LEASH = Path(__file__).with_name("process_guard.py")


class GuardedProcess:
    """A command and its descendants, ended by ``kill``, by ``stop``, or with this process."""

    def __init__(self, command: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None) -> None:
        words = [sys.executable, str(LEASH), *map(str, command)]
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=output, stderr=output, env=env, start_new_session=True
            )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Return the ancestor of all its processes."""
        return self._process.pid

    def stop(self, timeout: float = 60.0) -> None:
        """Send SIGTERM as a service manager does, and wait."""
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        self.kill()

    def kill(self) -> None:
        """Kill all its processes, as a crash does."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait(30)
