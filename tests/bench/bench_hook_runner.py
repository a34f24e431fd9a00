# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""CPU and memory of the daemon without and with events, beside loops that only poll; the delay of its hooks.

    [INTERVAL=1] python tests/bench/bench_hook_runner.py [SECONDS [EVENTS]]

A short INTERVAL gives more polls in the same time; each poll of each program then costs less, because
caches are warm.

All programs run at the same time, each as a separate VM, so that other work of the machine affects
them alike.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[1:3]]
from table import print_table, ratio

from support import simulator_process
from support.repository import REPOSITORY
from support.simulator_process import Simulator
from support.wait import wait_until

# of the hook runner and of the helper
SOURCES = [str(REPOSITORY / each) for each in ("roles/hook_runner/files", "plugins/module_utils")]
COMMAND = "import sys; sys.path[:0] = %r; from hook_runner.cli.main import main; sys.exit(main())"
# the measured process gets no settings of the developer, and Python uses its bytecode
ENVIRONMENT = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}

PATH = "/metadata/scheduledevents?api-version=2020-07-01"
INTERVAL = float(os.environ.get("INTERVAL", "1"))
# seconds before the measurement: imports, first answers, caches
WARM_UP = 5.0
# events
PENDING = 1000

# the loop of the sample in Microsoft's documentation
PLAIN = """
import requests, time
while True:
    began = time.monotonic()
    document = requests.get(%r, headers={"Metadata": "true"}, params={"api-version": "2020-07-01"}).json()
    time.sleep(max(0.0, began + %g - time.monotonic()))
"""
SESSION = """
import requests, time
session = requests.Session()
while True:
    began = time.monotonic()
    document = session.get(%r, headers={"Metadata": "true"}, params={"api-version": "2020-07-01"}).json()
    time.sleep(max(0.0, began + %g - time.monotonic()))
"""
URLLIB3 = """
import json, time, urllib3
pool = urllib3.HTTPConnectionPool(%r, %d)
path, headers = "/metadata/scheduledevents?api-version=2020-07-01", {"Metadata": "true"}
while True:
    began = time.monotonic()
    document = json.loads(pool.request("GET", path, headers=headers).data)
    time.sleep(max(0.0, began + %g - time.monotonic()))
"""
# writes the time of its beginning, to the nanosecond; `exec` avoids a second process
STAMP = "#!/bin/sh\nexec date +%%s.%%N > %s\n"
CURL = "while :; do curl -fsS -H Metadata:true '%s' >/dev/null; sleep 1; done"


class Daemon:
    """The daemon of one VM: call `hook` for each hook, then `start`. ``config`` are keys of config.yml."""

    def __init__(self, folder: Path, endpoint: str, **config: Any) -> None:
        self.folder = folder
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
        program = COMMAND % SOURCES
        command = [sys.executable, "-I", "-c", program, "run", "--config", str(self.folder / "config.yml")]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=ENVIRONMENT)
        return self._process.pid

    def wait_until_ready(self) -> None:
        wait_until(lambda: "IMDS answers" in self.log(), "an answer of IMDS in the log", self.log)

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


class Usage(NamedTuple):
    """``cpu``: CPU seconds for an hour of one poll a second, with children; ``memory``: resident MiB."""

    cpu: float
    memory: float


