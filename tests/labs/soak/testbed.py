# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The testbed of a run: the real daemon's process on an emulated host, and its simulated Azure."""

from __future__ import annotations

import contextlib
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from hook_runner.service.control_socket import send_request
from soak.emulated_host import EmulatedHost
from soak.plan import BODIES, VM, Setup
from support.daemon.daemon_process import DaemonProcess
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure

# seconds between two looks for hooks whose time limit is up
LIMITS_INTERVAL = 0.1
# the absence of an event that came back has to last a minute; a run of a few minutes needs more ends
_SHORT_ABSENCES = """
from azure_scheduled_events import tracking
tracking.GONE_AFTER_A_RETURN = 3.0
"""


class Testbed:
    """The host and its daemon, which does not run yet.

    Attributes:
        exits: for each process that has ended the cause and the exit status.
        reboots: the Unix times of the reboots.
    """

    def __init__(self, folder: Path, azure: Azure, setup: Setup) -> None:
        self.folder, self.azure = folder, azure
        folder.mkdir()
        self.harness = RunnerHarness(folder, azure, VM, **_configuration(setup))
        self.host = EmulatedHost(folder, setup.skew)
        for hook in setup.hooks:
            self.harness.hook(hook.path, BODIES[hook.does])
        self.daemon = DaemonProcess(self.harness)
        self.exits: list[tuple[str, int]] = []
        self.reboots: list[float] = []
        self._ready_before = 0
        self._is_closed = threading.Event()
        self._limits = threading.Thread(target=self._end_hooks_at_limits, daemon=True)
        self._limits.start()

    def start(self) -> None:
        """Start the daemon, and do not wait until it is ready."""
        self._ready_before = self.daemon.times_notified("READY=1")
        self.daemon.start(first=self.host.program() + _SHORT_ABSENCES, until="")

    def end(self, how: str) -> None:
        """End the daemon; "reboot" also ends its hooks, empties the run directory and changes the boot id."""
        if self.is_running():
            self.daemon.stop(signal.SIGTERM if how == "term" else signal.SIGKILL)
        if how == "reboot":
            self.harness.end_processes()
            self.harness.systemd.forget()
            shutil.rmtree(self.harness.settings.run_directory, ignore_errors=True)
            self.host.reboot()
            self.reboots.append(time.time())
        self.record_end(how)

    def record_end(self, how: str) -> None:
        process = self.daemon.process
        assert process is not None and process.returncode is not None
        self.exits.append((how if self.is_ready or how != "term" else "term-early", process.returncode))

    def reload(self, **config: Any) -> None:
        """Write other settings, and let the daemon reload them if it is ready."""
        self.harness.configure(**config)
        if self.is_ready and self.is_running():
            assert self.daemon.process is not None
            self.daemon.process.send_signal(signal.SIGHUP)

    @property
    def is_ready(self) -> bool:
        """Whether this process has notified that it is ready."""
        return self.daemon.times_notified("READY=1") > self._ready_before

    def is_running(self) -> bool:
        process = self.daemon.process
        return process is not None and process.poll() is None

    def status(self) -> dict[str, Any] | None:
        """Return the daemon's status; None if it does not answer (yet)."""
        try:
            return send_request(self.harness.settings.run_directory, {"ask": "status"})
        except OSError:
            return None

    def remaining_processes(self) -> set[int]:
        """Return the ids of the processes of this host, without the daemon."""
        return {*self.harness.processes()} - ({self.daemon.process.pid} if self.daemon.process is not None else set())

    def footprint(self) -> tuple[int, int]:
        """Return the number of descriptors and the KiB of resident memory of the daemon."""
        assert self.daemon.process is not None
        process = psutil.Process(self.daemon.process.pid)
        return process.num_fds(), process.memory_info().rss // 1024

    def close(self) -> None:
        self._is_closed.set()
        self._limits.join()
        self.daemon.close()

    def _end_hooks_at_limits(self) -> None:
        """Do what systemd does, also while the daemon does not run."""
        while not self._is_closed.wait(LIMITS_INTERVAL):
            with contextlib.suppress(OSError):  # a unit is removed now
                self.harness.systemd.set_clock(time.monotonic())


def holds_within(condition: Callable[[], object], seconds: float) -> bool:
    """Return True if the condition holds within this time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _configuration(setup: Setup) -> dict[str, Any]:
    """Return settings with short times, so that an event takes seconds."""
    return {
        "timeout": 0.5,
        "first_timeout": 1,
        "kill_after": 0.3,
        "margin": 1,
        "history_events": 1000,
        "log_level": "debug",
        "leader": setup.leader,
        "when_started": setup.when_started,
        "hooks": {hook.path: {"timeout": 1.5, "persists": hook.persists} for hook in setup.hooks},
    }
