# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The transitions of an event, on a clock without real time (docs/reference/scheduled-events.md 2.1 to 2.4)."""

from __future__ import annotations

import math

import pytest

from imds_simulator.model import operations
from imds_simulator.model.timing import start_moment
from imds_simulator.scenario.plans import Change
from support.simulator.simulations import T0, approve, document_at, make_simulation, statuses

FREEZE = {"name": "e", "type": "Freeze", "resources": ["vm1"], "at": 10}


def event(simulation, name="e"):
    return simulation.world.find(name)


def test_event_passes_through_all_states_with_one_id():
    simulation = make_simulation(FREEZE)
    documents = [document_at(simulation, "vm1", now) for now in (9.9, 10, 909.9, 910, 1509.9, 1510)]
    event_ids = {each["EventId"] for document in documents for each in document["Events"]}
    assert [[each["EventStatus"] for each in document["Events"]] for document in documents] == [
        [],
        ["Scheduled"],
        ["Scheduled"],
        ["Started"],
        ["Started"],
        [],
    ]
    assert [document["DocumentIncarnation"] for document in documents] == [1, 2, 2, 3, 3, 4]
    assert len(event_ids) == 1


@pytest.mark.parametrize(
    "kind, notice", [("Freeze", 900), ("Reboot", 900), ("Redeploy", 600), ("Preempt", 30), ("Terminate", 300)]
)
def test_notice_defaults_to_the_value_of_the_type(kind, notice):
    simulation = make_simulation({**FREEZE, "type": kind})
    assert statuses(simulation, "vm1", 10 + notice - 0.1) == ["Scheduled"]
    assert statuses(simulation, "vm1", 10 + notice) == ["Started"]


def test_advice_ends_at_not_before_without_a_start_although_it_is_approved():
    simulation = make_simulation({**FREEZE, "type": "SpotRebalanceRecommendation"})
    simulation.advance_to(T0 + 10)
    assert approve(simulation, "e", "vm1", 20) == ["approved"]
    (oldest,) = document_at(simulation, "vm1", 10 + 3600 - 0.1, "2017-03-01")["Events"]
    assert oldest["EventStatus"] == "Scheduled"
    assert statuses(simulation, "vm1", 10 + 3600) == [] and event(simulation).started_at is None


def test_notice_and_started_duration_follow_knobs_and_event():
    knobs = {"notice_overrides": {"Freeze": "2m"}, "started_duration": {"Freeze": "1m"}}
    simulation = make_simulation(FREEZE, {**FREEZE, "name": "own", "notice": "3m", "started_for": "5s"}, knobs=knobs)
    simulation.advance_to(T0 + 130)
    assert event(simulation).status == "Started" and event(simulation, "own").status == "Scheduled"
    simulation.advance_to(T0 + 190)
    assert event(simulation).status == "Gone" and event(simulation, "own").status == "Started"
    simulation.advance_to(T0 + 195)
    assert event(simulation, "own").status == "Gone"


def test_approval_starts_event_after_start_delay():
    simulation = make_simulation(FREEZE)
    before = document_at(simulation, "vm1", 20)
    assert approve(simulation, "e", "vm1", 20) == ["approved"]
    assert document_at(simulation, "vm1", 20.9) == before
    assert statuses(simulation, "vm1", 21) == ["Started"]


def test_approval_repeated_changes_nothing():
    simulation = make_simulation({**FREEZE, "hold": True})
    approve(simulation, "e", "vm1", 20)
    before = document_at(simulation, "vm1", 20)
    assert approve(simulation, "e", "vm1", 21) == []
    assert approve(simulation, "e", "vm2", 21) == ["approved"]
    assert document_at(simulation, "vm1", 30) == before
    assert event(simulation).approved_at == T0 + 20


def test_approvals_at_the_same_moment_cause_one_start():
    simulation = make_simulation(FREEZE)
    approve(simulation, "e", "vm1", 20)
    approve(simulation, "e", "vm2", 20)
    assert document_at(simulation, "vm2", 30)["DocumentIncarnation"] == 3


def test_approval_after_the_start_changes_nothing():
    simulation = make_simulation(FREEZE)
    assert approve(simulation, "e", "vm1", 911) == []
    assert statuses(simulation, "vm1", 912) == ["Started"]


