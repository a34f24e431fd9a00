# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The testbed of a run: the real daemon's process on an emulated host, and its simulated Azure."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from hook_runner.service.control_socket import send_request
from soak.emulated_host import EmulatedHost
from soak.hooks import Mark, read_marks, write_hook
from soak.plan import VM, Setup
from soak.record_faults import RecordFaults
from support.daemon.daemon_process import DaemonProcess
from support.daemon.hook_scripts import is_alive, processes_with
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure

# seconds for a process to start, or to end after a signal; only a run that fails takes so long
PROCESS_TIMEOUT = 30.0
# seconds between two looks for hooks whose time limit is up
LIMITS_INTERVAL = 0.1
# the absence of an event that came back has to last a minute; a run of a few minutes needs more ends
_SHORT_ABSENCES = """
from azure_scheduled_events import tracking
tracking.GONE_AFTER_A_RETURN = 3.0
"""


class Restart(NamedTuple):
    """The end of one process of the daemon and the start of the next one.

    Attributes:
        ended, began: Unix times.
        how: "kill", "term", "reboot" or "died".
        known: the content of the records between them.
    """

    ended: float
    began: float
    how: str
    known: frozenset[tuple[str, str]]


class Testbed:
    """The host and its daemon, which does not run yet.

    Attributes:
        exits: for each process that has ended the cause and the exit status.
    """

    def __init__(self, folder: Path, azure: Azure, setup: Setup) -> None:
        self.folder, self.azure, self.setup = folder, azure, setup
        folder.mkdir(parents=True)
        self.host = EmulatedHost(folder / "marks.boot", folder / "skew", setup.skew)
        self.harness = RunnerHarness(folder, azure, VM, **_configuration(setup))
        for hook in setup.hooks:
            write_hook(self.harness.hooks_directory, hook.path, hook.does)
        self.records = RecordFaults(Path(self.harness.settings.state_directory), folder / "full")
        self.daemon = DaemonProcess(self.harness)
        self.restarts: list[Restart] = []
        self.exits: list[tuple[str, int]] = []
        self._ended_at: tuple[float, str] | None = None
        self._ready_before = 0
        self._is_closed = threading.Event()
        self._limits = threading.Thread(target=self._end_hooks_at_limits, daemon=True)
        self._limits.start()

    def start(self) -> None:
        """Start the daemon, and do not wait until it is ready."""
        if self._ended_at is not None:
            ended, how = self._ended_at
            self.restarts.append(Restart(ended, time.time(), how, frozenset(self.records.content())))
        self._ended_at = None
        self._ready_before = self.daemon.times_notified("READY=1")
        self.daemon.start(first=self.host.program() + self.records.program() + _SHORT_ABSENCES, until="")

    def end(self, how: str) -> None:
        """End the daemon; "reboot" also ends its hooks, empties the run directory and changes the boot id."""
        self._signal(signal.SIGTERM if how == "term" else signal.SIGKILL)
        if how == "reboot":
            self.harness.end_processes()
            self.harness.systemd.forget()
            shutil.rmtree(self.harness.settings.run_directory, ignore_errors=True)
            self.host.reboot()
        self.record_end(how)

    def record_end(self, how: str) -> None:
        process = self.daemon.process
        assert process is not None and process.returncode is not None
        self.exits.append((how if self.is_ready or how != "term" else "term-early", process.returncode))
        self._ended_at = (time.time(), how)

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

    def marks(self) -> list[Mark]:
        return read_marks(self.harness.marks_file)

    def remaining_processes(self) -> list[int]:
        """Return the ids of the processes of this host, without the daemon."""
        own = self.daemon.process.pid if self.daemon.process is not None else 0
        found = set(processes_with(str(self.folder), "cmdline") + processes_with(str(self.folder), "environ"))
        return sorted(pid for pid in found - {own} if is_alive(pid))

    def footprint(self) -> tuple[int, int]:
        """Return the number of descriptors and the KiB of resident memory of the daemon."""
        assert self.daemon.process is not None
        process = Path("/proc", str(self.daemon.process.pid))
        pages = int((process / "statm").read_text().split()[1])
        return len(os.listdir(process / "fd")), pages * os.sysconf("SC_PAGE_SIZE") // 1024

    def close(self) -> None:
        self._is_closed.set()
        self._limits.join()
        self.records.heal()
        self.daemon.close()

    def _end_hooks_at_limits(self) -> None:
        """Do what systemd does, also while the daemon does not run."""
        while not self._is_closed.wait(LIMITS_INTERVAL):
            with contextlib.suppress(OSError):  # a unit is removed now
                self.harness.systemd.set_clock(time.monotonic())

    def _signal(self, number: int) -> None:
        process = self.daemon.process
        assert process is not None
        if process.poll() is None:
            process.send_signal(number)
            process.wait(PROCESS_TIMEOUT)


def wait_until(condition: Callable[[], object], seconds: float, pause: float = 0.02) -> bool:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(pause)
    return True


def _configuration(setup: Setup) -> dict[str, Any]:
    """Return settings with short times, so that an event takes seconds."""
    config: dict[str, Any] = {
        "timeout": 0.5,
        "first_timeout": 1,
        "kill_after": 0.3,
        "margin": 1,
        "history_events": 1000,
        "log_level": "debug",
        "leader": setup.leader,
        "when_started": setup.when_started,
    }
    return {**config, "hooks": {hook.path: {"timeout": 1.5, "persists": hook.persists} for hook in setup.hooks}}
