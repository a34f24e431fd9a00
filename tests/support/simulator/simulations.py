# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Simulations for tests, without real time."""

from __future__ import annotations

import json
from typing import Any

from imds_simulator.model.simulation import Simulation
from imds_simulator.protocol.document import Documents
from imds_simulator.scenario.files import parse_with_warnings
from imds_simulator.scenario.plans import Scenario

# a whole second, so that "900 s later" is one too
T0 = 1_800_000_000.0
NEWEST = "2020-07-01"
PAIR: dict[str, Any] = {"web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}}}


def parse(text: str) -> Scenario:
    """Return the scenario in ``text``, whose file name in messages is f.yaml, without its warnings."""
    return parse_with_warnings(text, "f.yaml")[0]


def make_simulation(*events: dict[str, Any], groups: Any = None, **more: Any) -> Simulation:
    """Return a simulation at simulated time 0, with the group ``web`` of PAIR, or with ``groups``."""
    scenario = parse(json.dumps({"groups": groups or PAIR, "events": list(events), **more}))
    simulation = Simulation(scenario)
    simulation.begin(T0)
    return simulation


def placed(name: str, *placement_groups: str | None) -> dict[str, Any]:
    """Return a scale set with an instance in each of these placement groups; None: in none."""
    vms = [{"placement_group": each} if each else {} for each in placement_groups]
    return {name: {"kind": "scale_set", "vms": {f"{name}_{number}": vm for number, vm in enumerate(vms)}}}


def document_at(simulation: Simulation, vm: str, now: float, version: str = NEWEST) -> dict[str, Any]:
    """Return the document that ``vm`` sees ``now`` seconds after T0 on the clock."""
    simulation.advance_to(T0 + now)
    scope = simulation.world.scope_for(simulation.world.vms[vm])
    shown: dict[str, Any] = json.loads(Documents(simulation.world).document(scope, version).reply.body)
    return shown


def statuses(simulation: Simulation, vm: str, now: float) -> list[str]:
    """Return the EventStatus of each event that ``vm`` sees ``now`` seconds after T0."""
    return [event["EventStatus"] for event in document_at(simulation, vm, now)["Events"]]


def approve(simulation: Simulation, event: str, by: str, now: float) -> list[str]:
    """Approve an event by name as a VM and return the kinds of the occurrences."""
    simulation.advance_to(T0 + now)
    return [each.kind for each in simulation.approve([simulation.world.find(event)], by, T0 + now)]