def test_hold_delays_approved_event_until_release():
    simulation = make_simulation({**FREEZE, "hold": True})
    approve(simulation, "e", "vm1", 20)
    assert statuses(simulation, "vm1", 500) == ["Scheduled"]
    operations.change(simulation, event(simulation), Change(0, action="release"), T0 + 500)
    assert statuses(simulation, "vm1", 500.9) == ["Scheduled"]
    operations.change(simulation, event(simulation), Change(0, action="release"), T0 + 500.9)
    assert statuses(simulation, "vm1", 501) == ["Started"], "a second release does not delay the start"


def test_hold_ends_after_its_duration_or_at_not_before():
    simulation = make_simulation({**FREEZE, "hold": "4m"}, {**FREEZE, "name": "long", "hold": True})
    approve(simulation, "e", "vm1", 20)
    approve(simulation, "long", "vm1", 20)
    simulation.advance_to(T0 + 250.9)
    assert event(simulation).status == "Scheduled"
    simulation.advance_to(T0 + 251)
    assert event(simulation).status == "Started" and event(simulation, "long").status == "Scheduled"
    simulation.advance_to(T0 + 910)
    assert event(simulation, "long").status == "Started"


def test_release_without_approval_starts_nothing():
    simulation = make_simulation({**FREEZE, "hold": True})
    simulation.advance_to(T0 + 20)
    operations.change(simulation, event(simulation), Change(0, action="release"), T0 + 20)
    assert statuses(simulation, "vm1", 300) == ["Scheduled"]


def test_approve_after_approves_as_control_plane():
    simulation = make_simulation({**FREEZE, "approve_after": "1m"})
    assert statuses(simulation, "vm1", 70) == ["Scheduled"]
    assert statuses(simulation, "vm1", 71) == ["Started"]
    assert list(event(simulation).approvals) == ["control-plane"]


def test_cancel_after_removes_scheduled_events():
    simulation = make_simulation(
        {**FREEZE, "cancel_after": "8m"}, {**FREEZE, "name": "approved", "hold": True, "cancel_after": "8m"}
    )
    approve(simulation, "approved", "vm1", 20)
    assert statuses(simulation, "vm1", 489) == ["Scheduled", "Scheduled"]
    assert statuses(simulation, "vm1", 490) == []
    assert (
        event(simulation).cancelled and event(simulation, "approved").cancelled and event(simulation).started_at is None
    )


def test_started_event_rejects_cancel_and_accepts_complete():
    simulation = make_simulation(FREEZE)
    simulation.advance_to(T0 + 920)
    with pytest.raises(operations.InvalidState, match="Started"):
        operations.change(simulation, event(simulation), Change(0, action="cancel"), T0 + 920)
    operations.change(simulation, event(simulation), Change(0, action="complete"), T0 + 920)
    assert statuses(simulation, "vm1", 920) == []
    with pytest.raises(operations.InvalidState, match="it has ended"):
        operations.change(simulation, event(simulation), Change(0, action="complete"), T0 + 921)


@pytest.mark.parametrize("knobs, kind", [({}, "Reboot"), ({"hardware_failure_type": "Redeploy"}, "Redeploy")])
def test_hardware_failure_is_started_when_it_appears(knobs, kind):
    simulation = make_simulation({"resources": ["vm1"], "starts": "hardware_failure", "at": 10}, knobs=knobs)
    assert statuses(simulation, "vm1", 9) == []
    document = document_at(simulation, "vm1", 10)
    assert document["DocumentIncarnation"] == 2
    shown = document["Events"][0]
    assert (shown["EventStatus"], shown["EventType"], shown["NotBefore"], shown["EventSource"]) == (
        "Started",
        kind,
        "",
        "Platform",
    )


def test_automatic_approval_is_started_when_it_appears():
    simulation = make_simulation({**FREEZE, "type": "Reboot", "starts": "automatic_approval"})
    shown = document_at(simulation, "vm1", 10)["Events"][0]
    assert (shown["EventStatus"], shown["EventSource"]) == ("Started", "User")


def test_impact_of_reboot_that_is_a_freeze_has_type_freeze():
    simulation = make_simulation(
        {**FREEZE, "type": "Reboot", "actual": "Freeze", "impact_for": 5, "starts": "automatic_approval"}
    )
    lines = [
        (line.kind, line.detail["type"], line.moment - T0)
        for line in simulation.advance_to(T0 + 1000)
        if "impact" in line.kind
    ]
    assert lines == [("impact-start", "Freeze", 10), ("impact-end", "Freeze", 15)]


