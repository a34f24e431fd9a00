# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A flood of a compromised minion, and a compromised IMDS; further attacks are in test_engine.py."""

from __future__ import annotations

import threading
import time

import pytest

from support.salt.fleet import Fleet
from support.salt.scripted import ScriptedImds
from support.salt.tree_minion import MINION_DIRS, StepLog
from support.wait import wait_until

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("engine")]

HINTS = 1000
HINT = "salt/beacon/a/azure_events/scheduled"
# MB that the flood and its events may leave on the master; a process for each hint takes 79
GROWTH = 60


def polls_of_the_hostile_minion(fleet: Fleet) -> int:
    return len(fleet.cluster.master.bus.events("salt/job/*/ret/a", fun="azure_events.status"))


def approve_one(fleet: Fleet) -> None:
    """Have an event of vm1 begin, be approved once, and end."""
    event_id = fleet.azure.announce("vm1", kind="Freeze", notice="4h", hold=True)
    fleet.wait_for(event_id, "approved")
    fleet.azure.end(event_id)
    fleet.wait_for(event_id, "recovered")
    assert len(fleet.azure.approvals(event_id)) == 1


def test_flood_of_forged_hints_is_bounded(fleet: Fleet) -> None:
    master = fleet.cluster.master
    # the modules that a master loads at the first hints stay
    fleet.hostile.ask("azure_events.flood", HINTS // 10)
    approve_one(fleet)
    processes, memory, hints = len(master.pids()), master.memory(), len(master.bus.events(HINT))
    polls, began = polls_of_the_hostile_minion(fleet), time.monotonic()
    flood = threading.Thread(target=fleet.hostile.ask, args=("azure_events.flood", HINTS))
    flood.start()
    master.bus.wait_for_more(HINT, hints + 20)
    events, most = 1, 0
    # a busy master may lose some of them
    while flood.is_alive():
        approve_one(fleet)
        events, most = events + 1, max(most, len(master.pids()))
    flood.join(60)
    approve_one(fleet)
    assert fleet.step_logs["vm1"].counts == (events + 1, events + 1)
    assert most <= processes and master.memory() - memory < GROWTH
    assert polls_of_the_hostile_minion(fleet) - polls <= time.monotonic() - began + 2


def test_hostile_texts_of_imds_affect_their_events_only(fleet: Fleet) -> None:
    """An event with an invalid ID is ignored, one with an odd name is prepared and not approved."""
    names = {"N1": "vm\x7f1", "N2": "vm\ufffe", "N3": "{{ 7 * 7 }}", "N4": "x" * 1100}
    with ScriptedImds("odd") as imds:
        odd = fleet.cluster.minion(
            "odd", azure_events={"endpoint": imds.endpoint}, beacons={"azure_events": [{"interval": 1}]}, **MINION_DIRS
        )
        step_log = StepLog(odd)
        fleet.cluster.master.set_pillar(odd=step_log.pillar())
        fleet.cluster.start("odd")
        imds.events = [
            *(imds.event(event_id, "odd") for event_id in ("E\x7f1", "E\ufffe1", "E" * 1100, "good")),
            *(imds.event(event_id, "odd", name) for event_id, name in names.items()),
        ]

        def withheld() -> set[str]:
            return {row["event_id"] for row in fleet.rows() if row["withheld"]}

        wait_until(lambda: imds.approved, "the approval of the good event")
        wait_until(lambda: withheld() >= set(names), lambda: f"the other events, not {withheld()}")
        imds.events = []
        step_log.wait("recover")
        assert (step_log.counts, imds.approved) == ((1, 1), ["good"])
        fleet.cluster.minions.pop("odd").kill()
