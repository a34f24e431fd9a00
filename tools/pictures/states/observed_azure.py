# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Observe the transitions of an event in the simulator, and the changes that the helper reports for them."""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any

from azure_scheduled_events.changes import changes
from azure_scheduled_events.document import parse_document
from imds_simulator.model import operations
from imds_simulator.model.events import ENDED, PLANNED
from imds_simulator.model.rules import Rules
from imds_simulator.model.simulation import Simulation
from imds_simulator.model.world import World
from imds_simulator.protocol.document import document
from imds_simulator.scenario.files import parse
from imds_simulator.scenario.plans import AUTOMATIC_APPROVAL, BY_NOTICE, HARDWARE_FAILURE, Change
from tools.pictures.states.transitions import Transitions

VM, VERSION = "web1", "2020-07-01"
BEGIN, NOTICE, LASTS = 1_800_000_000.0, 900.0, 60.0
# requests to the simulator's model -> the change; those that the model refuses have no effect
REQUESTS: dict[str, Change] = {
    "cancel": Change(0.0, action="cancel"),
    "complete": Change(0.0, action="complete"),
    "approve": Change(0.0, action="approve"),
    "back": Change(0.0, status="Scheduled"),
}
# passing of time in seconds: until the event appears, and past NotBefore or the end
WAITS: dict[str, float] = {"appear": 10.0, "wait": NOTICE + 1.0}
STEPS = 4


@dataclasses.dataclass
class Observed:
    """Transitions by cause in Azure, and the kinds of changes that the helper reports for each of them."""

    transitions: Transitions
    changes: Transitions


def event_states() -> Observed:
    """Return the transitions through all courses of STEPS requests and waits, for each way in which an event starts."""
    found = Observed(Transitions(), Transitions())
    for starts in (BY_NOTICE, AUTOMATIC_APPROVAL, HARDWARE_FAILURE):
        for course in itertools.product((*REQUESTS, *WAITS), repeat=STEPS):
            _follow(starts, course, found)
    return found


def _follow(starts: str, course: tuple[str, ...], found: Observed) -> None:
    """Take one event through a course."""
    simulation = _simulation(starts)
    event = simulation.world.find("e")
    status, listed = event.status, parse_document(json.dumps(_document(simulation)))
    now = BEGIN
    for request in course:
        if event.status == ENDED:
            return
        if request in WAITS:
            now += WAITS[request]
            occurrences = simulation.advance_to(now)
        else:
            try:
                occurrences = operations.change(simulation, event, REQUESTS[request], now)
            except operations.InvalidState:
                continue
            occurrences += simulation.advance_to(now + 1.0)
            now += 1.0
        for each in occurrences:
            after = (
                ENDED if each.kind in ("finished", "cancelled") else each.snapshot.status if each.snapshot else status
            )
            if after != status:
                found.transitions.add(status, after, str(each.detail.get("why", each.kind)))
                status = after
        document_now = parse_document(json.dumps(_document(simulation)))
        for change in changes(listed, document_now):
            before = change.previous.status if change.previous is not None and change.kind != "appeared" else PLANNED
            after = ENDED if change.kind == "gone" else change.event.status
            found.changes.add(before, after, change.kind)
        listed = document_now


def _simulation(starts: str) -> Simulation:
    event: dict[str, Any] = {"name": "e", "at": "5s", "type": "Reboot", "resources": [VM], "starts": starts}
    event |= {"notice": f"{NOTICE:.0f}s", "started_for": f"{LASTS:.0f}s"}
    scenario = parse(json.dumps({"groups": {"g": {"vms": {VM: {}}}}, "events": [event]}), "states")
    world = World(scenario.groups, Rules(scenario.knobs, 1.0), new_id=lambda: "00000000-0000-4000-8000-000000000001")
    return Simulation(world, scenario.events, scenario.incarnations, BEGIN)


def _document(simulation: Simulation) -> dict[str, Any]:
    return document(simulation.world, simulation.world.scope_for(simulation.world.vms[VM]), VERSION)