def test_impact_lasts_as_long_as_duration_says():
    direct = {"starts": "automatic_approval", "resources": ["vm1"], "started_for": "10m"}
    simulation = make_simulation(
        {**direct, "name": "freeze", "type": "Freeze", "duration": 7},
        {**direct, "name": "boot", "type": "Reboot"},
        {**direct, "name": "net", "type": "Freeze", "duration": 0},
    )
    ends = {line.event: line.moment - T0 for line in simulation.advance_to(T0 + 700) if line.kind == "impact-end"}
    assert ends == {"freeze": 7, "boot": 600}


def test_impact_change_of_started_event_is_not_visible():
    simulation = make_simulation(
        {
            **FREEZE,
            "starts": "automatic_approval",
            "changes": [{"after_start": "4m", "action": "impact", "impact_for": "2s"}],
        }
    )
    before = document_at(simulation, "vm1", 200)
    lines = [(line.kind, line.moment - T0) for line in simulation.advance_to(T0 + 260)]
    assert lines == [("impact-start", 250), ("impact-end", 252)]
    assert document_at(simulation, "vm1", 260) == before


def test_notice_changed_moves_not_before():
    simulation = make_simulation(
        {**FREEZE, "changes": [{"after": "2m", "notice": "45m"}, {"after": "10m", "notice": "1m"}]}
    )
    deadlines = []
    for now in (10, 130, 610):
        simulation.advance_to(T0 + now)
        deadlines.append(event(simulation).not_before - T0)
    assert deadlines == [910, 130 + 2700, 610 + 60]
    assert statuses(simulation, "vm1", 669) == ["Scheduled"]
    document = document_at(simulation, "vm1", 670)
    assert document["Events"][0]["EventStatus"] == "Started" and document["DocumentIncarnation"] == 5


def test_change_of_members_keeps_the_id():
    simulation = make_simulation(
        {
            **FREEZE,
            "changes": [
                {"after": 60, "type": "Redeploy", "description": "worse", "duration": -1, "source": "User"},
                {"after": 120, "resources": ["vm1", "vm2"]},
                {"after": 180, "resources": ["vm2"]},
            ],
        }
    )
    first = document_at(simulation, "vm1", 10)["Events"][0]
    worse = document_at(simulation, "vm1", 70)["Events"][0]
    assert (worse["EventType"], worse["Description"], worse["EventSource"]) == ("Redeploy", "worse", "User")
    assert [document_at(simulation, "vm1", now)["Events"][0]["Resources"] for now in (70, 130, 190)] == [
        ["vm1"],
        ["vm1", "vm2"],
        ["vm2"],
    ]
    assert first["EventId"] == worse["EventId"]


def test_change_of_started_event_to_scheduled_starts_it_again_later():
    simulation = make_simulation(
        {**FREEZE, "notice": 60, "changes": [{"after_start": 60, "status": "Scheduled", "notice": "2m"}]}
    )
    assert [statuses(simulation, "vm1", now) for now in (69, 70, 129, 130, 249, 250)] == [
        ["Scheduled"],
        ["Started"],
        ["Started"],
        ["Scheduled"],
        ["Scheduled"],
        ["Started"],
    ]
    assert statuses(simulation, "vm1", 250 + 600) == []


def test_event_with_a_used_id_appears_again():
    guid = "5eed0000-0000-4000-8000-0000000000aa"
    simulation = make_simulation(
        {**FREEZE, "id": guid, "starts": "automatic_approval", "started_for": 60},
        {**FREEZE, "name": "again", "id": guid, "after": "e", "at": 30},
    )
    assert [[each["EventId"] for each in document_at(simulation, "vm1", now)["Events"]] for now in (10, 80, 100)] == [
        [guid.upper()],
        [],
        [guid.upper()],
    ]


def test_after_delays_event_until_the_other_has_ended():
    simulation = make_simulation(
        {**FREEZE, "started_for": 60}, {**FREEZE, "name": "next", "after": "e", "at": 5, "resources": ["vm2"]}
    )
    approve(simulation, "e", "vm1", 20)
    assert document_at(simulation, "vm1", 81)["Events"] == []
    assert document_at(simulation, "vm1", 86)["Events"][0]["Resources"] == ["vm2"]


