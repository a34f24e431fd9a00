# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Log lines about VMs that receive an event for the first time."""

from __future__ import annotations

import pytest

from support.simulator.raw_http import send_request

OLD = "/metadata/scheduledevents?api-version=2017-03-01"


def seen(sim):
    return [(line["vm"], line["event"]) for line in sim.get("/log?what=seen")["lines"]]


@pytest.fixture
def sim(start_simulator):
    scenario = {"groups": {"web": {"vms": {"vm1": {}, "vm2": {}}}}}
    return start_simulator(scenario, args=["--clock", "manual", "--knob", "rate_limit=off"])


def schedule(sim, name, kind="Reboot"):
    sim.post("/events", {"name": name, "type": kind, "resources": ["vm1"], "hold": True})


def test_first_view_is_logged_once_for_each_vm_and_event(sim):
    vm1, vm2 = sim.endpoints.values()
    send_request(vm1)
    schedule(sim, "one")
    assert seen(sim) == []
    for _again in range(3):
        send_request(vm1)
    schedule(sim, "two")
    send_request(vm1)
    send_request(vm2)
    sim.post("/events/one/change", {"description": "changed"})
    send_request(vm1)
    assert seen(sim) == [("vm1", "one"), ("vm1", "two"), ("vm2", "one"), ("vm2", "two")]
    sim.post("/events/one/complete")
    schedule(sim, "three")
    send_request(vm1)
    assert seen(sim)[4:] == [("vm1", "three")]


def test_first_view_needs_a_whole_document_that_lists_the_event(sim):
    vm1 = sim.endpoints["vm1"]
    schedule(sim, "one", "Preempt")
    # the version does not have this type
    assert send_request(vm1, OLD).json["Events"] == []
    for kind in ("unavailable", "cut-json"):
        sim.post("/faults", {"kind": kind})
        send_request(vm1)
        sim.delete("/faults")
    assert seen(sim) == []
    sim.post("/faults", {"kind": "date-skew", "skew": "1h"})
    send_request(vm1)
    assert seen(sim) == [("vm1", "one")]
