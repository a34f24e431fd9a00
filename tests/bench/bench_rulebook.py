# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Measure the event filter of the rulebook by the number of hosts that report: CPU for a report, and memory.

    python tests/bench/bench_rulebook.py [HOSTS ...]

Every host of a group reports each change of an event, as hook runners do: one report is news, the
others are not. The filter is compared with parsing the same JSON. Takes about a minute.
"""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests"))
from table import print_table, ratio

from tools.repository.collection_tree import copy_tree

TREE = REPOSITORY / ".cache" / "trees" / "bench"
SIZES = (50, 200, 1000)
# VMs that share a document, each of which reports each change
GROUP = 20
CHANGES = ("appeared", "started", "gone")
EVENTS_PER_GROUP = 4


def report(change: str, number: int, group: int, reporter: int) -> str:
    """Return a change as a hook runner pushes it."""
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
            "reported_by": "hook_runner",
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


def main() -> None:
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    copy_tree(REPOSITORY, TREE)
    sys.path.append(str(TREE))
    from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.event_filter import (
        EventFilter,
    )

    columns = ("hosts", "reports", "news", "us for a report", "reports in a CPU second", "filter / json.loads", "KiB")
    print_table("The event filter of the rulebook", columns, [measure(size, EventFilter) for size in sizes])


if __name__ == "__main__":
    main()