def test_after_without_gap_shows_end_and_beginning_together():
    simulation = make_simulation(
        {**FREEZE, "starts": "automatic_approval", "started_for": 60},
        {**FREEZE, "name": "next", "after": "e", "at": 0, "resources": ["vm2"]},
    )
    first, second = document_at(simulation, "vm1", 69), document_at(simulation, "vm1", 70)
    assert first["Events"][0]["Resources"] == ["vm1"] and second["Events"][0]["Resources"] == ["vm2"]
    assert second["DocumentIncarnation"] == first["DocumentIncarnation"] + 2


def terminations(**more):
    return [
        {"name": f"t{number}", "type": "Terminate", "resources": [f"pool_{number}"], "at": 10, "batch": "b", **more}
        for number in (1, 2)
    ]


def test_batch_starts_when_all_events_are_approved():
    simulation = make_simulation(
        *terminations(), groups={"pool": {"kind": "scale_set", "vms": {"pool_1": {}, "pool_2": {}}}}
    )
    approve(simulation, "t2", "pool_2", 20)
    simulation.advance_to(T0 + 100)
    assert event(simulation, "t2").status == "Scheduled"
    approve(simulation, "t1", "pool_1", 100)
    simulation.advance_to(T0 + 101)
    assert event(simulation, "t1").status == event(simulation, "t2").status == "Started"
    assert event(simulation, "t2").started_at == T0 + 101


def test_batch_not_fully_approved_starts_at_not_before():
    simulation = make_simulation(
        *terminations(), groups={"pool": {"kind": "scale_set", "vms": {"pool_1": {}, "pool_2": {}}}}
    )
    approve(simulation, "t2", "pool_2", 20)
    simulation.advance_to(T0 + 310)
    assert {each.status for each in simulation.world.events} == {"Started"}


SCALE_SET = {"pool": {"kind": "scale_set", "vms": {f"pool_{number}": {} for number in range(1, 4)}}}


def termination(number, **more):
    return {"name": f"t{number}", "type": "Terminate", "resources": [f"pool_{number}"], "at": 10, **more}


def test_terminate_waits_for_all_others_of_the_scale_set_also_for_later_ones():
    simulation = make_simulation(termination(1), termination(2), termination(3, at=60), groups=SCALE_SET)
    approve(simulation, "t1", "pool_1", 20)
    simulation.advance_to(T0 + 70)
    approve(simulation, "t2", "pool_2", 70)
    simulation.advance_to(T0 + 100)
    assert statuses(simulation, "pool_1", 100) == ["Scheduled"] * 3
    approve(simulation, "t3", "pool_3", 100)
    simulation.advance_to(T0 + 101)
    assert {each.started_at for each in simulation.world.events} == {T0 + 101}


def test_terminate_that_is_not_approved_holds_the_others_until_not_before():
    simulation = make_simulation(termination(1), termination(2, notice="15m"), groups=SCALE_SET)
    approve(simulation, "t1", "pool_1", 20)
    simulation.advance_to(T0 + 309)
    assert event(simulation, "t1").status == "Scheduled"
    simulation.advance_to(T0 + 310)
    assert (event(simulation, "t1").started_at, event(simulation, "t2").status) == (T0 + 310, "Scheduled")


@pytest.mark.parametrize(
    "other, groups",
    [
        ({"batch": "another"}, SCALE_SET),
        ({"type": "Reboot"}, SCALE_SET),
        ({}, {"pool": {"kind": "availability_set", "vms": SCALE_SET["pool"]["vms"]}}),
    ],
)
def test_terminate_does_not_wait_for_other_events(other, groups):
    simulation = make_simulation(termination(1), termination(2, **other), groups=groups)
    approve(simulation, "t1", "pool_1", 20)
    simulation.advance_to(T0 + 21)
    assert event(simulation, "t1").status == "Started"


@pytest.mark.parametrize("change", [Change(0, action="cancel"), Change(0, type="Reboot"), Change(0, status="Started")])
def test_terminate_starts_when_the_last_unapproved_one_ends_changes_or_starts(change):
    simulation = make_simulation(termination(1), termination(2), groups=SCALE_SET)
    approve(simulation, "t1", "pool_1", 20)
    simulation.advance_to(T0 + 30)
    assert event(simulation, "t1").status == "Scheduled"
    # nothing is due for longer than t1 is Started: it starts now, and not in the past
    operations.change(simulation, event(simulation, "t2"), change, T0 + 100)
    assert (event(simulation, "t1").status, event(simulation, "t1").started_at) == ("Started", T0 + 100)


