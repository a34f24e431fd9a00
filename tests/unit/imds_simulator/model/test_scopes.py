# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Scopes: events, DocumentIncarnation and enabling (docs/reference/scheduled-events.md 2.5, 3.1, 4.1; T74, T75)."""

from __future__ import annotations

import pytest

from imds_simulator.model import operations
from imds_simulator.scenario.groups import scope_key
from imds_simulator.scenario.knobs import change_knobs
from imds_simulator.scenario.plans import Change
from support.simulator.simulations import T0, approve, document_at, make_simulation

FREEZE = {"name": "e", "type": "Freeze", "resources": ["vm1"], "at": 10}
TWO_GROUPS = {
    "web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}},
    "db": {"kind": "availability_set", "vms": {"db1": {}, "db2": {}}},
    "alone": {"kind": "standalone", "vms": {"a": {}, "b": {}}},
}


def record_request(simulation, vm, now):
    simulation.advance_to(T0 + now)
    scope = simulation.world.scope_for(simulation.world.vms[vm])
    enabled = scope.record_request(T0 + now, simulation.world.rules)
    simulation.reschedule()
    return enabled


def incarnation(simulation, vm, now):
    return document_at(simulation, vm, now)["DocumentIncarnation"]


def test_scope_shared_by_a_group_other_groups_do_not_see_its_events():
    simulation = make_simulation(FREEZE, groups=TWO_GROUPS)
    assert document_at(simulation, "vm1", 10) == document_at(simulation, "vm2", 10)
    assert (
        document_at(simulation, "vm1", 10)["Events"] and document_at(simulation, "vm1", 10)["DocumentIncarnation"] == 2
    )
    for other in ("db1", "a", "b"):
        assert document_at(simulation, other, 10) == {"DocumentIncarnation": 1, "Events": []}


def test_scope_of_standalone_vm_has_only_its_events():
    simulation = make_simulation({**FREEZE, "resources": ["a"]}, groups=TWO_GROUPS)
    assert document_at(simulation, "a", 10)["Events"] and not document_at(simulation, "b", 10)["Events"]


def test_scope_of_gpu_vm_has_only_its_events():
    simulation = make_simulation(
        {**FREEZE, "resources": ["gpu_1"]},
        groups={"gpu": {"kind": "scale_set", "gpu_single_fault_domain": True, "vms": {"gpu_0": {}, "gpu_1": {}}}},
    )
    assert document_at(simulation, "gpu_0", 10) == {"DocumentIncarnation": 1, "Events": []}
    assert document_at(simulation, "gpu_1", 10)["DocumentIncarnation"] == 2


ZONES = {
    "pool": {"kind": "scale_set", "vms": {"pool_0": {"zone": 1}, "pool_1": {"zone": "1"}, "pool_2": {"zone": "2"}}}
}


def test_scope_with_zones_is_shared_unless_split():
    event = {**FREEZE, "resources": ["pool_0"]}
    together = make_simulation(event, groups=ZONES)
    assert document_at(together, "pool_2", 10)["Events"]
    split = make_simulation(event, groups=ZONES, knobs={"zone_split": True})
    assert document_at(split, "pool_1", 10)["Events"] and not document_at(split, "pool_2", 10)["Events"]
    assert incarnation(split, "pool_2", 10) == 1


def test_zone_split_set_while_running_splits_the_document():
    simulation = make_simulation({**FREEZE, "resources": ["pool_0"]}, groups=ZONES)
    assert document_at(simulation, "pool_2", 10)["Events"]
    simulation.apply_knobs(change_knobs(simulation.world.knobs, {"zone_split": True}))
    assert not document_at(simulation, "pool_2", 11)["Events"]


def test_scope_key_names_group_or_zone():
    groups = make_simulation(groups=ZONES).world.groups
    zoned = groups["pool"].vms[0]
    assert scope_key(groups["pool"], zoned, zone_split=False, placement_group_split=True) == "pool"
    assert scope_key(groups["pool"], zoned, zone_split=True, placement_group_split=True) == "pool/zone 1"


PLACEMENT_GROUPS = {
    "pool": {
        "kind": "scale_set",
        "vms": {
            "pool_0": {"placement_group": "first"},
            "pool_1": {"placement_group": "first"},
            "pool_2": {"placement_group": "second"},
            "pool_3": {},
        },
    }
}


