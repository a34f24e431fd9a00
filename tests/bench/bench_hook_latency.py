# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Latency of hooks: from an event's appearance to its prepare hook, and from the daemon's start to recovery.

python tests/bench/bench_hook_latency.py [EVENTS [STARTS]]
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[1:3]]
from installed_daemon import ENVIRONMENT, Daemon, install, wait_for
from table import print_table, ratio

from support import simulator_process
from support.simulator_process import Simulator

# writes the time of its beginning, to the nanosecond; `exec` avoids a second process
HOOK = "#!/bin/sh\nexec date +%%s.%%N >> %s\n"
# daemons in parallel, so that many events fit into a minute
VMS = 4
ONE_REQUEST = """
import requests, time
began = time.monotonic()
requests.get(%r, headers={"Metadata": "true"}, params={"api-version": "2020-07-01"}).json()
"""


class Stamps:
    """The Unix times at which a hook began."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def all(self) -> list[float]:
        # the last line may be incomplete
        return (
            [float(line) for line in self.path.read_text().splitlines(True) if line.endswith("\n")]
            if self.path.exists()
            else []
        )

    def wait(self, count: int, daemon: Daemon) -> float:
        """Wait for the count-th time, and return it."""
        wait_for(lambda: len(self.all()) >= count, "a run of the hook", daemon.log)
        return self.all()[count - 1]


def delays(azure: Simulator, daemon: Daemon, stamps: Stamps, vm: str, count: int, found: list[float]) -> None:
    """Schedule so many events, each at a random moment between two polls, and append the seconds of each."""
    for number in range(count):
        time.sleep(random.uniform(0.3, 1.3))
        began = time.time()
        event = azure.post("/events", {"type": "Reboot", "resources": [vm]})["id"]
        found.append(stamps.wait(number + 1, daemon) - began)
        azure.post(f"/events/{event}/cancel")


def first_instruction(events: int, library: Path, folder: Path) -> list[float]:
    vms = [f"vm{number}" for number in range(VMS)]
    groups = {vm: {"kind": "standalone", "vms": {vm: {}}} for vm in vms}
    found: list[float] = []
    with simulator_process.start({"groups": groups}, ["--quiet"]) as azure:
        daemons = [Daemon(library, folder / vm, azure.endpoints[vm]) for vm in vms]
        try:
            workers = []
            for vm, daemon in zip(vms, daemons):
                stamps = Stamps(daemon.folder / "stamps")
                daemon.hook("prepare/10-stamp", HOOK % stamps.path)
                daemon.start()
                daemon.wait_until_ready()
                workers.append(threading.Thread(target=delays, args=(azure, daemon, stamps, vm, events // VMS, found)))
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        finally:
            for daemon in daemons:
                daemon.kill()
    if len(found) < events // VMS * VMS:
        raise RuntimeError(f"only {len(found)} of {events} events reached their hooks")
    return sorted(found)


def recovery(starts: int, library: Path, folder: Path) -> tuple[list[float], list[float]]:
    """Return sorted seconds from the daemon's start to a recover hook, and of a program with one request."""
    recovered, requested = [], []
    with simulator_process.start({"groups": {"one": {"kind": "standalone", "vms": {"vm1": {}}}}}, ["--quiet"]) as azure:
        daemon = Daemon(library, folder / "restarted", azure.endpoints["vm1"])
        prepared, recoveries = Stamps(daemon.folder / "prepared"), Stamps(daemon.folder / "recovered")
        daemon.hook("prepare/10-stamp", HOOK % prepared.path)
        daemon.hook("recover/10-stamp", HOOK % recoveries.path)
        try:
            daemon.start()
            for number in range(starts):
                event = azure.post("/events", {"type": "Reboot", "resources": ["vm1"]})["id"]
                prepared.wait(number + 1, daemon)
                time.sleep(0.3)
                daemon.kill()
                azure.post(f"/events/{event}/cancel")
                began = time.time()
                daemon.start()
                recovered.append(recoveries.wait(number + 1, daemon) - began)
                command = [sys.executable, "-c", ONE_REQUEST % (azure.endpoints["vm1"] + "/metadata/scheduledevents")]
                began = time.time()
                subprocess.run(command, env=ENVIRONMENT, check=True)
                requested.append(time.time() - began)
        finally:
            daemon.kill()
    return sorted(recovered), sorted(requested)


def quantile(ordered: list[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 120
    starts = int(sys.argv[2]) if len(sys.argv) > 2 else 11
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        library = install(folder / "library")
        latencies = first_instruction(events, library, folder)
        recovered, requested = recovery(starts, library, folder)
    rows = [
        [
            f"{quantile(latencies, 0.0):.3f}",
            f"{quantile(latencies, 0.5):.3f}",
            f"{quantile(latencies, 0.99):.3f}",
            f"{latencies[-1]:.3f}",
        ]
    ]
    print_table(
        f"From an event's appearance to the first instruction of its hook, {len(latencies)} random moments, s",
        ["least", "median", "p99", "most"],
        rows,
    )
    print(
        "With one poll a second, half a second passes on average before the next poll. "
        "Goals: median less than 0.6, p99 less than 1.1."
    )
    ours, other = quantile(recovered, 0.5), quantile(requested, 0.5)
    print_table(
        f"From a start of the daemon to the first instruction of a recover hook, median of {len(recovered)}, s",
        ["", "daemon", "a program with one request", "ratio"],
        [["an event in the records is over", f"{ours:.3f}", f"{other:.3f}", ratio(ours, other)]],
    )


if __name__ == "__main__":
    main()
