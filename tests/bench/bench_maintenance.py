# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Wall time of the maintenance playbook of this checkout and of an earlier commit, by number of hosts.

    python tests/bench/bench_maintenance.py [HOSTS ...] [--before COMMIT] [--times N]

All hosts are this machine, over local connections, with as many forks as hosts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[1:3]]
from table import print_table, ratio

from playbooks import collections_path
from support import simulator_process
from support.repository import REPOSITORY
from support.simulator_process import Simulator
from tools.repository.collection_tree import INSIDE

PLAYBOOK = "azure_imds.scheduled_events.maintenance"
BEFORE = "07bf835"
# seconds
STARTED_FOR = 5
RUN_TIMEOUT = 1800


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else "")
    parser.add_argument(
        "hosts", nargs="*", type=int, default=[5, 50], metavar="HOSTS", help="numbers of hosts (default: 5 50)"
    )
    parser.add_argument("--before", default=BEFORE, metavar="COMMIT", help="the earlier commit (default: %(default)s)")
    parser.add_argument(
        "--times", type=int, default=3, help="runs of each, of which the median counts (default: %(default)s)"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        checkouts = {"before": unpack(options.before, Path(name) / "before"), "after": collections_path()}
        rows = []
        for hosts in options.hosts:
            for what, has_event in (("no event", False), ("an event of all hosts", True)):
                walls: dict[str, list[float]] = {which: [] for which in checkouts}
                for _time in range(options.times):
                    for which, collections in checkouts.items():
                        walls[which].append(wall(collections, hosts, has_event))
                before, after = (statistics.median(walls[which]) for which in ("before", "after"))
                rows.append([f"{hosts} hosts, {what}", f"{before:.1f}", f"{after:.1f}", ratio(after, before)])
    print_table(
        f"Playbook maintenance, wall time in seconds (median of {options.times})",
        ["", options.before, "here", "ratio"],
        rows,
    )
    cores = os.cpu_count() or 1
    print(
        "Local connections, as many forks as hosts, %d cores. "
        "The event is Started for %d s, which are part of the time." % (cores, STARTED_FOR)
    )


def unpack(commit: str, folder: Path) -> Path:
    collection = folder / INSIDE
    collection.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "archive", "--format=tar", commit], cwd=REPOSITORY, check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "-x"], cwd=collection, input=archive, check=True)
    return folder


def wall(collections: Path, hosts: int, has_event: bool) -> float:
    """Return the seconds of one run; RuntimeError if it does not approve and recover as expected."""
    names = [f"vm{number}" for number in range(1, hosts + 1)]
    scenario = {
        "groups": {"set": {"kind": "availability_set", "vms": {name: {} for name in names}}},
        "events": [{"type": "Freeze", "resources": names, "notice": "25m", "started_for": STARTED_FOR}] * has_event,
        "knobs": {"rate_limit": 0},
    }
    with simulator_process.start(scenario) as azure, tempfile.TemporaryDirectory(prefix="bench-") as name:
        seconds = run(Path(name), azure, collections, names)
        approvals = [line for line in azure.get("/log")["lines"] if line["what"] == "approval"]
        recovered = sum((Path(name) / ("recovered-" + each)).exists() for each in names)
    if len(approvals) != has_event or recovered != hosts * has_event:
        raise RuntimeError(f"{len(approvals)} approvals, and {recovered} of {hosts} hosts recovered")
    return seconds


def run(folder: Path, azure: Simulator, collections: Path, names: list[str]) -> float:
    for step in ("prepared", "recovered"):
        tasks = [{"name": "Step", "ansible.builtin.command": f"touch {folder}/{step}-{{{{ inventory_hostname }}}}"}]
        (folder / (step + ".yml")).write_text(json.dumps(tasks))
    common = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "maintenance_prepare": str(folder / "prepared.yml"),
        "maintenance_recover": str(folder / "recovered.yml"),
        "maintenance_receipts": f"{folder}/receipts-{{{{ inventory_hostname }}}}",
        "maintenance_notes": f"{folder}/notes-{{{{ inventory_hostname }}}}",
    }
    hosts = {name: {"maintenance_endpoint": azure.endpoints[name]} for name in names}
    (folder / "inventory.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": common}}))
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        "-i",
        str(folder / "inventory.json"),
        "--forks",
        str(len(names)),
        PLAYBOOK,
    ]
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "ANSIBLE_HOME": str(folder),
        "ANSIBLE_LOCAL_TEMP": str(folder),
    }
    started = time.monotonic()
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=RUN_TIMEOUT, check=False)
    seconds = time.monotonic() - started
    if ran.returncode:
        raise RuntimeError(ran.stdout + ran.stderr)
    return seconds


if __name__ == "__main__":
    main()