class Comparison:
    """Programs by name, which run until the end of `measure`."""

    def __init__(self, azure: Simulator, folder: Path) -> None:
        self._azure, self._folder = azure, folder
        self._pids: dict[str, int] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._daemons: list[Daemon] = []

    def add_command(self, name: str, command: Sequence[str]) -> None:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
        self._processes.append(process)
        self._pids[name] = process.pid

    def add_daemon(self, name: str) -> None:
        daemon = Daemon(self._folder / ("of-" + name), self._azure.endpoints[name], interval=INTERVAL)
        self._daemons.append(daemon)
        # measure the second start, because only the first one makes the folders
        daemon.start()
        daemon.wait_until_ready()
        self._pids[name] = daemon.start()

    def measure(self, seconds: float) -> dict[str, Usage]:
        """End all programs after so many seconds, and return the usage of each."""
        try:
            time.sleep(WARM_UP)
            before, polls_before = {name: cpu_seconds(pid) for name, pid in self._pids.items()}, self._polls()
            time.sleep(seconds)
            after, polls_after = {name: cpu_seconds(pid) for name, pid in self._pids.items()}, self._polls()
            polls = {name: polls_after.get(name, 0) - polls_before.get(name, 0) for name in self._pids}
            return {
                name: Usage((after[name] - before[name]) / polls[name] * 3600 if polls[name] else 0.0, resident(pid))
                for name, pid in self._pids.items()
            }
        finally:
            for daemon in self._daemons:
                daemon.kill()
            for process in self._processes:
                process.kill()
                process.wait()

    def _polls(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for count in self._azure.get("/requests")["counts"]:
            found[count["vm"]] = found.get(count["vm"], 0) + count["count"]
        return found


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process, its threads and its ended children."""
    threads = sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir())
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return threads / 1e9 + (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) / 1024


def idle(seconds: float, folder: Path) -> None:
    """Compare the programs without an event."""
    names = {
        "daemon": "the daemon",
        "urllib3": "urllib3, kept alive",
        "session": "requests.Session, kept alive",
        "plain": "requests.get",
        "curl": "bash and curl",
    }
    groups = {name: {"kind": "standalone", "vms": {name: {}}} for name in names}
    with simulator_process.start({"groups": groups}, ["--quiet"]) as azure:
        comparison = Comparison(azure, folder)
        comparison.add_daemon("daemon")
        host, port = azure.endpoints["urllib3"].rpartition("/")[2].split(":")
        comparison.add_command("urllib3", [sys.executable, "-c", URLLIB3 % (host, int(port), INTERVAL)])
        comparison.add_command("session", [sys.executable, "-c", SESSION % (address(azure, "session"), INTERVAL)])
        comparison.add_command("plain", [sys.executable, "-c", PLAIN % (address(azure, "plain"), INTERVAL)])
        if shutil.which("curl") and shutil.which("bash"):
            comparison.add_command("curl", ["bash", "-c", CURL % (azure.endpoints["curl"] + PATH)])
        used = comparison.measure(seconds)
    print_usage(f"Without an event, one poll a second, for {seconds:g} s", names, used)


def busy(seconds: float, folder: Path) -> None:
    """Compare them with pending events: one affects the VM of the daemon, the others another VM."""
    names = {"busy": "the daemon", "session": "requests.Session, kept alive"}
    groups = {"set": {"kind": "availability_set", "vms": {name: {} for name in (*names, "other")}}}
    vms = ["busy", *["other"] * (PENDING - 1)]
    events = [{"type": "Freeze", "resources": [vm], "notice": "5h"} for vm in vms]
    with simulator_process.start({"groups": groups, "events": events}, ["--quiet"]) as azure:
        comparison = Comparison(azure, folder)
        comparison.add_daemon("busy")
        comparison.add_command("session", [sys.executable, "-c", SESSION % (address(azure, "session"), INTERVAL)])
        used = comparison.measure(seconds)
    print_usage(f"With {PENDING} pending events, one poll a second, for {seconds:g} s", names, used)


def print_usage(title: str, names: dict[str, str], used: dict[str, Usage]) -> None:
    """Print the usage of the programs with these names that ran, beside that of the first one, the daemon."""
    daemon = next(iter(names))
    rows = [
        [text, f"{used[name].cpu:.2f}", ratio(used[daemon].cpu, used[name].cpu), f"{used[name].memory:.1f}"]
        for name, text in names.items()
        if name in used
    ]
    print_table(title, ["", "CPU, s per hour", "daemon / this", "resident, MiB"], rows)


def delays(events: int, folder: Path) -> None:
    """Measure the time from the appearance of events, at random moments between two polls, to their prepare hook."""
    found = []
    with simulator_process.start({"groups": {"one": {"kind": "standalone", "vms": {"vm1": {}}}}}, ["--quiet"]) as azure:
        daemon = Daemon(folder / "vm1", azure.endpoints["vm1"])
        stamp = daemon.folder / "stamp"
        daemon.hook("prepare/10-stamp", STAMP % stamp)
        daemon.hook("recover/10-stamp", f"#!/bin/sh\nexec rm {stamp}\n")
        daemon.start()
        daemon.wait_until_ready()
        for _number in range(events):
            time.sleep(random.uniform(0.3, 1.3))
            began = time.time()
            event = azure.post("/events", {"type": "Reboot", "resources": ["vm1"]})["id"]
            wait_until(lambda: stamp.exists() and stamp.read_text().endswith("\n"), "the prepare hook", daemon.log)
            found.append(float(stamp.read_text()) - began)
            azure.post(f"/events/{event}/cancel")
            wait_until(lambda: not stamp.exists(), "the recover hook", daemon.log)
        daemon.kill()
    found.sort()
    row = [found[0], statistics.median(found), found[int(len(found) * 0.99)], found[-1]]
    title = f"From an event's appearance to the first instruction of its hook, {events} random moments, s"
    print_table(title, ["least", "median", "p99", "most"], [[f"{each:.3f}" for each in row]])


def address(azure: Simulator, vm: str) -> str:
    return azure.endpoints[vm] + PATH.partition("?")[0]


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    events = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        idle(seconds, folder)
        busy(0.75 * seconds, folder)
        delays(events, folder)


if __name__ == "__main__":
    main()
