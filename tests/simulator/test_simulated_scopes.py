# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Who sees what, DocumentIncarnation, and enabling (docs/reference/scheduled-events.md 2.5, 3.1, 4.1; T74, T75)."""
from __future__ import annotations

import pytest
from imds_simulator import actions
from imds_simulator.groups import scope_key
from imds_simulator.knobs import change_knobs
from imds_simulator.plans import Change
from simulated_world import T0, approve, make_world, seen

FREEZE = {"name": "e", "type": "Freeze", "resources": ["vm1"], "at": 10}
TWO_GROUPS = {"web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}},
              "db": {"kind": "availability_set", "vms": {"db1": {}, "db2": {}}},
              "alone": {"kind": "standalone", "vms": {"a": {}, "b": {}}}}


def asked(world, vm, now):
    world.settle(T0 + now)
    scope = world.scope_for(world.vms[vm])
    enabled = scope.asked(T0 + now, world.knobs, world.speed)
    world.replan()
    return enabled


def incarnation(world, vm, now):
    return seen(world, vm, now)["DocumentIncarnation"]


def test_members_of_a_group_see_one_document_and_others_nothing_of_it():
    world = make_world(FREEZE, groups=TWO_GROUPS)
    assert seen(world, "vm1", 10) == seen(world, "vm2", 10)
    assert seen(world, "vm1", 10)["Events"] and seen(world, "vm1", 10)["DocumentIncarnation"] == 2
    for other in ("db1", "a", "b"):
        assert seen(world, other, 10) == {"DocumentIncarnation": 1, "Events": []}


def test_standalone_vms_are_scopes_of_their_own():
    world = make_world({**FREEZE, "resources": ["a"]}, groups=TWO_GROUPS)
    assert seen(world, "a", 10)["Events"] and not seen(world, "b", 10)["Events"]


def test_gpu_vms_in_one_fault_domain_see_only_their_own_events():
    world = make_world({**FREEZE, "resources": ["gpu_1"]}, groups={
        "gpu": {"kind": "scale_set", "gpu_single_fault_domain": True, "vms": {"gpu_0": {}, "gpu_1": {}}}})
    assert seen(world, "gpu_0", 10) == {"DocumentIncarnation": 1, "Events": []}
    assert seen(world, "gpu_1", 10)["DocumentIncarnation"] == 2


ZONES = {"pool": {"kind": "scale_set", "vms": {"pool_0": {"zone": 1}, "pool_1": {"zone": "1"}, "pool_2": {"zone": "2"}}}}


def test_zones_share_a_document_unless_split():
    event = {**FREEZE, "resources": ["pool_0"]}
    together = make_world(event, groups=ZONES)
    assert seen(together, "pool_2", 10)["Events"]
    split = make_world(event, groups=ZONES, knobs={"zone_split": True})
    assert seen(split, "pool_1", 10)["Events"] and not seen(split, "pool_2", 10)["Events"]
    assert incarnation(split, "pool_2", 10) == 1


def test_zone_split_can_be_turned_on_while_running():
    world = make_world({**FREEZE, "resources": ["pool_0"]}, groups=ZONES)
    assert seen(world, "pool_2", 10)["Events"]
    world.turn(change_knobs(world.knobs, {"zone_split": True}))
    assert not seen(world, "pool_2", 11)["Events"]


def test_scope_keys_name_what_is_shared():
    groups = make_world(groups=ZONES).groups
    zoned = groups["pool"].vms[0]
    assert scope_key(groups["pool"], zoned, False) == "pool"
    assert scope_key(groups["pool"], zoned, True) == "pool/zone 1"


def test_incarnation_rises_by_one_per_visible_change_and_not_by_polling_or_approving():
    world = make_world(FREEZE)
    values = [incarnation(world, vm, now) for now in (1, 2, 10, 11, 12) for vm in ("vm1", "vm2")]
    assert values == [1, 1, 1, 1, 2, 2, 2, 2, 2, 2]
    approve(world, "e", "vm1", 12)
    assert incarnation(world, "vm1", 12.5) == 2
    assert incarnation(world, "vm1", 13) == 3


def test_incarnation_start_and_step_are_knobs_and_a_group_can_start_anywhere():
    assert incarnation(make_world(FREEZE, knobs={"incarnation_start": 0, "incarnation_step": 3}), "vm1", 10) == 3
    groups = {"web": {"kind": "standalone", "incarnation": 279, "vms": {"vm1": {}}}}
    assert incarnation(make_world(FREEZE, groups=groups), "vm1", 10) == 280


def test_incarnation_can_jump_and_go_back_without_any_change():
    world = make_world(FREEZE, incarnations=[{"group": "web", "at": 20, "add": 3}, {"group": "web", "at": 30, "to": 1}])
    events = [seen(world, "vm1", now)["Events"] for now in (19, 20, 30)]
    assert events[0] == events[1] == events[2]
    assert incarnation(world, "vm1", 30) == 1


def test_a_step_before_anybody_asked_is_not_lost():
    world = make_world(incarnations=[{"group": "web", "at": 5, "to": 77}])
    assert incarnation(world, "vm2", 6) == 77


