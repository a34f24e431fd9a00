# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Pure simulations for tests: a scenario as data, a clock that is a number, ids that can be predicted."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

from imds_simulator.model import operations
from imds_simulator.model.rules import Rules
from imds_simulator.model.simulation import Simulation
from imds_simulator.model.world import World
from imds_simulator.protocol.document import document
from imds_simulator.scenario.files import parse

# a whole second, so that "900 s later" is one too
T0 = 1_800_000_000.0
NEWEST = "2020-07-01"


def make_simulation(
    *events: dict[str, Any],
    groups: Any = None,
    vms: Any = ("vm1", "vm2"),
    kind: str = "availability_set",
    speed: float = 1.0,
    begin: float | None = T0,
    **more: Any,
) -> Simulation:
    """A simulation at simulated time 0 with one group ``web``, unless ``groups`` says otherwise."""
    data = {
        "groups": groups or {"web": {"kind": kind, "vms": {name: {} for name in vms}}},
        "events": list(events),
        **more,
    }
    scenario = parse(json.dumps(data), "test")
    world = World(scenario.groups, Rules(scenario.knobs, speed), new_id=ids())
    return Simulation(world, scenario.events, scenario.incarnations, begin)


def ids() -> Callable[[], str]:
    count = itertools.count(1)
    return lambda: f"00000000-0000-4000-8000-{next(count):012X}"


def seen(simulation: Simulation, vm: str, now: float, version: str = NEWEST) -> dict[str, Any]:
    """The document that ``vm`` sees ``now`` seconds after T0 on the clock."""
    simulation.advance_to(T0 + now)
    return document(simulation.world, simulation.world.scope_for(simulation.world.vms[vm]), version)


def statuses(simulation: Simulation, vm: str, now: float) -> list[str]:
    return [event["EventStatus"] for event in seen(simulation, vm, now)["Events"]]


def approve(simulation: Simulation, event: str, by: str, now: float) -> list[str]:
    """Approve by name as a VM; what happened."""
    simulation.advance_to(T0 + now)
    return [each.kind for each in operations.approve(simulation, [simulation.world.find(event)], by, T0 + now)]
