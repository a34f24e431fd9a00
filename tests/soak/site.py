# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One VM of a run: the real daemon's process on a host of its own, and the Azure that it asks."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from hook_runner.config.settings import HookSettings, Settings
from hook_runner.service.control_socket import send_request
from soak.hooks import Mark, read_marks, write_hook
from soak.journal_faults import JournalFaults
from soak.other_host import OtherHost
from soak.plan import VM, Setup
from support.daemon.daemon_process import DaemonProcess
from support.daemon.engine_harness import EngineHarness
from support.daemon.hook_scripts import is_alive, processes_with
from support.daemon.simulated_azure import Azure

# a process that gets a signal, or is started, has so many seconds; only a run that fails waits so
# long
PATIENCE = 30.0
# an event that comes back later is another occurrence; and it has to be listed for so long before
# it is prepared again
REAPPEAR_WITHIN = 3.0


class Restart(NamedTuple):
    """The end of one process of the daemon: when it ended, when the next began, "kill", "term", "reboot" or "died", and what the journal had then."""

    ended: float
    began: float
    how: str
    known: frozenset[tuple[str, str]]


class Site:
    """The host and its daemon, which is not started yet.

    Attributes:
        exits: exit status of each process that has ended, and what ended it.
    """

    def __init__(self, folder: Path, azure: Azure, setup: Setup) -> None:
        self.folder, self.azure, self.setup = folder, azure, setup
        folder.mkdir(parents=True)
        self.host = OtherHost(folder / "marks.boot", folder / "skew", setup.skew)
        self.rig = EngineHarness(folder, azure, VM, **_configuration(setup))
        for hook in setup.hooks:
            write_hook(self.rig.hooks_directory, hook.path, hook.does)
        self.journal = JournalFaults(Path(self.rig.settings.journal))
        self.daemon = DaemonProcess(self.rig)
        self.restarts: list[Restart] = []
        self.exits: list[tuple[str, int]] = []
        self._ended_at: tuple[float, str] | None = None
        self._ready_before = 0

    def start(self) -> None:
        """Start the daemon; it need not have come up when this returns."""
        if self._ended_at is not None:
            ended, how = self._ended_at
            self.restarts.append(Restart(ended, time.time(), how, frozenset(self.journal.known())))
        self._ended_at = None
        self._ready_before = self.daemon.times_notified("READY=1")
        self.daemon.start(first=self.host.program(), until="")

    def end(self, how: str) -> None:
        """End the daemon: "kill" and "term" leave its hooks, "reboot" takes them, /run and the boot id away."""
        self._signal(signal.SIGTERM if how == "term" else signal.SIGKILL)
        if how == "reboot":
            self.rig.end_processes()
            shutil.rmtree(self.rig.settings.run_directory, ignore_errors=True)
            self.host.reboot()
        self.note_end(how)

    def note_end(self, how: str) -> None:
        """The process has ended; what the journal holds now is what the next one can know."""
        process = self.daemon.process
        assert process is not None and process.returncode is not None
        self.exits.append((how if self.is_ready or how != "term" else "term-early", process.returncode))
        self._ended_at = (time.time(), how)

    def reload(self, **config: Any) -> None:
        """Write other settings, and let the daemon read them if it listens already."""
        self.rig.configure(**config)
        if self.is_ready and self.is_running():
            assert self.daemon.process is not None
            self.daemon.process.send_signal(signal.SIGHUP)

    @property
    def is_ready(self) -> bool:
        """Whether this process has said that it is."""
        return self.daemon.times_notified("READY=1") > self._ready_before

    def is_running(self) -> bool:
        process = self.daemon.process
        return process is not None and process.poll() is None

    def status(self) -> dict[str, Any] | None:
        """What the daemon says of itself; None where it does not answer (yet)."""
        try:
            return send_request(self.rig.settings.run_directory, {"ask": "status"})
        except OSError:
            return None

    def marks(self) -> list[Mark]:
        return read_marks(self.rig.marks_file)

    def left_running(self) -> list[int]:
        """Processes of this host other than the daemon."""
        own = self.daemon.process.pid if self.daemon.process is not None else 0
        found = set(processes_with(str(self.folder), "cmdline") + processes_with(str(self.folder), "environ"))
        return sorted(pid for pid in found - {own} if is_alive(pid))

    def footprint(self) -> tuple[int, int]:
        """Descriptors and KiB of resident memory of the daemon."""
        assert self.daemon.process is not None
        process = Path("/proc", str(self.daemon.process.pid))
        pages = int((process / "statm").read_text().split()[1])
        return len(os.listdir(process / "fd")), pages * os.sysconf("SC_PAGE_SIZE") // 1024

    def close(self) -> None:
        self.journal.heal()
        self.daemon.close()

    def _signal(self, number: int) -> None:
        process = self.daemon.process
        assert process is not None
        if process.poll() is None:
            process.send_signal(number)
            process.wait(PATIENCE)


def wait_until(is_so: Callable[[], object], seconds: float, pause: float = 0.02) -> bool:
    """Wait for something, but not longer than that; whether it came."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(pause)
    return True


def _configuration(setup: Setup) -> dict[str, Any]:
    """Short times, so that seconds are enough for a whole life of an event."""
    config: dict[str, Any] = {
        "timeout": 0.5,
        "first_timeout": 1,
        "hook_timeout": 1.5,
        "kill_after": 0.3,
        "margin": 1,
        "history_events": 1000,
        "log_level": "debug",
        "leader": setup.leader,
        "when_started": setup.when_started,
    }
    if "reappear_within" in Settings._fields:
        config["reappear_within"] = REAPPEAR_WITHIN
    # a daemon of before the key has no effects that persist
    persisting = [hook.path for hook in setup.hooks if hook.persists and "persists" in HookSettings._fields]
    return {**config, "hooks": {path: {"persists": True} for path in persisting}}
