# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Measure the event filter of the rulebook by the number of hosts that report, and ansible-rulebook with it.

    python tests/bench/bench_rulebook.py [HOSTS ...]

Every host of a group reports each change of an event, as hook runners do: one report is news, the
others are not. The filter is compared with parsing the same JSON. ansible-rulebook then receives
such reports by HTTPS in the rulebook maintenance_pushed; their VMs have no host, and no playbook
starts. Takes about two minutes.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

import psutil

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests"), str(REPOSITORY)]
from table import print_table, ratio

from support.eda.rulebook import COLLECTION, Rulebook
from support.eda.web_hook import WebHook
from support.simulator_process import reserved_port
from tools.repository.collection_tree import copy_tree

TREE = REPOSITORY / ".cache" / "trees" / "bench"
SIZES = (50, 200, 1000)
# VMs that share a document, each of which reports each change
GROUP = 20
CHANGES = ("appeared", "started", "gone")
EVENTS_PER_GROUP = 4
# reports to ansible-rulebook before and in each measurement
WARM_UP, SENT = 100, 1000
ROUNDS = 3
NO_HOST = {"AZURE_SCHEDULED_EVENTS_HOST_PATTERN": "another", "AZURE_SCHEDULED_EVENTS_HOST_TEMPLATE": "another"}
# seconds without a report, to measure the work without events
IDLE = 20.0


def report(change: str, number: int, group: int, reporter: int) -> str:
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
    return json.dumps(
        {
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
    )


def reports(hosts: int) -> list[str]:
    groups = range(max(1, hosts // GROUP))
    return [
        report(change, number, group, reporter)
        for number in range(EVENTS_PER_GROUP)
        for change in CHANGES
        for group in groups
        for reporter in range(min(hosts, GROUP))
    ]


def measure(hosts: int, make_filter: Any) -> list[str]:
    bodies = reports(hosts)
    began = time.process_time()
    for body in bodies:
        json.loads(body)
    parsing = time.process_time() - began
    event_filter, options = make_filter(), {"host_pattern": "vm([0-9]+)", "host_template": r"node\1"}
    news = 0
    began = time.process_time()
    for body in bodies:
        found = event_filter.apply({"payload": json.loads(body)}, options)
        news += found["scheduled_event"]["is_news"]
    spent = time.process_time() - began
    assert 0 < news < len(bodies)
    tracemalloc.start()
    another = make_filter()
    for body in bodies:
        another.apply({"payload": json.loads(body)}, options)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    count = len(bodies)
    return [
        str(hosts),
        str(count),
        f"{100 * news / count:.1f} %",
        f"{1e6 * spent / count:.0f}",
        f"{count / spent:.0f}",
        ratio(spent, parsing),
        f"{held / 1024:.0f}",
    ]


def measure_engine() -> list[list[str]]:
    """Return the CPU of ansible-rulebook for 1,000 reports and its memory after them, for each round."""
    bodies = [json.loads(body) for body in reports(1000)]
    with tempfile.TemporaryDirectory() as temporary, reserved_port() as port:
        folder = Path(temporary)
        hook = WebHook(folder / "hook", port)
        inventory = folder / "inventory.yml"
        inventory.write_text("all: {hosts: {another: {}}}")
        with Rulebook(folder, inventory, COLLECTION + "maintenance_pushed", hook.variables, NO_HOST) as rulebook:
            process = psutil.Process(rulebook.pid)
            rows = []
            for count, name in (
                (WARM_UP, "start"),
                *((SENT, f"reports, round {number + 1}") for number in range(ROUNDS)),
            ):
                began, before = time.monotonic(), _cpu(process)
                for body in bodies[:count]:
                    assert hook.post(body) == 200
                bodies = bodies[count:]
                spent, took = _cpu(process) - before, time.monotonic() - began
                rows.append(
                    [name, str(count), f"{spent:.2f}", f"{took:.1f}", f"{process.memory_info().rss / 2**20:.0f}"]
                )
            before = _cpu(process)
            time.sleep(IDLE)
            idle = _cpu(process) - before
            rows.append(["no reports", "0", f"{idle:.2f}", f"{IDLE:.1f}", f"{process.memory_info().rss / 2**20:.0f}"])
            assert not rulebook.runs()
            return rows


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    copy_tree(REPOSITORY, TREE)
    sys.path.append(str(TREE))
    from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.event_filter import (
        EventFilter,
    )

    columns = ("hosts", "reports", "news", "us for a report", "reports in a CPU second", "filter / json.loads", "KiB")
    print_table("The event filter of the rulebook", columns, [measure(size, EventFilter) for size in sizes])
    columns = ("ansible-rulebook", "reports", "CPU s", "s", "resident MiB")
    print_table("ansible-rulebook with the rulebook maintenance_pushed", columns, measure_engine())


if __name__ == "__main__":
    main()
