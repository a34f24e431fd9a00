# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Measure a maintenance of two minions by Salt's engine: delays, and the CPU of the master.

    python tests/bench/bench_salt_maintenance.py [MAINTENANCES]

Takes about two minutes for MAINTENANCES (default 15).
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[1:3]]
from table import print_table

from support import environments
from support.salt.azure import Azure, simulated
from support.salt.cluster import TREE, Cluster, cluster
from support.salt.process_guard import children
from support.salt.salt_installation import SaltInstallation
from support.wait import wait_until

MINIONS = ("vm1", "vm2")
# seconds in which the CPU of a master without an event is counted, and for which it may go on after a recovery
IDLE = 20.0
SETTLE = 3.0


class Maintenance(NamedTuple):
    """Seconds after the announcement and after the end, and CPU seconds of the master's processes."""

    prepared: float
    approved: float
    recovered: float
    cpu: float


def maintain(here: Cluster, azure: Azure, idle: float) -> Maintenance:
    """Run one maintenance to its last recovery; ``idle``: CPU seconds per second of the idle master."""
    for minion in MINIONS:
        steps_of(here, minion).unlink(missing_ok=True)
    before, began, wall = cpu(here), time.monotonic(), time.time()
    event_id = azure.announce(*MINIONS, kind="Freeze", notice="4h")
    wait_until(lambda: azure.approvals(event_id), "the approval")
    approved = time.time() - wall
    azure.simulator.advance(2)
    azure.end(event_id)
    over = time.time()
    recovered = max(first(here, minion, "recover") for minion in MINIONS) - over
    prepared = max(first(here, minion, "prepare") for minion in MINIONS) - wall
    time.sleep(SETTLE)
    return Maintenance(prepared, approved, recovered, cpu(here) - before - idle * (time.monotonic() - began))


def steps_of(here: Cluster, minion: str) -> Path:
    """Return the file to which the steps of a minion write the times at which they run."""
    return here.minions[minion].folder / "steps"


def first(here: Cluster, minion: str, step: str) -> float:
    """Return the time at which a step ran first."""

    def found() -> list[str]:
        file = steps_of(here, minion)
        return [line for line in file.read_text().split() if line.startswith(step)] if file.exists() else []

    return float(wait_until(found, f"{step} on {minion}")[0].partition(":")[2])


def cpu(here: Cluster) -> float:
    """Return the CPU seconds of the master's processes, those that have ended included."""
    assert here.master.process is not None
    ticks, waiting = 0, [here.master.process.pid]
    while waiting:
        pid = waiting.pop()
        waiting += children(pid)
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with ExitStack() as stack:
        azure = stack.enter_context(
            simulated({"set": {"kind": "availability_set", "vms": {minion: {} for minion in MINIONS}}})
        )
        here = stack.enter_context(
            cluster(SaltInstallation.at(environments.salt(3008)), [TREE], engines=[{"azure_events": {}}])
        )
        pillar = {}
        for minion in MINIONS:
            endpoint = {"endpoint": azure.endpoints[minion]}
            here.minion(minion, azure_events=endpoint, beacons={"azure_events": [{"interval": 1}, endpoint]})
            steps = {step: [f"date +{step}:%s.%N >> {steps_of(here, minion)}"] for step in ("prepare", "recover")}
            pillar[minion] = {"azure_events": steps}
        here.master.set_pillar(**pillar)
        here.master.start()
        here.master.run("salt-run", "saltutil.sync_all")
        here.master.kill()
        here.start()
        here.master.ask_all("*", "saltutil.sync_all")
        time.sleep(IDLE)
        before, began = cpu(here), time.monotonic()
        time.sleep(IDLE)
        idle = (cpu(here) - before) / (time.monotonic() - began)
        # the first maintenance is for what is made and loaded once
        done = [maintain(here, azure, idle) for _number in range(count + 1)][1:]
    prepared, approved, recovered, spent = (statistics.median(values) for values in zip(*done))
    rows = [
        ["announcement to the last preparation, s", f"{prepared:.2f}"],
        ["announcement to the approval, s", f"{approved:.2f}"],
        ["end to the last recovery, s", f"{recovered:.2f}"],
        ["CPU of the master for one maintenance, s", f"{spent:.2f}"],
        ["CPU of the master without an event, s/h", f"{3600 * idle:.0f}"],
    ]
    print_table(f"A maintenance of two minions (Salt 3008, median of {count})", ["", "engine"], rows)


if __name__ == "__main__":
    main()
