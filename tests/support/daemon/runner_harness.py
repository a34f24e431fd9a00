# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The daemon without its process: a real client, records, hooks and state machine, with a clock of the test."""

from __future__ import annotations

import collections
import contextlib
import io
import json
import logging
import os
import shutil
import signal
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from azure_scheduled_events import Imds
from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.identity import vm_key
from hook_runner.clock import ServerClock
from hook_runner.config.settings import load_settings
from hook_runner.hooks.discovery import discover_hooks
from hook_runner.hooks.runs import HookRuns
from hook_runner.hooks.systemd import Systemd
from hook_runner.imds_health import ImdsHealth
from hook_runner.log import LogHandler, log_to, set_level
from hook_runner.maintenance.record import HookRun
from hook_runner.record_store import RecordStore
from hook_runner.records import Cause
from hook_runner.reporting import status
from hook_runner.runner import Runner
from hook_runner.service.inbox import Inbox
from hook_runner.service.poller import Poller
from support.daemon.hook_scripts import WORKS, Mark, is_alive, processes_with, read_marks, write_hook
from support.daemon.simulated_azure import Azure
from support.daemon.systemd_programs import SystemdPrograms
from support.wait import wait_until

log = logging.getLogger("hook_runner.tests")

AFTER_PREPARE = {"rules": [{"name": "mine", "when": {"concerns_me": True}, "approve": "after_prepare"}]}