def test_placement_groups_do_not_share_events():
    simulation = make_simulation({**FREEZE, "resources": ["pool_0"]}, groups=PLACEMENT_GROUPS)
    assert document_at(simulation, "pool_0", 10) == document_at(simulation, "pool_1", 10)
    assert document_at(simulation, "pool_1", 10)["Events"]
    for other in ("pool_2", "pool_3"):
        assert document_at(simulation, other, 10) == {"DocumentIncarnation": 1, "Events": []}


def test_placement_group_member_approves_only_events_of_its_own():
    simulation = make_simulation({**FREEZE, "resources": ["pool_0"]}, groups=PLACEMENT_GROUPS)
    (event,) = document_at(simulation, "pool_1", 10)["Events"]
    found = {
        name: operations.approvable_events(simulation.world, simulation.world.vms[name], [event["EventId"]])
        for name in ("pool_1", "pool_2")
    }
    assert found["pool_1"][event["EventId"]] and not found["pool_2"][event["EventId"]]


def test_event_of_several_placement_groups_is_in_the_document_of_each():
    simulation = make_simulation({**FREEZE, "resources": ["pool_0", "pool_2"]}, groups=PLACEMENT_GROUPS)
    for name in ("pool_0", "pool_2"):
        assert document_at(simulation, name, 10)["Events"][0]["Resources"] == ["pool_0", "pool_2"]
    assert not document_at(simulation, "pool_3", 10)["Events"]


def test_placement_group_split_off_shares_the_document_of_the_scale_set():
    simulation = make_simulation({**FREEZE, "resources": ["pool_0"]}, groups=PLACEMENT_GROUPS)
    assert not document_at(simulation, "pool_3", 10)["Events"]
    simulation.apply_knobs(change_knobs(simulation.world.knobs, {"placement_group_split": False}))
    assert document_at(simulation, "pool_3", 10)["Events"]


def test_incarnation_rises_with_visible_changes_only():
    simulation = make_simulation(FREEZE)
    values = [incarnation(simulation, vm, now) for now in (1, 2, 10, 11, 12) for vm in ("vm1", "vm2")]
    assert values == [1, 1, 1, 1, 2, 2, 2, 2, 2, 2]
    approve(simulation, "e", "vm1", 12)
    assert incarnation(simulation, "vm1", 12.5) == 2
    assert incarnation(simulation, "vm1", 13) == 3


def test_incarnation_follows_the_step_and_the_group():
    assert incarnation(make_simulation(FREEZE, knobs={"incarnation_step": 3}), "vm1", 10) == 4
    groups = {"web": {"kind": "standalone", "incarnation": 279, "vms": {"vm1": {}}}}
    assert incarnation(make_simulation(FREEZE, groups=groups), "vm1", 10) == 280


def test_incarnation_step_changes_incarnation_but_no_event():
    simulation = make_simulation(
        FREEZE, incarnations=[{"group": "web", "at": 20, "add": 3}, {"group": "web", "at": 30, "to": 1}]
    )
    events = [document_at(simulation, "vm1", now)["Events"] for now in (19, 20, 30)]
    assert events[0] == events[1] == events[2]
    assert incarnation(simulation, "vm1", 30) == 1


def test_incarnation_step_before_the_first_request_is_applied():
    simulation = make_simulation(incarnations=[{"group": "web", "at": 5, "to": 77}])
    assert incarnation(simulation, "vm2", 6) == 77


def test_request_first_of_a_scope_enables_it_for_all():
    simulation = make_simulation(groups=TWO_GROUPS)
    assert record_request(simulation, "vm1", 0) and not record_request(simulation, "vm2", 0)
    assert record_request(simulation, "a", 0) and record_request(simulation, "b", 0)


def test_enable_delay_moves_enabled_at():
    simulation = make_simulation(knobs={"enable_delay": "2m"}, speed=60)
    record_request(simulation, "vm1", 5)
    scope = simulation.world.scope_for(simulation.world.vms["vm1"])
    assert scope.enabled_at == T0 + 7
    assert not scope.enabled(T0 + 6.9, simulation.world.rules) and scope.enabled(T0 + 7, simulation.world.rules)


