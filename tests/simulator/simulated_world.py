# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Pure worlds for tests: a scenario as data, a clock that is a number, ids that can be predicted."""
from __future__ import annotations

import itertools
import json
from typing import Any, Callable

from imds_simulator.model.world import World
from imds_simulator.protocol.document import document
from imds_simulator.scenario.files import parse

# a whole second, so that "900 s later" is one too
T0 = 1_800_000_000.0
NEWEST = "2020-07-01"


def make_world(*events: dict[str, Any], groups: Any = None, vms: Any = ("vm1", "vm2"), kind: str = "availability_set",
               speed: float = 1.0, begin: float | None = T0, **more: Any) -> World:
    """A world at simulated time 0 with one group ``web``, unless ``groups`` says otherwise."""
    data = {"groups": groups or {"web": {"kind": kind, "vms": {name: {} for name in vms}}}, "events": list(events), **more}
    scenario = parse(json.dumps(data), "test")
    return World(scenario.groups, scenario.events, scenario.knobs, speed=speed, epoch=begin,
                 incarnations=scenario.incarnations, new_id=ids())


def ids() -> Callable[[], str]:
    count = itertools.count(1)
    return lambda: "00000000-0000-4000-8000-%012X" % next(count)


def seen(world: World, vm: str, now: float, version: str = NEWEST) -> dict[str, Any]:
    """The document that ``vm`` sees ``now`` seconds after T0 on the clock."""
    world.settle(T0 + now)
    return document(world, world.scope_for(world.vms[vm]), version)


def statuses(world: World, vm: str, now: float) -> list[str]:
    return [event["EventStatus"] for event in seen(world, vm, now)["Events"]]


def approve(world: World, event: str, by: str, now: float) -> list[str]:
    """Approve by name as a VM; what happened."""
    from imds_simulator import actions
    world.settle(T0 + now)
    return [line.what for line in actions.approve(world, [world.find(event)], by, T0 + now)]