class RunnerHarness:
    """One VM. Call `hook` and `configure` first, then `poll` repeatedly.

    Attributes:
        wall_offset: error of the host's own clock.
        boot_number: number of this boot of the host.
    """

    def __init__(self, folder: Path, azure: Azure, name: str = "vm1", **config: Any) -> None:
        folder.chmod(0o755)
        self.folder, self.azure, self.name = folder, azure, name
        self.hooks_directory = folder / "hooks.d"
        self.marks_file = folder / "marks"
        self.systemd = SystemdPrograms(folder)
        self.log = io.StringIO()
        self.wall_offset = timedelta()
        self._began = azure.now()
        self._elapsed = self._booted = 0.0
        self.boot_number = 1
        self._runner: Runner | None = None
        self.config: dict[str, Any] = {}
        self.configure(**{"policy": AFTER_PREPARE, **config})

    def configure(self, **config: Any) -> None:
        """Set keys of config.yml; the next runner reads them."""
        self.config.update(config)
        fixed = {
            "hooks_directory": str(self.hooks_directory),
            "state_directory": str(self.folder / "state"),
            "run_directory": str(self.folder / "run"),
            "environment": {"MARKS": str(self.marks_file)},
            "endpoint": self.azure.simulator.endpoints[self.name],
        }
        path = self.folder / "config.yml"
        path.write_text(json.dumps({**fixed, **self.config}))
        path.chmod(0o600)
        self.settings = load_settings(str(path), is_checked=True)

    def hook(self, name: str, body: str = WORKS) -> None:
        """Write the hook STAGE/NAME."""
        write_hook(self.hooks_directory, name, body)
        if not self._gate(name).exists():
            os.mkfifo(self._gate(name))

    def start(self) -> Runner:
        """Create the runner, as the service does when it starts."""
        settings = self.settings
        os.makedirs(settings.run_directory, exist_ok=True)
        self.clock = ServerClock(self.monotonic, self._wall)
        log_to(LogHandler(self.log))
        set_level("debug")
        self.health = ImdsHealth()
        boot = f"boot {self.boot_number}"
        self.store = RecordStore(settings.state_directory, boot, log.error, self.clock.now)
        self.store.load()
        self.systemd.set_clock(self.monotonic())
        # processes take real time
        self._runs = HookRuns(settings.run_directory, systemd=Systemd(str(self.systemd.folder)))
        self._queue: collections.deque[ScheduledEvent] = collections.deque()
        self.imds = Imds(settings.endpoint, settings.api_version, clock=self.monotonic)
        self._inbox = Inbox()
        self._poller = Poller(self.imds, settings, self.clock, self.health, self._inbox, lambda seconds: None)
        hooks, _skipped = discover_hooks(settings.hooks_directory, settings)
        send = self._queue.append
        self._runner = Runner(settings, hooks, self.store, self._runs, self.clock, self.health, send)
        return self._runner

    def restart(self, how: str = "kill") -> None:
        """End the daemon and start it again.

        ``how``: "kill" (close nothing) or "reboot" (also end hooks and empty /run).
        """
        if how == "reboot":
            self.end_processes()
            self.systemd.forget()
            shutil.rmtree(self.settings.run_directory)
            self._booted = self._elapsed - 1.0
            self.boot_number += 1
        # a killed process closes nothing; therefore the garbage collector must not either
        _ABANDONED.append((self._runner, self._runs))
        self.start()

    @property
    def runner(self) -> Runner:
        return self._runner or self.start()

    def monotonic(self) -> float:
        """Return the seconds since the host's start, the daemon's monotonic clock."""
        return self._elapsed - self._booted

    def poll(self, after: float = 0) -> None:
        """Let simulated seconds pass, poll until the documents confirm what they list and lack, and settle."""
        self.poll_once(after)
        if not self.runner.records.is_confirmed:
            self.poll_once()
        # what came back is over after a minute; a document with unreadable entries never ends anything
        for _poll in range(62):
            if self._is_in_doubt():
                self.poll_once(1.0)

    def poll_once(self, after: float = 0) -> None:
        """Let simulated seconds pass, poll once, and settle."""
        if after:
            self.azure.advance(after)
            self._elapsed += after
            self.systemd.set_clock(self.monotonic())
        if self._runner is None:
            self.start()
        self._poller.poll_once()
        self._handle_messages()
        self.settle()

    def _handle_messages(self) -> None:
        """Handle the messages of the poller as the service does."""
        for message in self._inbox.take():
            message(self.runner)

    def settle(self) -> None:
        """Tick until no hook runs, or only hooks that wait for the test."""

        def is_quiet() -> bool:
            self.runner.tick()
            run = self.runner.records.open_run
            if self._deliver() or (run is not None and not self._is_waiting(run)):
                return False
            # a hook may wait for the end of units that no record has
            is_delayed = bool(self.runner.waiting_for)
            return not (is_delayed and processes_with(str(self.systemd.folder / "systemctl"), "cmdline"))

        # what has ended between a tick and the look at it is noticed by the next tick
        self.wait(lambda: is_quiet() and is_quiet())

    def wait(self, is_so: Callable[[], object]) -> None:
        """Wait for an effect of another process, with a limit in real time."""
        wait_until(is_so, str(is_so), explain=lambda: f"{self.log.getvalue()}\n{self.marks()}")

    def release(self, hook: str) -> None:
        """Let a hanging hook succeed."""
        before = len(self.marks("end"))
        gate = os.open(self._gate(hook), os.O_RDWR)
        os.write(gate, b"0\n")
        self.wait(lambda: len(self.marks("end")) > before)
        os.close(gate)

    def processes(self) -> list[int]:
        """Return the ids of the processes with the path of this harness: units, then their hooks, and a daemon."""
        found = processes_with(str(self.folder), "cmdline") + processes_with(str(self.folder), "environ")
        return [pid for pid in dict.fromkeys(found) if is_alive(pid)]

    def end_processes(self) -> None:
        """Kill all hooks of this harness and the processes of their units, and wait for their end."""

        def is_over() -> bool:
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not self.processes()

        self.wait(is_over)

    def close(self) -> None:
        """End the processes after the test."""
        if self._runner is not None:
            self.end_processes()
            self.imds.close()

    # -- what has happened

    def marks(self, *what: str) -> list[Mark]:
        return [mark for mark in read_marks(self.marks_file) if not what or mark.what in what]

    def ran(self, stage: str = "") -> list[str]:
        """Return the hooks that have begun, in that order."""
        return [mark.hook for mark in self.marks("begin") if mark.hook.startswith(stage)]

    @property
    def runs(self) -> list[HookRun]:
        """The runs of the open maintenance."""
        maintenance = self.runner.records.maintenance
        assert maintenance is not None
        return maintenance.runs

    def steps(self) -> list[tuple[str, str]]:
        """Return (STAGE/NAME, state) of each run of the open maintenance."""
        return [(run.title, run.state) for run in self.runs]

    def status(self) -> dict[str, Any]:
        return status.to_data(self.runner)

    def times_logged(self, text: str) -> int:
        return sum(text in line for line in self.log.getvalue().splitlines())

    def _is_in_doubt(self) -> bool:
        maintenance, sightings = self.runner.records.maintenance, self.runner.records.sightings.values()
        lacks_events = maintenance is not None and maintenance.may_lack_events
        return (lacks_events and self.runner.awaits_document) or any(
            not each.listed or each.named != frozenset(map(vm_key, each.event.resources)) for each in sightings
        )

    def _gate(self, hook: str) -> Path:
        return self.folder / ("marks.gate." + hook.replace("/", "."))

    def _wall(self) -> datetime:
        return self._began + timedelta(seconds=self._elapsed) + self.wall_offset

    def _deliver(self) -> bool:
        """Send the approvals that are due; return True if there were any."""
        sent = bool(self._queue)
        while self._queue:
            self._poller.send_approval(self._queue.popleft())
        self._handle_messages()
        return sent

    def _is_waiting(self, run: HookRun) -> bool:
        """Return True if a running hook waits for the test or the clock."""
        last = next((mark for mark in reversed(self.marks()) if mark.hook == run.title), None)
        is_ending = run.ending is not Cause.NONE or self.systemd.ends_a_hook()
        return last is not None and last.what == "hang" and is_alive(last.pid) and not is_ending


_ABANDONED: list[object] = []
# makes a VM with this name and configuration
MakeVm = Callable[..., RunnerHarness]
