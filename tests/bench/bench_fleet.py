# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Measure the work of Salt's engine by the number of minions: CPU and memory, for virtual hours.

    python tests/bench/bench_fleet.py [MINIONS ...]

The engine's reducer works for fleets in virtual time (tests/labs/fleet_simulation), without faults; the
model of the minions and of Azure is not counted. Takes about two minutes for the default sizes.
"""

from __future__ import annotations

import copy
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
for folder in ("salt/_utils", "roles/hook_runner/files", "plugins/module_utils", "tests", "tests/labs"):
    sys.path.insert(0, str(REPOSITORY / folder))
from table import print_table

from azure_events_engine import reducer
from azure_events_engine.messages import Returned, Tick
from azure_events_engine.state import State
from fleet_simulation import salt_fleet
from fleet_simulation.salt_fleet import SaltFleet, SaltPlan

SIZES = (50, 200, 1000)
# an event affects about three minions, and each minion has two events
EVENTS_PER_MINION = 2 / 3


class Meter:
    """Counts the calls of the reducer and their CPU time."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}

    def reduce(self, state: State, given: Any, now: float) -> tuple[State, list[Any]]:
        began = time.thread_time()
        result = reducer.reduce(state, given, now)
        name = type(given).__name__
        self.seconds[name] = self.seconds.get(name, 0.0) + time.thread_time() - began
        self.calls[name] = self.calls.get(name, 0) + 1
        return result

    def per_call(self, kind: type) -> float:
        """Return the mean CPU time of a call with this input, in microseconds."""
        return 1e6 * self.seconds[kind.__name__] / self.calls[kind.__name__]


def measure(minions: int) -> list[str]:
    meter = Meter()
    plan = SaltPlan(
        1, minions, int(minions * EVENTS_PER_MINION), 0.0, 0.0, 0, 1, changes=0.0, longest_lag=0.0, unknown=0.0, twice=0
    )
    salt_fleet.reduce = meter.reduce  # type: ignore[attr-defined]
    fleet = SaltFleet(plan)
    result = fleet.run()
    salt_fleet.reduce = reducer.reduce  # type: ignore[attr-defined]
    assert not fleet.violations
    spent = sum(meter.seconds.values())
    affected = sum(len(event.vms) for event in fleet.events)
    hours = fleet.now / 3600
    return [
        str(minions),
        str(result.events),
        f"{result.jobs / affected:.1f}",
        f"{1000 * spent / affected:.2f}",
        f"{meter.per_call(Returned):.0f}",
        f"{meter.per_call(Tick):.0f}",
        f"{spent / hours:.1f}",
        f"{memory(minions):.1f}",
    ]


def memory(minions: int) -> float:
    """Return the KiB of the engine's state for each minion, at the end of a run without events."""
    fleet = SaltFleet(SaltPlan(1, minions, 0, 0.0, 0.0, 0, 1, changes=0.0, longest_lag=0.0, unknown=0.0, twice=0))
    fleet.run()
    tracemalloc.start()
    copied = copy.deepcopy(fleet.masters[0].state)
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert copied.minions
    return used / 1024 / minions


def main() -> None:
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    columns = (
        "minions",
        "events",
        "jobs for a VM and event",
        "CPU ms for a VM and event",
        "us for an answer",
        "us for a tick",
        "CPU s in an hour",
        "KiB for a minion",
    )
    print_table("The engine of Salt in virtual time", columns, [measure(size) for size in sizes])


if __name__ == "__main__":
    main()
