# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Scopes: events, DocumentIncarnation and enabling (docs/reference/scheduled-events.md 2.5, 3.1, 4.1; T74, T75)."""

from __future__ import annotations

import dataclasses

import pytest

from imds_simulator.scenario.plans import Change
from support.simulator.simulations import PAIR, T0, approve, document_at, make_simulation, placed

FREEZE = {"name": "e", "type": "Freeze", "resources": ["vm1"], "at": 10}
DAY = 86400
TWO_GROUPS = {
    **PAIR,
    "db": {"kind": "availability_set", "vms": {"db1": {}, "db2": {}}},
    "alone": {"kind": "standalone", "vms": {"a": {}, "b": {}}},
}
GPU = {"gpu": {"kind": "scale_set", "gpu_single_fault_domain": True, "vms": {"gpu_0": {}, "gpu_1": {}}}}
ZONES = {"z": {"kind": "scale_set", "vms": {"z_0": {"zone": 1}, "z_1": {"zone": "1"}, "z_2": {"zone": "2"}}}}
PLACEMENT_GROUPS = placed("p", "first", "first", "second", None)


def record_request(simulation, vm, now):
    simulation.advance_to(T0 + now)
    scope = simulation.world.scope_for(simulation.world.vms[vm])
    enabled = simulation.world.record_request(scope, T0 + now)
    simulation.note_enabled(T0 + now)
    return enabled


def incarnation(simulation, vm, now):
    return document_at(simulation, vm, now)["DocumentIncarnation"]


def events_at(simulation, vm, *moments):
    """Return the number of events in the document of ``vm`` at each moment."""
    return [len(document_at(simulation, vm, now)["Events"]) for now in moments]


def set_knob(simulation, name, value):
    simulation.apply_knobs(dataclasses.replace(simulation.world.knobs, **{name: value}))


@pytest.mark.parametrize(
    "groups, knobs, affected, seers",
    [
        (TWO_GROUPS, {}, ["vm1"], {"vm1", "vm2"}),
        (TWO_GROUPS, {}, ["a"], {"a"}),
        (GPU, {}, ["gpu_1"], {"gpu_1"}),
        (ZONES, {}, ["z_0"], {"z_0", "z_1", "z_2"}),
        (ZONES, {"zone_split": True}, ["z_0"], {"z_0", "z_1"}),
        (PLACEMENT_GROUPS, {}, ["p_0"], {"p_0", "p_1"}),
        (PLACEMENT_GROUPS, {}, ["p_0", "p_2"], {"p_0", "p_1", "p_2"}),
        (PLACEMENT_GROUPS, {"placement_group_split": False}, ["p_0"], {"p_0", "p_1", "p_2", "p_3"}),
    ],
)
def test_event_is_seen_and_approved_by_the_members_of_its_scope_alone(groups, knobs, affected, seers):
    simulation = make_simulation({**FREEZE, "resources": affected}, groups=groups, knobs=knobs)
    simulation.advance_to(T0 + 10)
    event_id = simulation.world.find("e").id
    for name, vm in simulation.world.vms.items():
        document = document_at(simulation, name, 10)
        assert [each["Resources"] for each in document["Events"]] == ([affected] if name in seers else [])
        assert document["DocumentIncarnation"] == (2 if name in seers else 1)
        assert bool(simulation.world.approvable(vm, [event_id])[event_id]) == (name in seers)


def test_scope_changes_with_its_knob_and_raises_the_incarnation():
    zones = make_simulation({**FREEZE, "resources": ["z_0"]}, groups=ZONES)
    before = incarnation(zones, "z_0", 20)
    assert events_at(zones, "z_2", 20) == [1]
    set_knob(zones, "zone_split", True)
    split = incarnation(zones, "z_0", 20)
    assert events_at(zones, "z_2", 20) == [0]
    set_knob(zones, "etag", False)
    assert incarnation(zones, "z_0", 20) == split, "other knobs are no change"
    set_knob(zones, "zone_split", False)
    assert incarnation(zones, "z_0", 20) > before
    placed = make_simulation({**FREEZE, "resources": ["p_0"]}, groups=PLACEMENT_GROUPS)
    assert events_at(placed, "p_3", 10) == [0]
    set_knob(placed, "placement_group_split", False)
    assert events_at(placed, "p_3", 10) == [1]


