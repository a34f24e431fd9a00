# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Who sees what, DocumentIncarnation, and enabling (docs/reference/scheduled-events.md 2.5, 3.1, 4.1; T74, T75)."""

from __future__ import annotations

import pytest

from imds_simulator.model import operations
from imds_simulator.scenario.groups import scope_key
from imds_simulator.scenario.knobs import change_knobs
from imds_simulator.scenario.plans import Change
from support.simulator.simulations import T0, approve, make_simulation, seen

FREEZE = {"name": "e", "type": "Freeze", "resources": ["vm1"], "at": 10}
TWO_GROUPS = {
    "web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}},
    "db": {"kind": "availability_set", "vms": {"db1": {}, "db2": {}}},
    "alone": {"kind": "standalone", "vms": {"a": {}, "b": {}}},
}


def asked(simulation, vm, now):
    simulation.advance_to(T0 + now)
    scope = simulation.world.scope_for(simulation.world.vms[vm])
    enabled = scope.record_request(T0 + now, simulation.world.rules)
    simulation.reschedule()
    return enabled


def incarnation(simulation, vm, now):
    return seen(simulation, vm, now)["DocumentIncarnation"]


def test_members_of_a_group_see_one_document_and_others_nothing_of_it():
    simulation = make_simulation(FREEZE, groups=TWO_GROUPS)
    assert seen(simulation, "vm1", 10) == seen(simulation, "vm2", 10)
    assert seen(simulation, "vm1", 10)["Events"] and seen(simulation, "vm1", 10)["DocumentIncarnation"] == 2
    for other in ("db1", "a", "b"):
        assert seen(simulation, other, 10) == {"DocumentIncarnation": 1, "Events": []}


def test_standalone_vms_are_scopes_of_their_own():
    simulation = make_simulation({**FREEZE, "resources": ["a"]}, groups=TWO_GROUPS)
    assert seen(simulation, "a", 10)["Events"] and not seen(simulation, "b", 10)["Events"]


def test_gpu_vms_in_one_fault_domain_see_only_their_own_events():
    simulation = make_simulation(
        {**FREEZE, "resources": ["gpu_1"]},
        groups={"gpu": {"kind": "scale_set", "gpu_single_fault_domain": True, "vms": {"gpu_0": {}, "gpu_1": {}}}},
    )
    assert seen(simulation, "gpu_0", 10) == {"DocumentIncarnation": 1, "Events": []}
    assert seen(simulation, "gpu_1", 10)["DocumentIncarnation"] == 2


ZONES = {
    "pool": {"kind": "scale_set", "vms": {"pool_0": {"zone": 1}, "pool_1": {"zone": "1"}, "pool_2": {"zone": "2"}}}
}


def test_zones_share_a_document_unless_split():
    event = {**FREEZE, "resources": ["pool_0"]}
    together = make_simulation(event, groups=ZONES)
    assert seen(together, "pool_2", 10)["Events"]
    split = make_simulation(event, groups=ZONES, knobs={"zone_split": True})
    assert seen(split, "pool_1", 10)["Events"] and not seen(split, "pool_2", 10)["Events"]
    assert incarnation(split, "pool_2", 10) == 1


def test_zone_split_can_be_turned_on_while_running():
    simulation = make_simulation({**FREEZE, "resources": ["pool_0"]}, groups=ZONES)
    assert seen(simulation, "pool_2", 10)["Events"]
    simulation.apply_knobs(change_knobs(simulation.world.knobs, {"zone_split": True}))
    assert not seen(simulation, "pool_2", 11)["Events"]


def test_scope_keys_name_what_is_shared():
    groups = make_simulation(groups=ZONES).world.groups
    zoned = groups["pool"].vms[0]
    assert scope_key(groups["pool"], zoned, False) == "pool"
    assert scope_key(groups["pool"], zoned, True) == "pool/zone 1"


def test_incarnation_rises_by_one_per_visible_change_and_not_by_polling_or_approving():
    simulation = make_simulation(FREEZE)
    values = [incarnation(simulation, vm, now) for now in (1, 2, 10, 11, 12) for vm in ("vm1", "vm2")]
    assert values == [1, 1, 1, 1, 2, 2, 2, 2, 2, 2]
    approve(simulation, "e", "vm1", 12)
    assert incarnation(simulation, "vm1", 12.5) == 2
    assert incarnation(simulation, "vm1", 13) == 3


def test_incarnation_start_and_step_are_knobs_and_a_group_can_start_anywhere():
    assert incarnation(make_simulation(FREEZE, knobs={"incarnation_start": 0, "incarnation_step": 3}), "vm1", 10) == 3
    groups = {"web": {"kind": "standalone", "incarnation": 279, "vms": {"vm1": {}}}}
    assert incarnation(make_simulation(FREEZE, groups=groups), "vm1", 10) == 280


def test_incarnation_can_jump_and_go_back_without_any_change():
    simulation = make_simulation(
        FREEZE, incarnations=[{"group": "web", "at": 20, "add": 3}, {"group": "web", "at": 30, "to": 1}]
    )
    events = [seen(simulation, "vm1", now)["Events"] for now in (19, 20, 30)]
    assert events[0] == events[1] == events[2]
    assert incarnation(simulation, "vm1", 30) == 1


def test_a_step_before_anybody_asked_is_not_lost():
    simulation = make_simulation(incarnations=[{"group": "web", "at": 5, "to": 77}])
    assert incarnation(simulation, "vm2", 6) == 77