def test_events_delay_hides_events_after_enabling():
    simulation = make_simulation(FREEZE, knobs={"events_delay": "5m"})
    record_request(simulation, "vm1", 20)
    before = document_at(simulation, "vm1", 319)
    after = document_at(simulation, "vm1", 320)
    assert before["Events"] == [] and len(after["Events"]) == 1
    assert after["DocumentIncarnation"] > before["DocumentIncarnation"]


def test_events_delay_changed_later_keeps_the_planned_moment():
    simulation = make_simulation(FREEZE, knobs={"events_delay": "5m"})
    record_request(simulation, "vm1", 20)
    simulation.apply_knobs(change_knobs(simulation.world.knobs, {"events_delay": 0}))
    assert (len(document_at(simulation, "vm1", 319)["Events"]), len(document_at(simulation, "vm1", 320)["Events"])) == (
        0,
        1,
    )


def test_idle_disable_after_a_day_resets_the_incarnation():
    simulation = make_simulation(FREEZE)
    record_request(simulation, "vm1", 0)
    assert incarnation(simulation, "vm1", 20) == 2
    assert not record_request(simulation, "vm1", 86400)
    assert record_request(simulation, "vm1", 86400 + 86401)
    assert incarnation(simulation, "vm1", 86400 + 86401) == 1


@pytest.mark.parametrize("knobs", [{"idle_disable": 0}, {"idle_disable": False}])
def test_idle_disable_off_never_disables(knobs):
    simulation = make_simulation(knobs=knobs)
    record_request(simulation, "vm1", 0)
    assert not record_request(simulation, "vm1", 10 * 86400)


def test_incarnation_reset_off_keeps_the_incarnation():
    simulation = make_simulation({**FREEZE, "started_for": "30d"}, knobs={"incarnation_reset": False})
    record_request(simulation, "vm1", 0)
    document_at(simulation, "vm1", 20)
    record_request(simulation, "vm1", 3 * 86400)
    assert incarnation(simulation, "vm1", 3 * 86400) == 3


def test_simulation_begun_later_counts_from_there():
    simulation = make_simulation(FREEZE, begin=None)
    assert simulation.next_due() == float("inf")
    simulation.begin(T0 + 1000)
    assert [len(document_at(simulation, "vm1", now)["Events"]) for now in (1009, 1010)] == [0, 1]


def test_events_delay_keeps_the_incarnation_until_events_show():
    simulation = make_simulation(FREEZE, {**FREEZE, "name": "later", "at": 100}, knobs={"events_delay": "5m"})
    record_request(simulation, "vm1", 0)
    assert [incarnation(simulation, "vm1", now) for now in (1, 10, 100, 299.9)] == [1, 1, 1, 1]
    assert incarnation(simulation, "vm1", 300) == 2


def test_notice_of_started_event_changed_is_not_visible():
    simulation = make_simulation(FREEZE)
    before = document_at(simulation, "vm1", 920)
    operations.change(simulation, simulation.world.find("e"), Change(0, notice=60.0), T0 + 920)
    assert document_at(simulation, "vm1", 920) == before and before["DocumentIncarnation"] == 3


def test_zone_split_changed_raises_the_incarnation():
    simulation = make_simulation({**FREEZE, "resources": ["pool_0"]}, groups=ZONES)
    before = incarnation(simulation, "pool_0", 20)
    simulation.apply_knobs(change_knobs(simulation.world.knobs, {"zone_split": True}))
    split = incarnation(simulation, "pool_0", 20)
    simulation.apply_knobs(change_knobs(simulation.world.knobs, {"etag": False}))
    assert incarnation(simulation, "pool_0", 20) == split, "other knobs are no change"
    simulation.apply_knobs(change_knobs(simulation.world.knobs, {"zone_split": False}))
    assert incarnation(simulation, "pool_0", 20) > before


def test_incarnation_step_never_goes_below_0():
    simulation = make_simulation(FREEZE, incarnations=[{"group": "web", "at": 1, "add": -500}])
    assert incarnation(simulation, "vm1", 1) == 0
    assert incarnation(simulation, "vm1", 10) == 1
