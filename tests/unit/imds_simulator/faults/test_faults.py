# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Which request gets which fault, by time, count, route and VM (T80)."""

from __future__ import annotations

import pytest

from imds_simulator.faults.kinds import FAULT
from imds_simulator.faults.registry import MAX_OVER, FaultRegistry
from imds_simulator.keys import Problems
from imds_simulator.testing import ControlError
from support.simulator.raw_http import send_request

VMS = ("vm1", "vm2", "vm3")


def make_registry(*faults, base=0.0, speed=1.0):
    registry = FaultRegistry(VMS)
    for fault in faults:
        registry.inject(
            FAULT.read(fault, (), Problems()), base, base, lambda simulated, since: since + simulated / speed
        )
    return registry


def matches(registry, count=1, vm="vm1", route="scheduledevents", method="GET", now=0.0):
    return [int(registry.match(vm, route, method, now) is not None) for _each in range(count)]


@pytest.mark.parametrize(
    "fault, expected",
    [
        ({}, [1, 1, 1, 1]),
        ({"requests": 2}, [0, 1, 0, 0]),
        ({"requests": "2"}, [0, 1, 0, 0]),
        ({"requests": "3-"}, [0, 0, 1, 1]),
        ({"requests": "2-3"}, [0, 1, 1, 0]),
        ({"kind": "slow-first-answer"}, [1, 0, 0, 0]),
    ],
)
def test_requests_window_selects_requests(fault, expected):
    assert matches(make_registry({"kind": "empty", **fault}), 4) == expected


def test_requests_window_counts_the_matching_requests_of_each_vm_in_the_time_window():
    registry = make_registry({"kind": "empty", "method": "POST", "requests": 2, "from": 10})
    assert matches(registry, 5, now=10) + matches(registry, 5, method="POST") == [0] * 10
    assert [matches(registry, vm=vm, method="POST", now=10) for vm in ("vm1", "vm2", "vm1")] == [[0], [0], [1]]


def test_match_requires_route_method_and_vm():
    registry = make_registry(
        {"kind": "empty", "route": "instance", "vm": ["vm1", "vm3"]}, {"kind": "gone", "method": "POST"}
    )
    assert matches(registry, route="instance") == [1]
    assert matches(registry, vm="vm2", route="instance") == matches(registry) == [0]
    assert registry.match("vm2", "scheduledevents", "POST", 0).fault.kind == "gone"
    assert matches(registry, method="POST", route="arm") == matches(registry, method="POST", route="notify") == [0]


@pytest.mark.parametrize(
    "window, active",
    [
        ({"from": 10}, [0, 1, 1, 1]),
        ({"from": 10, "to": 20}, [0, 1, 0, 0]),
        ({"from": "10s", "for": "20s"}, [0, 1, 1, 0]),
        ({"to": 15}, [1, 1, 0, 0]),
    ],
)
def test_time_window_is_active_from_begin_to_end(window, active):
    registry = make_registry({"kind": "empty", **window})
    assert [matches(registry, now=now)[0] for now in (5, 10, 20, 30)] == active


def test_time_window_counts_simulated_seconds_from_the_base():
    registry = make_registry({"kind": "empty", "from": 60, "for": 60}, base=1000.0, speed=60)
    assert [matches(registry, now=now)[0] for now in (1000.9, 1001, 1001.9, 1002)] == [0, 1, 1, 0]


def test_match_returns_the_first_fault_and_counts_for_all():
    registry = make_registry({"kind": "empty", "requests": 1}, {"kind": "gone", "requests": 2})
    assert [registry.match("vm1", "instance", "GET", 0).fault.kind for _time in range(2)] == ["empty", "gone"]


def test_refusal_of_a_listener_changes_at_its_window():
    registry = make_registry({"kind": "refuse", "from": 5, "for": 5, "vm": "vm1"}, {"kind": "refuse", "from": 9})
    assert [registry.refused_vms(now) for now in (4, 5, 8.9, 9, 10)] == [set(), {"vm1"}, {"vm1"}, {*VMS}, {*VMS}]
    assert [registry.next_refusal_change(now) for now in (0, 5, 9, 10)] == [5, 9, 10, float("inf")]


def test_registry_forgets_the_oldest_faults_that_are_over():
    registry = make_registry(
        {"kind": "gone"},
        {"kind": "empty", "requests": 1, "vm": "vm1"},
        {"kind": "list", "requests": 1},
        *[{"kind": "null", "from": 1, "for": 1}] * MAX_OVER,
    )
    assert len(registry.all(1)) == MAX_OVER + 3
    for _time in range(2):
        registry.match("vm1", "instance", "GET", 1)
    # over: the only VM of the second fault had its request, and the time windows of the last ones have passed
    assert [each.number for each in registry.all(2)] == [1, *range(3, MAX_OVER + 4)]
    for vm in VMS:
        registry.match(vm, "instance", "GET", 2)
    assert [each.number for each in registry.all(2)] == [1, *range(4, MAX_OVER + 4)]


def test_fault_is_not_active_after_the_last_of_its_requests(sim):
    sim.post("/faults", {"kind": "empty", "requests": "1-2", "vm": "vm1"})

    def fault():
        (found,) = sim.get("/faults")["faults"]
        return found["active"], found["exhausted"]

    for _number in range(2):
        assert fault() == (True, None)
        assert send_request(sim.endpoints["vm1"]).body == b""
    over = (False, sim.get("/state")["now"])
    sim.advance(60)
    assert send_request(sim.endpoints["vm1"]).body != b""
    assert fault() == over


def test_injected_and_cleared_faults_keep_the_numbers_of_the_lines(sim):
    last = sim.get("/log")["lines"][-1]["number"]
    fault = sim.post("/faults", {"kind": "gone"})["number"]
    sim.delete(f"/faults/{fault}")
    lines = sim.get(f"/log?after={last}")["lines"]
    assert [(each["number"], each["what"]) for each in lines] == [
        (last + 1, "fault-injected"),
        (last + 2, "faults-cleared"),
    ]
    (cleared,) = lines[1]["faults"]
    assert lines[0]["fault"] == cleared["number"] == fault and cleared["kind"] == "gone"
    assert cleared["to"] is not None


def test_fault_refuse_for_a_shared_address_is_rejected(start_simulator):
    sim = start_simulator({"groups": {"web": {"kind": "standalone", "vms": {"vm1": {"source": "127.0.0.1"}}}}})
    with pytest.raises(ControlError, match="use reset"):
        sim.post("/faults", {"kind": "refuse", "vm": "vm1"})
    assert sim.post("/faults", {"kind": "refuse", "for": 1})["active"]
