# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The process `python -m hook_runner run`, and the service manager that it notifies."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from support.daemon.runner_harness import RunnerHarness
from support.repository import REPOSITORY
from support.wait import DEFAULT_TIMEOUT, wait_until

PYTHONPATH = os.pathsep.join(str(REPOSITORY / part) for part in ("plugins/module_utils", "roles/hook_runner/files"))

# the beginning of the status line while IMDS answers
WATCHING = "STATUS=watching as "
# a program that runs code of a test before the command
_PROGRAM = "import sys\n%s\nfrom hook_runner.cli.main import main\nsys.exit(main())"


class DaemonProcess:
    """One VM's daemon in the folder of a harness, whose hooks, configuration and marks it uses.

    Attributes:
        notifications: (monotonic time, line) of each line that the service manager received.
    """

    def __init__(self, harness: RunnerHarness) -> None:
        self.harness = harness
        self.azure = harness.azure
        harness.configure(interval=0.2)
        self.notifications: list[tuple[float, str]] = []
        self.process: subprocess.Popen[bytes] | None = None
        self._notify_socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notify_socket.bind(str(harness.folder / "notify"))
        threading.Thread(target=self._listen, daemon=True).start()

    def start(self, *arguments: str, first: str = "", until: str = WATCHING, **environment: str) -> DaemonProcess:
        """Start it, and wait for a notification.

        ``first`` is Python code that the process runs first; ``arguments`` are further ones of the verb run.
        ``until`` is the beginning of the notification; by default, IMDS has answered.
        """
        before = self.times_begun(until)
        command = ["-c", _PROGRAM % first] if first else ["-m", "hook_runner"]
        with open(self.harness.folder / "stderr", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *command, "run", "--config", str(self.harness.folder / "config.yml"), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**self._environment(), "NOTIFY_SOCKET": str(self.harness.folder / "notify"), **environment},
            )
        if until:
            self.wait(lambda: self.times_begun(until) > before)
        return self

    def stop(self, how: int = signal.SIGTERM) -> float:
        """Send a signal and wait for the end; return the seconds that it took."""
        assert self.process is not None
        began = time.monotonic()
        self.process.send_signal(how)
        self.process.wait(DEFAULT_TIMEOUT)
        return time.monotonic() - began

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.harness.end_processes()
        self._notify_socket.close()

    def wait(self, is_so: Callable[[], object]) -> None:
        wait_until(is_so, explain=lambda: (self.log(), self.notifications[-5:], self.harness.marks()), pause=0.02)

    def times_notified(self, text: str) -> int:
        """Return how often the service manager received this line."""
        return sum(line == text for _at, line in self.notifications)

    def times_begun(self, text: str) -> int:
        """Return how often the service manager received a line with this beginning."""
        return sum(line.startswith(text) for _at, line in self.notifications)

    def seconds_since(self, text: str) -> float:
        """Return the seconds since it last received this line."""
        return time.monotonic() - max([at for at, line in self.notifications if line == text], default=0.0)

    def log(self) -> list[str]:
        return (self.harness.folder / "stderr").read_text().splitlines()

    def times_logged(self, text: str) -> int:
        return sum(text in line for line in self.log())

    def command(self, verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        config = str(self.harness.folder / "config.yml")
        return subprocess.run(
            [sys.executable, "-m", "hook_runner", verb, "--config", config, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=self._environment(),
            timeout=DEFAULT_TIMEOUT,
            check=False,
        )

    def data(self, verb: str, *arguments: str) -> tuple[int, Any]:
        """Run a verb; return its exit status and its JSON."""
        done = self.command(verb, "--json", *arguments)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    def _environment(self) -> dict[str, str]:
        return {
            # systemd starts the daemon as a service, and runs its hooks
            "PATH": f"{self.harness.systemd.folder}:{os.environ['PATH']}",
            "INVOCATION_ID": "1",
            "PYTHONPATH": PYTHONPATH,
            "LC_ALL": "C.UTF-8",
        }

    def _listen(self) -> None:
        while True:
            try:
                data = self._notify_socket.recv(65536)
            except OSError:
                return
            if not data:
                return
            self.notifications += [(time.monotonic(), line) for line in data.decode().split("\n")]


# makes a VM with this name and configuration, whose daemon is not started yet
MakeDaemon = Callable[..., DaemonProcess]