def test_terminate_waits_for_an_event_that_becomes_one():
    simulation = make_simulation(termination(1), termination(2, type="Reboot", hold=True), groups=SCALE_SET)
    simulation.advance_to(T0 + 20)
    operations.change(simulation, event(simulation, "t2"), Change(0, type="Terminate"), T0 + 20)
    approve(simulation, "t1", "pool_1", 20)
    assert event(simulation, "t1").status == "Scheduled"
    operations.change(simulation, event(simulation, "t2"), Change(0, action="cancel"), T0 + 60)
    assert event(simulation, "t1").started_at == T0 + 60


def test_terminate_of_many_instances_examines_them_once_for_each_request(monkeypatch):
    names = [f"pool_{number}" for number in range(100)]
    simulation = make_simulation(
        *(termination(number) for number in range(100)),
        groups={"pool": {"kind": "scale_set", "vms": {name: {} for name in names}}},
    )
    simulation.advance_to(T0 + 10)
    batch, examined = simulation.world.batch, []
    monkeypatch.setattr(
        simulation.world, "batch", lambda each: [examined.append(found) or found for found in batch(each)]
    )
    operations.approve(simulation, simulation.world.events, "pool_0", T0 + 20)
    simulation.apply_knobs(simulation.world.knobs, T0 + 20)
    assert len(examined) <= 300
    simulation.advance_to(T0 + 21)
    assert {each.started_at for each in simulation.world.events} == {T0 + 21}


def test_batch_does_not_wait_for_cancelled_events():
    simulation = make_simulation(
        *terminations(), groups={"pool": {"kind": "scale_set", "vms": {"pool_1": {}, "pool_2": {}}}}
    )
    approve(simulation, "t2", "pool_2", 20)
    simulation.advance_to(T0 + 100)
    operations.change(simulation, event(simulation, "t1"), Change(0, action="cancel"), T0 + 100)
    assert event(simulation, "t2").status == "Started" and event(simulation, "t2").started_at == T0 + 100


def test_terminate_has_the_source_user():
    simulation = make_simulation({**FREEZE, "type": "Terminate"})
    assert document_at(simulation, "vm1", 10)["Events"][0]["EventSource"] == "User"


def test_notice_of_five_days_starts_after_five_days():
    simulation = make_simulation({**FREEZE, "type": "Redeploy", "notice": "5d"})
    assert statuses(simulation, "vm1", 5 * 86400) == ["Scheduled"]
    assert statuses(simulation, "vm1", 5 * 86400 + 10) == ["Started"]


def test_speed_divides_durations_and_keeps_not_before_a_whole_second():
    simulation = make_simulation({**FREEZE, "at": 30}, speed=60)
    simulation.advance_to(T0 + 0.5)
    assert event(simulation).not_before == T0 + 16  # 0.5 + 15 = 15.5, rounded up
    assert statuses(simulation, "vm1", 15.99) == ["Scheduled"]
    assert statuses(simulation, "vm1", 16) == ["Started"]
    assert event(simulation).ends_at == T0 + 26
    assert document_at(simulation, "vm1", 16)["Events"][0]["DurationInSeconds"] == 9


def test_advance_to_runs_all_due_steps_in_order():
    simulation = make_simulation(FREEZE, {**FREEZE, "name": "f", "at": 1000, "resources": ["vm2"]})
    lines = [(line.event, line.kind, line.moment - T0) for line in simulation.advance_to(T0 + 5000)]
    assert lines == [
        ("e", "scheduled", 10),
        ("e", "started", 910),
        ("e", "impact-start", 910),
        ("e", "impact-end", 919),
        ("f", "scheduled", 1000),
        ("e", "finished", 1510),
        ("f", "started", 1900),
        ("f", "impact-start", 1900),
        ("f", "impact-end", 1909),
        ("f", "finished", 2500),
    ]
    assert simulation.next_due() == math.inf


