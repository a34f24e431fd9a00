# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""CPU of the polls that list 10,000 events of other VMs, beside that of reading their JSON.

python tests/bench/bench_many_events.py
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PRODUCT = ("plugins/module_utils", "roles/hook_runner/files")
sys.path[:0] = [str(CHECKOUT / folder) for folder in ("tests", *PRODUCT)]
from table import print_table, ratio

from azure_scheduled_events.document import parse_document
from support import simulator_process
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import GROUPS, Azure

COUNT = 10_000
POLLS = 6


def body() -> bytes:
    """Return an answer of IMDS with the events."""
    fields = {
        **{"EventType": "Freeze", "EventStatus": "Scheduled", "EventSource": "Platform", "Resources": ["vm2"]},
        **{"ResourceType": "VirtualMachine", "NotBefore": "Fri, 01 Jan 2100 00:00:00 GMT"},
    }
    events = [{**fields, "EventId": f"E-{number}"} for number in range(COUNT)]
    return json.dumps({"DocumentIncarnation": 1, "Events": events}).encode()


def cpu_of(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def polls(answer: bytes) -> list[float]:
    """Return the CPU seconds of each poll, the first one first."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as name,
        simulator_process.start({"groups": GROUPS}, ["--clock", "manual", "--quiet"]) as simulator,
    ):
        harness = RunnerHarness(Path(name), Azure(simulator), log_level="error", resource_name="vm1")
        runner, times = harness.start(), iter(range(POLLS))
        took = [
            cpu_of(lambda: runner.observe(parse_document(answer)._replace(sent_at=float(next(times)))))
            for _poll in range(POLLS)
        ]
        harness.close()
    return took


def main() -> None:
    answer = body()
    reading = min(cpu_of(lambda: json.loads(answer)) for _time in range(5))
    first, *further = polls(answer)
    rows = [
        [name, f"{seconds:.3f}", ratio(seconds, reading)]
        for name, seconds in (("first poll", first), ("further poll", statistics.median(further)))
    ]
    print_table(f"{COUNT} events of other VMs", ["", "CPU, s", "json.loads = 1"], rows)


if __name__ == "__main__":
    main()
