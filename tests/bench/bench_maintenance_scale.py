# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A maintenance of many hosts with few forks: times of its steps, and CPU and memory of the controller.

    python tests/bench/bench_maintenance_scale.py [HOSTS ...] [--forks N]

Compares the playbook of this collection with one with `uri` and `until` as a user would write it. All hosts
are this machine, over local connections: their modules share its processors with the controller.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[1:3]]
from table import print_table

from support import simulator_process
from support.repository import REPOSITORY
from support.simulator_process import Simulator
from tools.repository.collection_tree import copy_tree

PLAYBOOK = "azure_imds.scheduled_events.maintenance"
COLLECTIONS = REPOSITORY / ".cache" / "trees" / "bench"
RUN_TIMEOUT = 3600
LOAD = f"{os.getloadavg()[0]:.1f}"
# seconds between samples of the controller's memory
SAMPLE = 2.0
PR_SET_CHILD_SUBREAPER = 36
# replaces the host's Python and writes the CPU time of each module run; bash itself adds 2 ms
SHIM = """#!/bin/bash
"%(python)s" "$@"
status=$?
times >> "%(notes)s"
exit $status
"""

URL = "{{ maintenance_endpoint }}/metadata/scheduledevents?api-version=2020-07-01"
READ: dict[str, Any] = {"url": URL, "headers": {"Metadata": "true"}, "return_content": True}
WAIT = {
    "name": "Wait",
    "ansible.builtin.uri": READ,
    "register": "answer",
    "until": "answer.json is defined and not answer.json.Events",
    "retries": RUN_TIMEOUT,
    "delay": 1,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else "")
    parser.add_argument("hosts", nargs="*", type=int, default=[5, 50], metavar="HOSTS", help="(default: 5 50)")
    parser.add_argument("--forks", type=int, default=5, help="(default: %(default)s)")
    options = parser.parse_args()
    # detached processes of the controller become children of this one, so that their CPU time is counted
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    copy_tree(REPOSITORY, COLLECTIONS)
    rows = []
    for hosts in options.hosts:
        for which in ("maintenance", "uri + until"):
            figures = measure(which == "maintenance", hosts, options.forks)
            cells = [str(value) if isinstance(value, int) else f"{value:.1f}" for value in figures.values()]
            rows.append([f"{hosts} hosts, {which}", *cells])
            print("  ".join(rows[-1]), flush=True)
    print_table(f"A maintenance with {options.forks} forks", ["", *figures], rows)
    print(
        "Seconds from the announcement to: all prepared, approval, event over; from the end of the event to: first\n"
        "and last recovery, end of the playbook. CPU seconds of the controller and of all modules on the hosts;\n"
        "highest memory of the controller's processes (PSS) and their number. %s cores, load before %s, Python %s."
        % (os.cpu_count(), LOAD, platform.python_version())
    )


def measure(is_ours: bool, hosts: int, forks: int) -> dict[str, float]:
    """Return the figures of one run by name; RuntimeError if it does not approve and recover as expected.

    ``is_ours``: whether the playbook is that of this collection.
    """
    names = [f"vm{number}" for number in range(1, hosts + 1)]
    # long enough for all hosts to wait
    started_for = 20 + hosts
    scenario = {
        "groups": {"set": {"kind": "availability_set", "vms": {name: {} for name in names}}},
        "knobs": {"rate_limit": 0},
    }
    event = {"type": "Freeze", "resources": names, "notice": "2h", "started_for": started_for}
    with simulator_process.start(scenario) as azure, tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        playbook = PLAYBOOK if is_ours else write_plays(folder)
        announced = time.time()
        azure.post("/events", event)
        controller, host, memory, processes = run(folder, azure, names, forks, playbook)
        ended = time.time()
        lines = azure.get("/log")["lines"]
        times = {
            step: sorted(path.stat().st_mtime for path in folder.glob(step + "-*"))
            for step in ("prepared", "recovered")
        }
    approvals = [line for line in lines if line["what"] == "approval"]
    if len(approvals) != 1 or any(len(times[step]) != hosts for step in times):
        raise RuntimeError(f"{len(approvals)} approvals, and {len(times['recovered'])} of {hosts} hosts recovered")
    over = unix(next(line for line in lines if line["what"] == "finished"))
    return {
        "prepared": times["prepared"][-1] - announced,
        "approved": unix(approvals[0]) - announced,
        "over": over - announced,
        "first rec.": times["recovered"][0] - over,
        "last rec.": times["recovered"][-1] - over,
        "end": ended - over,
        "CPU": controller,
        "CPU hosts": host,
        "MiB": memory,
        "processes": processes,
    }