def test_start_moment_follows_start_delay_and_approval_shortens():
    simulation = make_simulation(FREEZE, knobs={"start_delay": "30s"})
    approve(simulation, "e", "vm1", 20)
    assert (statuses(simulation, "vm1", 49), statuses(simulation, "vm1", 50)) == (["Scheduled"], ["Started"])
    not_shortened = make_simulation(FREEZE, knobs={"approval_shortens": False})
    approve(not_shortened, "e", "vm1", 20)
    assert (statuses(not_shortened, "vm1", 909), statuses(not_shortened, "vm1", 910)) == (["Scheduled"], ["Started"])


def test_approve_hold_is_the_default_of_hold():
    simulation = make_simulation(FREEZE, {**FREEZE, "name": "own", "hold": 0}, knobs={"approve_hold": True})
    approve(simulation, "e", "vm1", 20)
    approve(simulation, "own", "vm1", 20)
    simulation.advance_to(T0 + 100)
    assert event(simulation).status == "Scheduled" and event(simulation, "own").status == "Started"


def test_approve_changes_incarnation_raises_the_incarnation():
    simulation = make_simulation({**FREEZE, "hold": True}, knobs={"approve_changes_incarnation": True})
    before = document_at(simulation, "vm1", 20)["DocumentIncarnation"]
    approve(simulation, "e", "vm1", 20)
    assert document_at(simulation, "vm1", 20)["DocumentIncarnation"] == before + 1


def test_world_keeps_at_most_a_thousand_ended_events():
    simulation = make_simulation(
        *[{**FREEZE, "name": f"e{number}", "at": number, "notice": 0, "started_for": 0} for number in range(1200)]
    )
    simulation.advance_to(T0 + 5000)
    assert len(simulation.world.ended) == 1000 and simulation.world.events == []


def test_start_moment_of_a_large_batch_stops_at_the_first_unapproved_event():
    names = [f"vm{number}" for number in range(300)]
    simulation = make_simulation(
        *({"name": name, "type": "Terminate", "resources": [name], "batch": "all"} for name in names), vms=names
    )
    simulation.advance_to(T0 + 1)
    examined = []
    others = (examined.append(other) or other for other in simulation.world.events)
    assert start_moment(event(simulation, "vm0"), others, simulation.world.rules) == T0 + 300 and examined == []
    approve(simulation, "vm0", "vm0", 2)
    others = (examined.append(other) or other for other in simulation.world.events)
    assert start_moment(event(simulation, "vm0"), others, simulation.world.rules) == T0 + 300 and len(examined) == 2
    simulation.advance_to(T0 + 300)
    assert {each.status for each in simulation.world.events} == {"Started"} and len(simulation.world.events) == 300
    simulation.advance_to(T0 + 400)
    assert simulation.world.events == [] and simulation.next_due() == math.inf


def test_change_before_appearance_rejects_not_before_status_and_impact():
    simulation = make_simulation(FREEZE)
    for change in (Change(0, notice=60.0), Change(0, status="Started"), Change(0, action="impact", impact_for=5.0)):
        with pytest.raises(operations.InvalidState, match="has not appeared yet"):
            operations.change(simulation, event(simulation), change, T0)
    operations.change(simulation, event(simulation), Change(0, description="new"), T0)
    assert document_at(simulation, "vm1", 10)["Events"][0]["Description"] == "new"


def test_release_starts_approved_event_after_start_delay():
    simulation = make_simulation({**FREEZE, "hold": True}, knobs={"start_delay": "1m"}, speed=60)
    approve(simulation, "e", "vm1", 1)
    operations.change(simulation, event(simulation), Change(0, action="release"), T0 + 5)
    assert [statuses(simulation, "vm1", now) for now in (5.9, 6)] == [["Scheduled"], ["Started"]]


def test_occurrence_has_not_before_as_a_date():
    simulation = make_simulation(FREEZE)
    (scheduled,) = simulation.advance_to(T0 + 10)
    (changed,) = operations.change(simulation, event(simulation), Change(0, notice=60.0), T0 + 10)
    assert (scheduled.detail["not_before"], changed.detail["not_before"]) == (
        "2027-01-15T08:15:10.000Z",
        "2027-01-15T08:01:10.000Z",
    )
    early = make_simulation(FREEZE)
    (planned,) = operations.change(early, event(early), Change(0, description="x"), T0)
    assert planned.detail["not_before"] is None