def test_incarnation_rises_with_visible_changes_only():
    simulation = make_simulation(FREEZE)
    values = [incarnation(simulation, vm, now) for now in (1, 2, 10, 11, 12) for vm in ("vm1", "vm2")]
    assert values == [1, 1, 1, 1, 2, 2, 2, 2, 2, 2]
    approve(simulation, "e", "vm1", 12)
    scheduled, started = (document_at(simulation, "vm1", now) for now in (12.5, 13))
    assert [each["DocumentIncarnation"] for each in (scheduled, started)] == [2, 3]
    assert scheduled["Events"][0]["EventId"] == started["Events"][0]["EventId"]
    # NotBefore of a Started event is not visible
    simulation.change(simulation.world.find("e"), Change(0, notice=60.0), T0 + 20)
    assert document_at(simulation, "vm1", 20) == started
    assert [incarnation(simulation, "vm1", now) for now in (612.9, 613)] == [3, 4]


@pytest.mark.parametrize(
    "more, values",
    [
        ({"knobs": {"incarnation_step": 3}}, [1, 4]),
        ({"groups": {"web": {"kind": "standalone", "incarnation": 279, "vms": {"vm1": {}}}}}, [279, 280]),
        ({"incarnations": [{"group": "web", "at": 5, "to": 77}]}, [77, 78]),
        ({"incarnations": [{"group": "web", "at": 5, "add": 3}]}, [4, 5]),
        ({"incarnations": [{"group": "web", "at": 20, "to": 1}]}, [1, 2, 1]),
        ({"incarnations": [{"group": "web", "at": 5, "add": -500}]}, [0, 1]),
    ],
)
def test_incarnation_follows_group_step_and_scenario(more, values):
    simulation = make_simulation(FREEZE, **more)
    documents = [document_at(simulation, "vm1", now) for now in (9, 10, 20)[: len(values)]]
    assert [each["DocumentIncarnation"] for each in documents] == values
    assert documents[-1]["Events"] == documents[1]["Events"]


def test_request_first_of_a_scope_enables_it_for_all():
    simulation = make_simulation(groups=TWO_GROUPS)
    assert [record_request(simulation, vm, 0) for vm in ("vm1", "vm2", "a", "b")] == [True, False, True, True]


def test_events_delay_hides_events_and_keeps_the_incarnation():
    simulation = make_simulation(FREEZE, {**FREEZE, "name": "later", "at": 100}, knobs={"events_delay": "5m"})
    record_request(simulation, "vm1", 0)
    # the moment stays as planned
    set_knob(simulation, "events_delay", 0)
    documents = [document_at(simulation, "vm1", now) for now in (1, 10, 100, 299.9, 300)]
    assert [each["DocumentIncarnation"] for each in documents] == [1, 1, 1, 1, 2]
    assert [len(each["Events"]) for each in documents] == [0, 0, 0, 0, 2]


@pytest.mark.parametrize(
    "knobs, enables, after", [({}, True, 1), ({"incarnation_reset": False}, True, 3), ({"idle_disable": 0}, False, 3)]
)
def test_idle_day_disables_the_service_and_resets_the_incarnation(knobs, enables, after):
    simulation = make_simulation({**FREEZE, "started_for": "30d"}, knobs=knobs)
    record_request(simulation, "vm1", 0)
    assert incarnation(simulation, "vm1", 1000) == 3
    assert not record_request(simulation, "vm1", DAY)
    assert record_request(simulation, "vm1", 2 * DAY + 1) == enables
    assert incarnation(simulation, "vm1", 2 * DAY + 1) == after