def test_the_first_request_enables_the_whole_scope():
    simulation = make_simulation(groups=TWO_GROUPS)
    assert asked(simulation, "vm1", 0) and not asked(simulation, "vm2", 0)
    assert asked(simulation, "a", 0) and asked(simulation, "b", 0)


def test_enable_delay_says_when_the_first_answer_comes():
    simulation = make_simulation(knobs={"enable_delay": "2m"}, speed=60)
    asked(simulation, "vm1", 5)
    scope = simulation.world.scope_for(simulation.world.vms["vm1"])
    assert scope.enabled_at == T0 + 7
    assert not scope.enabled(T0 + 6.9, simulation.world.rules) and scope.enabled(T0 + 7, simulation.world.rules)


def test_events_delay_withholds_events_after_enabling():
    simulation = make_simulation(FREEZE, knobs={"events_delay": "5m"})
    asked(simulation, "vm1", 20)
    before = seen(simulation, "vm1", 319)
    after = seen(simulation, "vm1", 320)
    assert before["Events"] == [] and len(after["Events"]) == 1
    assert after["DocumentIncarnation"] > before["DocumentIncarnation"]


def test_withheld_events_show_in_time_even_when_the_knob_is_turned_meanwhile():
    simulation = make_simulation(FREEZE, knobs={"events_delay": "5m"})
    asked(simulation, "vm1", 20)
    simulation.apply_knobs(change_knobs(simulation.world.knobs, {"events_delay": 0}))
    assert (len(seen(simulation, "vm1", 319)["Events"]), len(seen(simulation, "vm1", 320)["Events"])) == (0, 1)


def test_a_day_of_silence_disables_and_resets_the_incarnation():
    simulation = make_simulation(FREEZE)
    asked(simulation, "vm1", 0)
    assert incarnation(simulation, "vm1", 20) == 2
    assert not asked(simulation, "vm1", 86400)
    assert asked(simulation, "vm1", 86400 + 86401)
    assert incarnation(simulation, "vm1", 86400 + 86401) == 1


@pytest.mark.parametrize("knobs", [{"idle_disable": 0}, {"idle_disable": False}])
def test_idle_disable_can_be_switched_off(knobs):
    simulation = make_simulation(knobs=knobs)
    asked(simulation, "vm1", 0)
    assert not asked(simulation, "vm1", 10 * 86400)


def test_incarnation_reset_can_be_switched_off():
    simulation = make_simulation({**FREEZE, "started_for": "30d"}, knobs={"incarnation_reset": False})
    asked(simulation, "vm1", 0)
    seen(simulation, "vm1", 20)
    asked(simulation, "vm1", 3 * 86400)
    assert incarnation(simulation, "vm1", 3 * 86400) == 3


def test_a_scope_nobody_enabled_gets_its_maintenance_unannounced_when_the_knob_says_so():
    simulation = make_simulation(
        FREEZE,
        {**FREEZE, "name": "other", "resources": ["db1"]},
        groups=TWO_GROUPS,
        knobs={"disabled_service": "unannounced"},
    )
    asked(simulation, "db2", 0)
    simulation.advance_to(T0 + 10)
    assert simulation.world.find("e").status == "Started" and simulation.world.find("other").status == "Scheduled"


def test_simulated_time_can_begin_later():
    simulation = make_simulation(FREEZE, begin=None)
    assert simulation.next_due() == float("inf")
    simulation.begin(T0 + 1000)
    assert [len(seen(simulation, "vm1", now)["Events"]) for now in (1009, 1010)] == [0, 1]


def test_what_happens_behind_the_veil_keeps_the_incarnation_until_the_events_show():
    simulation = make_simulation(FREEZE, {**FREEZE, "name": "later", "at": 100}, knobs={"events_delay": "5m"})
    asked(simulation, "vm1", 0)
    assert [incarnation(simulation, "vm1", now) for now in (1, 10, 100, 299.9)] == [1, 1, 1, 1]
    assert incarnation(simulation, "vm1", 300) == 2


def test_a_new_notice_of_a_started_event_changes_nothing_that_anybody_sees():
    simulation = make_simulation(FREEZE)
    before = seen(simulation, "vm1", 920)
    operations.change(simulation, simulation.world.find("e"), Change(0, notice=60.0), T0 + 920)
    assert seen(simulation, "vm1", 920) == before and before["DocumentIncarnation"] == 3
    kept = make_simulation(FREEZE, knobs={"started_not_before": "kept"})
    kept.advance_to(T0 + 920)
    operations.change(kept, kept.world.find("e"), Change(0, notice=60.0), T0 + 920)
    assert incarnation(kept, "vm1", 920) == 4


def test_turning_zone_split_is_a_visible_change():
    simulation = make_simulation({**FREEZE, "resources": ["pool_0"]}, groups=ZONES)
    before = incarnation(simulation, "pool_0", 20)
    simulation.apply_knobs(change_knobs(simulation.world.knobs, {"zone_split": True}))
    split = incarnation(simulation, "pool_0", 20)
    simulation.apply_knobs(change_knobs(simulation.world.knobs, {"etag": False}))
    assert incarnation(simulation, "pool_0", 20) == split, "other knobs are no change"
    simulation.apply_knobs(change_knobs(simulation.world.knobs, {"zone_split": False}))
    assert incarnation(simulation, "pool_0", 20) > before


def test_the_incarnation_never_falls_below_0():
    simulation = make_simulation(FREEZE, incarnations=[{"group": "web", "at": 1, "add": -500}])
    assert incarnation(simulation, "vm1", 1) == 0
    assert incarnation(simulation, "vm1", 10) == 1
