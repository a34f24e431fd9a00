# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Measure ansible-rulebook with the rulebook maintenance_pushed: CPU for reports that come by HTTPS, and memory.

    python tests/bench/bench_rulebook.py

Every host of a group reports each change of an event, as hook runners do: one report is news, the
others are not. Their VMs have no host, and no playbook starts. Takes about two minutes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests"), str(REPOSITORY)]
from table import print_table

from support.eda.rulebook import COLLECTION, Rulebook
from support.eda.web_hook import WebHook
from support.simulator_process import reserved_port

# VMs that share a document, each of which reports each change
GROUPS, GROUP = 50, 20
CHANGES = ("appeared", "started", "gone")
# reports to ansible-rulebook before and in each measurement
WARM_UP, SENT = 100, 1000
ROUNDS = 3
NO_HOST = {"AZURE_SCHEDULED_EVENTS_HOST_PATTERN": "another", "AZURE_SCHEDULED_EVENTS_HOST_TEMPLATE": "another"}
# seconds without a report, to measure the work without events
IDLE = 20.0


def report(number: int, change: str, group: int, reporter: int) -> dict[str, Any]:
    """Return a change as the ready hook notify sends it."""
    event = {
        "event_id": f"C7061BAC-{group:04d}-{number:04d}",
        "event_type": "Reboot",
        "status": "Started" if change == "started" else "Scheduled",
        "resources": [f"vm{group * GROUP + index:04d}" for index in range(3)],
        "resource_type": "VirtualMachine",
        "not_before": "2026-11-23T01:15:00Z",
        "description": "",
        "source": "Platform",
        "duration_seconds": -1,
    }
    name = f"vm{group * GROUP + reporter:04d}"
    return {
        "schema": "azure_imds.scheduled_events/change/1",
        "id": f"{name}-{number}-{change}",
        "change": change,
        "outcome": None,
        "event": event,
        "observed_at": "2026-11-23T01:02:03.456Z",
        "reporter": name,
        "reported_by": "notify",
        "resource_id": None,
    }


def main() -> None:
    bodies = (
        report(number, change, group, reporter)
        for number in range(2)
        for change in CHANGES
        for group in range(GROUPS)
        for reporter in range(GROUP)
    )
    measured = [("start", WARM_UP), *((f"reports, round {number + 1}", SENT) for number in range(ROUNDS))]
    rows = []
    with tempfile.TemporaryDirectory() as temporary, reserved_port() as port:
        folder = Path(temporary)
        hook = WebHook(folder / "hook", port)
        inventory = folder / "inventory.yml"
        inventory.write_text("all: {hosts: {another: {}}}")
        with Rulebook(folder, inventory, COLLECTION + "maintenance_pushed", hook.variables, NO_HOST) as rulebook:
            process = psutil.Process(rulebook.pid)
            for name, count in [*measured, ("no reports", 0)]:
                began, before = time.monotonic(), cpu(process)
                for _report in range(count):
                    assert hook.post(next(bodies)) == 200
                time.sleep(0 if count else IDLE)
                spent, took = cpu(process) - before, time.monotonic() - began
                memory = process.memory_info().rss / 2**20
                rows.append([name, str(count), f"{spent:.2f}", f"{took:.1f}", f"{memory:.0f}"])
            assert not rulebook.runs()
    columns = ("ansible-rulebook", "reports", "CPU s", "s", "resident MiB")
    print_table("ansible-rulebook with the rulebook maintenance_pushed", columns, rows)


def cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    main()