def test_the_first_request_enables_the_whole_scope():
    world = make_world(groups=TWO_GROUPS)
    assert asked(world, "vm1", 0) and not asked(world, "vm2", 0)
    assert asked(world, "a", 0) and asked(world, "b", 0)


def test_enable_delay_says_when_the_first_answer_comes():
    world = make_world(knobs={"enable_delay": "2m"}, speed=60)
    asked(world, "vm1", 5)
    scope = world.scope_for(world.vms["vm1"])
    assert scope.enabled_at == T0 + 7
    assert not scope.enabled(T0 + 6.9, world.knobs, 60) and scope.enabled(T0 + 7, world.knobs, 60)


def test_events_delay_withholds_events_after_enabling():
    world = make_world(FREEZE, knobs={"events_delay": "5m"})
    asked(world, "vm1", 20)
    before = seen(world, "vm1", 319)
    after = seen(world, "vm1", 320)
    assert before["Events"] == [] and len(after["Events"]) == 1
    assert after["DocumentIncarnation"] > before["DocumentIncarnation"]


def test_withheld_events_show_in_time_even_when_the_knob_is_turned_meanwhile():
    world = make_world(FREEZE, knobs={"events_delay": "5m"})
    asked(world, "vm1", 20)
    world.turn(change_knobs(world.knobs, {"events_delay": 0}))
    assert (len(seen(world, "vm1", 319)["Events"]), len(seen(world, "vm1", 320)["Events"])) == (0, 1)


def test_a_day_of_silence_disables_and_resets_the_incarnation():
    world = make_world(FREEZE)
    asked(world, "vm1", 0)
    assert incarnation(world, "vm1", 20) == 2
    assert not asked(world, "vm1", 86400)
    assert asked(world, "vm1", 86400 + 86401)
    assert incarnation(world, "vm1", 86400 + 86401) == 1


@pytest.mark.parametrize("knobs", [{"idle_disable": 0}, {"idle_disable": False}])
def test_idle_disable_can_be_switched_off(knobs):
    world = make_world(knobs=knobs)
    asked(world, "vm1", 0)
    assert not asked(world, "vm1", 10 * 86400)


def test_incarnation_reset_can_be_switched_off():
    world = make_world({**FREEZE, "started_for": "30d"}, knobs={"incarnation_reset": False})
    asked(world, "vm1", 0)
    seen(world, "vm1", 20)
    asked(world, "vm1", 3 * 86400)
    assert incarnation(world, "vm1", 3 * 86400) == 3


def test_a_scope_nobody_enabled_gets_its_maintenance_unannounced_when_the_knob_says_so():
    world = make_world(FREEZE, {**FREEZE, "name": "other", "resources": ["db1"]}, groups=TWO_GROUPS,
                       knobs={"disabled_service": "unannounced"})
    asked(world, "db2", 0)
    world.settle(T0 + 10)
    assert world.find("e").status == "Started" and world.find("other").status == "Scheduled"


def test_simulated_time_can_begin_later():
    world = make_world(FREEZE, begin=None)
    assert world.next_due() == float("inf")
    world.begin(T0 + 1000)
    assert [len(seen(world, "vm1", now)["Events"]) for now in (1009, 1010)] == [0, 1]


def test_what_happens_behind_the_veil_keeps_the_incarnation_until_the_events_show():
    world = make_world(FREEZE, {**FREEZE, "name": "later", "at": 100}, knobs={"events_delay": "5m"})
    asked(world, "vm1", 0)
    assert [incarnation(world, "vm1", now) for now in (1, 10, 100, 299.9)] == [1, 1, 1, 1]
    assert incarnation(world, "vm1", 300) == 2


def test_a_new_notice_of_a_started_event_changes_nothing_that_anybody_sees():
    world = make_world(FREEZE)
    before = seen(world, "vm1", 920)
    actions.change(world, world.find("e"), Change(0, notice=60.0), T0 + 920)
    assert seen(world, "vm1", 920) == before and before["DocumentIncarnation"] == 3
    kept = make_world(FREEZE, knobs={"started_not_before": "kept"})
    kept.settle(T0 + 920)
    actions.change(kept, kept.find("e"), Change(0, notice=60.0), T0 + 920)
    assert incarnation(kept, "vm1", 920) == 4


def test_turning_zone_split_is_a_visible_change():
    world = make_world({**FREEZE, "resources": ["pool_0"]}, groups=ZONES)
    before = incarnation(world, "pool_0", 20)
    world.turn(change_knobs(world.knobs, {"zone_split": True}))
    split = incarnation(world, "pool_0", 20)
    world.turn(change_knobs(world.knobs, {"etag": False}))
    assert incarnation(world, "pool_0", 20) == split, "other knobs are no change"
    world.turn(change_knobs(world.knobs, {"zone_split": False}))
    assert incarnation(world, "pool_0", 20) > before


def test_the_incarnation_never_falls_below_0():
    world = make_world(FREEZE, incarnations=[{"group": "web", "at": 1, "add": -500}])
    assert incarnation(world, "vm1", 1) == 0
    assert incarnation(world, "vm1", 10) == 1
