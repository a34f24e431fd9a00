# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Compare the Salt beacon with a naive one that blocks: delays, the minion's loop, CPU.

    python tests/bench/bench_salt.py [EVENTS] [SECONDS]

Takes about six minutes: SECONDS (default 120) of idle minions, and EVENTS (default 60) for each beacon
at random moments.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[1:3]]
from table import print_table, ratio

from support import environments
from support.salt.azure import Azure, simulated
from support.salt.cluster import TREE, Cluster, cluster
from support.salt.minion import Minion
from support.salt.salt_installation import QUIET, SaltInstallation

OWN = Path(__file__).parent / "salt"
TICK = Path(__file__).with_name("salt_tick.py")
BEACONS = {"ours": "azure_events", "naive": "naive"}
GROUPS = {name: {"kind": "standalone", "vms": {name: {}}} for name in BEACONS}
CALLS = 30
# seconds in which the CPU of a minion is counted at a time
WINDOW = 5.0
CALLS_THAT_HANG = 6


def configuration(name: str, azure: Azure) -> dict[str, Any]:
    return {"beacons": {BEACONS[name]: [{"interval": 1}, {"endpoint": azure.endpoints[name]}]}}


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def delays(here: Cluster, azure: Azure, name: str, count: int) -> tuple[list[float], list[float]]:
    """Seconds from an event in IMDS to the master's bus, and to the return of the job that reacts to it."""
    to_bus, to_return = [], []
    for _event in range(count):
        time.sleep(random.uniform(0.2, 1.2))
        began = time.time()
        event_id = azure.announce(name)
        events = here.master.bus.wait(f"salt/beacon/{name}/{BEACONS[name]}/scheduled", event_id=event_id)
        returned = here.master.bus.wait(f"salt/job/*/ret/{name}", **{"return": event_id})
        azure.end(event_id)
        to_bus.append(events.time - began)
        to_return.append(returned.time - began)
    return to_bus, to_return


def cpu(minion: Minion) -> float:
    """Seconds of CPU of all threads of a minion, as the kernel's scheduler counts them."""
    pid = Path(minion.config["pidfile"]).read_text().strip()
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def cpu_per_hour(minions: dict[str, Minion], seconds: float) -> dict[str, float]:
    """The median of windows: what a minion does now and then by itself would cover what a beacon costs."""
    windows: dict[str, list[float]] = {name: [] for name in minions}
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        before, began = {name: cpu(minion) for name, minion in minions.items()}, time.monotonic()
        time.sleep(WINDOW)
        hours = (time.monotonic() - began) / 3600
        for name, minion in minions.items():
            windows[name].append((cpu(minion) - before[name]) / hours)
    return {name: statistics.median(spent) for name, spent in windows.items()}


def ticks(minion: Minion, calls: int) -> list[float]:
    """Milliseconds for which each tick of the loop was held, with what the minion has synced."""
    command = [minion.installation.python, TICK, minion.folder / "minion", str(calls)]
    ran = subprocess.run(command, env={**os.environ, **QUIET}, capture_output=True, text=True, check=True)
    # the first ones make the connections
    return [1000 * seconds for seconds in json.loads(ran.stdout.splitlines()[-1])[3:]]


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 120.0
    installation = SaltInstallation.at(environments.salt(3008))
    reactor = [{f"salt/beacon/*/{beacon}/scheduled": [str(OWN / "echo.sls")]} for beacon in BEACONS.values()]
    with ExitStack() as stack:
        azure = stack.enter_context(simulated(GROUPS))
        here = stack.enter_context(cluster(installation, [TREE, OWN], reactor=reactor))
        for name in BEACONS:
            here.minion(name, **configuration(name, azure))
        idle = here.minion("idle")
        here.start()
        here.master.ask_all("*", "saltutil.sync_all")
        time.sleep(10)
        spent = cpu_per_hour({**here.minions, "idle": idle}, seconds)
        measured = {name: delays(here, azure, name, events) for name in BEACONS}
        for minion in here.minions.values():
            minion.kill()
        healthy = {name: ticks(here.minions[name], CALLS) for name in BEACONS}
        for name in BEACONS:
            azure.simulator.post("/faults", {"kind": "hang", "vm": name})
        hanging = {name: ticks(here.minions[name], CALLS_THAT_HANG) for name in BEACONS}
    rows = []

    def row(text: str, ours: float, naive: float, form: str) -> None:
        rows.append([text, form % ours, form % naive, ratio(ours, naive)])

    for index, what in enumerate(("event to the master's bus", "event to the return of the reaction")):
        for word, share in (("median", 0.5), ("p99", 0.99)):
            row(f"{what}, {word}, s", *(percentile(measured[name][index], share) for name in BEACONS), "%.2f")
    for what, taken in (("IMDS is well", healthy), ("IMDS hangs", hanging)):
        row(f"loop held each second, {what}, median, ms", *(statistics.median(taken[name]) for name in BEACONS), "%.2f")
        row(f"loop held each second, {what}, max, ms", *(max(taken[name]) for name in BEACONS), "%.2f")
    row("CPU that it adds to an idle minion, s/h", *(spent[name] - spent["idle"] for name in BEACONS), "%.1f")
    print_table(f"The Salt beacon at 1 s ({events} events each)", ["", "azure_events", "naive", "ratio"], rows)
    print(
        "naive sends one blocking requests.get in each call, with a timeout of 10 s. "
        "A minion without a beacon spends {:.0f} s/h.".format(spent["idle"])
    )


if __name__ == "__main__":
    main()