def write_plays(folder: Path) -> str:
    """Write a playbook that prepares, approves, waits and recovers, as a user would write it, and return its path."""
    play = {"hosts": "all", "gather_facts": False}
    start = {"StartRequests": [{"EventId": "{{ item.EventId }}"}]}
    approve = {**READ, "method": "POST", "body": start, "body_format": "json"}
    plays = [
        {
            **play,
            "tasks": [
                {"name": "Read the events", "ansible.builtin.uri": READ, "register": "answer"},
                {"name": "Prepare", "ansible.builtin.include_tasks": "prepared.yml"},
                {
                    "name": "Approve",
                    "ansible.builtin.uri": approve,
                    "loop": "{{ answer.json.Events }}",
                    "run_once": True,
                },
            ],
        },
        {**play, "tasks": [WAIT, {"name": "Recover", "ansible.builtin.include_tasks": "recovered.yml"}]},
    ]
    (folder / "site.yml").write_text(json.dumps(plays))
    return str(folder / "site.yml")


def run(folder: Path, azure: Simulator, names: list[str], forks: int, playbook: str) -> tuple[float, float, float, int]:
    """Run the playbook; return CPU seconds of the controller and of the hosts, its memory in MiB and its processes."""
    for step in ("prepared", "recovered"):
        tasks = [{"name": "Step", "ansible.builtin.command": f"touch {folder}/{step}-{{{{ inventory_hostname }}}}"}]
        (folder / (step + ".yml")).write_text(json.dumps(tasks))
    notes, shim = folder / "times", folder / "python"
    notes.touch()
    shim.write_text(SHIM % {"python": sys.executable, "notes": notes})
    shim.chmod(0o755)
    common = {
        "ansible_connection": "local",
        "ansible_python_interpreter": str(shim),
        "maintenance_prepare": str(folder / "prepared.yml"),
        "maintenance_recover": str(folder / "recovered.yml"),
        "maintenance_receipts": f"{folder}/receipts-{{{{ inventory_hostname }}}}",
        "maintenance_notes": f"{folder}/notes-{{{{ inventory_hostname }}}}",
        "maintenance_within": 3 * 3600,
    }
    hosts = {name: {"maintenance_endpoint": azure.endpoints[name]} for name in names}
    inventory = folder / "inventory.json"
    inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": common}}))
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    command = [program, "-i", str(inventory), "--forks", str(forks), playbook]
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_HOME": str(folder),
        "ANSIBLE_LOCAL_TEMP": str(folder),
        "ANSIBLE_PIPELINING": "1",
    }
    before = cpu()
    with (
        (folder / "output").open("w") as output,
        subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        limit = threading.Timer(RUN_TIMEOUT, process.kill)
        limit.start()
        memory, processes = watch(process, str(inventory))
        limit.cancel()
    if process.returncode:
        raise RuntimeError((folder / "output").read_text()[-5000:])
    reap()
    host = host_seconds(notes.read_text())
    return cpu() - before - host, host, memory, processes


def watch(process: subprocess.Popen[bytes], mark: str) -> tuple[float, int]:
    """Return the highest memory in MiB and number of the controller's processes, when the process has ended."""
    memory, processes = 0.0, 0
    while True:
        try:
            process.wait(SAMPLE)
            return memory, processes
        except subprocess.TimeoutExpired:
            found = [size for size in map(size_of, Path("/proc").glob("[0-9]*"), [mark] * 100000) if size]
            memory, processes = max(memory, sum(found) / 1024), max(processes, len(found))


def size_of(process: Path, mark: str) -> int:
    """Return the proportional set size in KiB of a process of ansible-playbook with this inventory, else 0."""
    try:
        words = (process / "cmdline").read_text().split("\0")
        if mark not in words or not any(word.endswith("ansible-playbook") for word in words[:2]):
            return 0
        lines = (process / "smaps_rollup").read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def host_seconds(notes: str) -> float:
    """Return the CPU seconds of children in the output of bash's `times`: every second line is theirs."""
    children = notes.splitlines()[1::2]
    return sum(
        60 * float(minutes) + float(seconds)
        for line in children
        for minutes, seconds in re.findall(r"(\d+)m([\d.]+)s", line)
    )


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def reap() -> None:
    """Wait for the controller's detached processes, which end when they have sent their results."""
    time.sleep(1)
    while os.waitpid(-1, os.WNOHANG)[0]:
        pass


def unix(line: dict[str, Any]) -> float:
    return datetime.fromisoformat(line["time"].replace("Z", "+00:00")).timestamp()


if __name__ == "__main__":
    main()
