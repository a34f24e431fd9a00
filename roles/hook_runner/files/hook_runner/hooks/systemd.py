# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Runs hooks in transient units by systemd's programs systemd-run, systemctl and journalctl."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import time
from typing import Sequence

from azure_scheduled_events.boot import boot_id
from hook_runner.hooks import units
from hook_runner.hooks.one_run import Run, RunOrder, RunResult, tail_of
from hook_runner.hooks.units import UnitState

# seconds that systemd may take to answer; while it reloads all units, an answer takes almost one second
ANSWER_TIMEOUT = 5.0
# seconds that systemd may take when the daemon starts, which cannot act without the answer; its unit has 60
START_TIMEOUT = 30.0
# seconds between two questions to a systemd that takes none
ASKING_PAUSE = 0.1
# lines of the journal that are read for the end of a hook's output
OUTPUT_LINES = 100
_END = '"$0" stop -- "$1"; "$0" reset-failed -- "$1"'


class Stopping(OSError):
    """systemd does not start the hook's unit, because it is ending this service or all services."""


class Systemd:
    """The programs of systemd; `folder` is where they are if they are not on PATH."""

    def __init__(self, folder: str = "") -> None:
        self._folder = folder
        self._version = 0

    def has_units(self) -> bool:
        """Return True if systemd runs this host and lets this process start units; it may be too busy to answer."""
        has_program = shutil.which("systemctl", path=self._folder or None) is not None
        return os.geteuid() == 0 and has_program and self._host_state() != "offline"

    def boot(self) -> str:
        """Return what identifies the present start of all services.

        That is the boot of the host, or a later `systemctl soft-reboot`, which keeps the boot id of the kernel.
        Raises OSError if systemd does not answer.
        """
        found = self._known("show", "--property=InvocationID", "--value", "--", "basic.target").stdout
        return f"{boot_id()}-{found.decode('ascii', 'replace').strip()}"

    def start(self, order: RunOrder, input_file: str, environment_file: str) -> str:
        """Start the unit of a run, and return its name.

        Raises:
            Stopping: the daemon or the host is to end; the hook has not run.
            OSError: systemd refuses the unit, for the reason in the text; the hook has not run.
        """
        name = units.unit_name(order.hook.stage, order.hook.name, order.number)
        more = [f"StandardInput=file:{input_file}", f"EnvironmentFile={environment_file}"]
        properties = [*units.properties(order, name, self._known_version()), *more]
        for _attempt in range(2):  # the first one fails while systemd executes itself again
            done = self._start(name, properties, order.hook.path)
            state = self.state(name, ANSWER_TIMEOUT) if done.returncode else None
            if state is None or state.exists:
                return name
            # without an answer in time: a start waits until systemd has ended the daemon, if it is to do so
            self._call("systemctl", "stop", "--no-block", "--", name)
            daemon = self.state(units.DAEMON)
            if self._host_state() == "stopping" or (daemon is not None and daemon.active == "deactivating"):
                raise Stopping("systemd is ending the daemon or the host")
        raise OSError(_reason(done))

    def limits_problem(self, order: RunOrder) -> str | None:
        """Return why systemd would refuse the unit of this run, or None. Starts /bin/true in such a unit."""
        name = f"azure-scheduled-events-check-{os.getpid()}-{order.number}.service"
        known = [each for each in units.properties(order, name, self._known_version()) if each != "RemainAfterExit=yes"]
        done = self._start(name, [*known, "CollectMode=inactive-or-failed"], "/bin/true")
        return _reason(done) if done.returncode else None

    def hook_units(self) -> list[str]:
        """Return the names of all units of hooks. Raises OSError if systemd gives no answer that can be read."""
        # a slice or a timer of the administrator may have such a name, too
        done = self._known("show", units.SHOW, "--", units.PREFIX + "*.service")
        try:
            found = units.parse_states(done.stdout.decode("utf-8", "replace"))
        except (KeyError, ValueError) as error:
            raise OSError(
                f"systemd: the states of hooks cannot be read: {error!r}; the service is started again"
            ) from error
        return [name for name, state in found.items() if state.exists]

    def state(self, name: str, within: float = 0.0) -> UnitState | None:
        """Return the state of a unit; None if systemd gives no answer within these seconds."""
        return _states(self._answered("show", units.SHOW, "--", name, within=within)).get(name)

    def signal(self, name: str, number: int) -> None:
        """Send a signal to all processes of a unit."""
        self._call("systemctl", "kill", f"--signal={number}", "--", name)

    def output(self, name: str) -> str:
        """Return the end of the output of a unit; the journal knows which unit wrote a line, whatever the line says."""
        asked = ("--no-pager", "--quiet", "--output=cat", "--all", f"--lines={OUTPUT_LINES}")
        return tail_of(self._call("journalctl", *asked, f"_SYSTEMD_UNIT={name}").stdout)

    def end(self, name: str) -> subprocess.Popen[bytes]:
        """Begin to end all processes of a unit, and to let systemd forget the unit; return the process that does it."""
        command = ["/bin/sh", "-c", _END, os.path.join(self._folder, "systemctl"), name]
        null = subprocess.DEVNULL
        return subprocess.Popen(command, stdin=null, stdout=null, stderr=null)

    def _start(self, name: str, properties: Sequence[str], path: str) -> subprocess.CompletedProcess[bytes]:
        words = [f"--unit={name}", *(f"--property={each}" for each in properties)]
        return self._call("systemd-run", "--quiet", "--no-ask-password", *words, "--", path)

    def _known(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Return the answer of systemd at the start of the daemon. Raises OSError without one."""
        done = self._answered(*arguments, within=START_TIMEOUT)
        if done.returncode:
            raise OSError(
                f"systemd: no answer in {START_TIMEOUT:.0f} s ({_reason(done)}); the service is started again"
            )
        return done

    def _answered(self, *arguments: str, within: float) -> subprocess.CompletedProcess[bytes]:
        """Run systemctl, and again until systemd answers, or these seconds have passed."""
        end = time.monotonic() + within
        while (done := self._call("systemctl", *arguments)).returncode and time.monotonic() < end:
            time.sleep(ASKING_PAUSE)
        return done

    def _host_state(self) -> str:
        return self._call("systemctl", "is-system-running").stdout.decode("ascii", "replace").strip()

    def _known_version(self) -> int:
        if not self._version:
            words = self._call("systemctl", "--version").stdout.split()
            self._version = int(words[1]) if words[1:] and words[1].isdigit() else 0
        return self._version

    def _call(self, program: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run a program; one that cannot be run, or does not end in time, has exit status -1."""
        command = [os.path.join(self._folder, program), *arguments]
        try:
            return subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=ANSWER_TIMEOUT, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return subprocess.CompletedProcess(command, -1, b"", str(error).encode("utf-8", "backslashreplace"))


class UnitRun(Run):
    """A hook that runs in a unit; `limit` is that of its start, in seconds."""

    def __init__(self, systemd: Systemd, name: str, ends: select.epoll, limit: float) -> None:
        super().__init__(ends)
        self._systemd = systemd
        self._name = name
        self._limit = limit

    def look(self) -> RunResult | None:
        """Ask systemd for the state of the unit; return the result if it has ended."""
        self._close(*self.descriptors)
        state = self._systemd.state(self._name)
        if state is not None and state.has_ended:
            return units.result_of(state, self._limit, self._systemd.output(self._name))
        if state is not None and state.main_pid:
            self._watch_process(state.main_pid)
        return None

    def signal(self, number: int) -> None:
        """Send a signal to all processes of the unit."""
        self._systemd.signal(self._name, number)

    def end(self) -> subprocess.Popen[bytes]:
        """Let systemd end what is left of the unit, and forget it."""
        return self._systemd.end(self._name)


def _states(done: subprocess.CompletedProcess[bytes]) -> dict[str, UnitState]:
    try:
        return units.parse_states(done.stdout.decode("utf-8", "replace")) if not done.returncode else {}
    except (KeyError, ValueError):
        return {}


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    return " ".join(done.stderr.decode("utf-8", "replace").split()) or f"systemd-run failed ({done.returncode})"
