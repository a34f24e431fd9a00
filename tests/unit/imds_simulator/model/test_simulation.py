# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The transitions of an event, on a clock without real time (docs/reference/scheduled-events.md 2.1 to 2.4)."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from imds_simulator.model.simulation import InvalidState
from imds_simulator.scenario.plans import Change, EventPlan
from support.simulator.simulations import T0, approve, document_at, make_simulation, statuses

FREEZE = {"name": "e", "type": "Freeze", "resources": ["vm1"], "at": 10}
AT_ONCE = {**FREEZE, "starts": "automatic_approval"}
CANCEL, RELEASE = Change(0, action="cancel"), Change(0, action="release")


def event(simulation, name="e"):
    return simulation.world.find(name)


def act(simulation, name, what, now):
    """Approve an event as its first VM, or change it."""
    simulation.advance_to(T0 + now)
    if isinstance(what, Change):
        simulation.change(event(simulation, name), what, T0 + now)
    else:
        approve(simulation, name, event(simulation, name).content.resources[0], now)


class Life(NamedTuple):
    """An event, and its status in the document at moments in seconds after T0; "": it is absent.

    ``acts``: moment -> "approve", or a change.
    """

    plan: dict[str, Any]
    shown: dict[float, str]
    acts: Mapping[float, Any] = MappingProxyType({})
    knobs: Mapping[str, Any] = MappingProxyType({})
    speed: float = 1.0


OWN_KNOBS = {"notice_overrides": {"Freeze": "2m"}, "started_duration": {"Freeze": "1m"}}
LIVES = {
    "freeze": Life({}, {9.9: "", 10: "Scheduled", 909.9: "Scheduled", 910: "Started", 1509.9: "Started", 1510: ""}),
    "reboot": Life({"type": "Reboot"}, {909.9: "Scheduled", 910: "Started"}),
    "redeploy": Life({"type": "Redeploy"}, {609.9: "Scheduled", 610: "Started"}),
    "preempt": Life({"type": "Preempt"}, {39.9: "Scheduled", 40: "Started"}),
    "terminate": Life({"type": "Terminate"}, {309.9: "Scheduled", 310: "Started"}),
    "five-days": Life({"notice": "5d"}, {432009: "Scheduled", 432010: "Started"}),
    "knobs": Life({}, {129.9: "Scheduled", 130: "Started", 189.9: "Started", 190: ""}, knobs=OWN_KNOBS),
    "before-knobs": Life(
        {"notice": "3m", "started_for": "5s"}, {189.9: "Scheduled", 190: "Started", 195: ""}, knobs=OWN_KNOBS
    ),
    "approved": Life({}, {20.9: "Scheduled", 21: "Started"}, {20: "approve"}),
    "start-delay": Life({}, {49: "Scheduled", 50: "Started"}, {20: "approve"}, {"start_delay": "30s"}),
    "not-shortened": Life({}, {909: "Scheduled", 910: "Started"}, {20: "approve"}, {"approval_shortens": False}),
    "held": Life({"hold": True}, {909.9: "Scheduled", 910: "Started"}, {20: "approve"}),
    "held-for-a-time": Life({"hold": "4m"}, {250.9: "Scheduled", 251: "Started"}, {20: "approve"}),
    "held-by-knob": Life({}, {900: "Scheduled"}, {20: "approve"}, {"approve_hold": True}),
    "held-not-by-knob": Life({"hold": 0}, {21: "Started"}, {20: "approve"}, {"approve_hold": True}),
    "released": Life({"hold": True}, {500.9: "Scheduled", 501: "Started"}, {20: "approve", 500: RELEASE}),
    "released-twice": Life({"hold": True}, {501: "Started"}, {20: "approve", 500: RELEASE, 500.9: RELEASE}),
    "released-only": Life({"hold": True}, {900: "Scheduled"}, {20: RELEASE}),
    "released-fast": Life(
        {"hold": True}, {5.9: "Scheduled", 6: "Started"}, {1: "approve", 5: RELEASE}, {"start_delay": "1m"}, 60.0
    ),
    "approve-after": Life({"approve_after": "1m"}, {70: "Scheduled", 71: "Started"}),
    "cancel-after": Life({"cancel_after": "8m"}, {489: "Scheduled", 490: ""}),
    "cancel-approved": Life({"cancel_after": "8m", "hold": True}, {489: "Scheduled", 490: ""}, {20: "approve"}),
    "completed": Life({}, {919: "Started", 920: ""}, {920: Change(0, action="complete")}),
    "earlier": Life({"changes": [{"after": "10m", "notice": "1m"}]}, {669: "Scheduled", 670: "Started"}),
    "later": Life({"changes": [{"after": "2m", "notice": "45m"}]}, {2829: "Scheduled", 2830: "Started"}),
    "scheduled-again": Life(
        {"notice": 60, "changes": [{"after_start": 60, "status": "Scheduled", "notice": "2m"}]},
        {69: "Scheduled", 70: "Started", 129: "Started", 130: "Scheduled", 249: "Scheduled", 250: "Started", 850: ""},
    ),
}


@pytest.mark.parametrize("life", LIVES.values(), ids=list(LIVES))
def test_event_has_the_status_of_each_moment(life):
    simulation = make_simulation({**FREEZE, **life.plan}, knobs=dict(life.knobs), speed=life.speed)
    found = {}
    for moment in sorted({*life.shown, *life.acts}):
        if moment in life.acts:
            act(simulation, "e", life.acts[moment], moment)
        if moment in life.shown:
            found[moment] = "".join(statuses(simulation, "vm1", moment))
    assert found == life.shown


def test_advice_ends_at_not_before_without_a_start_although_it_is_approved():
    simulation = make_simulation({**FREEZE, "type": "SpotRebalanceRecommendation"})
    assert approve(simulation, "e", "vm1", 20) == ["approved"]
    (oldest,) = document_at(simulation, "vm1", 10 + 3600 - 0.1, "2017-03-01")["Events"]
    assert oldest["EventStatus"] == "Scheduled"
    assert statuses(simulation, "vm1", 10 + 3600) == [] and event(simulation).started_at is None


def test_approval_repeated_or_late_changes_nothing():
    simulation = make_simulation({**FREEZE, "hold": True})
    approve(simulation, "e", "vm1", 20)
    before = document_at(simulation, "vm1", 20)
    assert approve(simulation, "e", "vm1", 21) == []
    assert approve(simulation, "e", "vm2", 21) == ["approved"]
    assert document_at(simulation, "vm1", 30) == before and event(simulation).approved_at == T0 + 20
    assert approve(simulation, "e", "arm", 911) == [], "it is Started"
    assert document_at(simulation, "vm1", 912)["DocumentIncarnation"] == 3


@pytest.mark.parametrize(
    "plan, knobs, kind, source",
    [
        ({"starts": "hardware_failure"}, {}, "Reboot", "Platform"),
        ({"starts": "hardware_failure"}, {"hardware_failure_type": "Redeploy"}, "Redeploy", "Platform"),
        ({"starts": "automatic_approval", "type": "Reboot"}, {}, "Reboot", "User"),
    ],
)
def test_failure_and_automatic_approval_are_started_when_they_appear(plan, knobs, kind, source):
    simulation = make_simulation({"resources": ["vm1"], "at": 10, **plan}, knobs=knobs)
    assert statuses(simulation, "vm1", 9) == []
    document = document_at(simulation, "vm1", 10)
    (shown,) = document["Events"]
    assert document["DocumentIncarnation"] == 2 and shown["EventStatus"] == "Started" and shown["NotBefore"] == ""
    assert (shown["EventType"], shown["EventSource"]) == (kind, source)


@pytest.mark.parametrize(
    "plan, impacts",
    [
        ({"duration": 7}, [("Freeze", 10, 17)]),
        ({"type": "Reboot"}, [("Reboot", 10, 610)]),
        ({"duration": 0}, []),
        ({"type": "Reboot", "actual": "Freeze", "impact_for": 5}, [("Freeze", 10, 15)]),
        (
            {"changes": [{"after_start": "4m", "action": "impact", "impact_for": "2s"}]},
            [("Freeze", 10, 19), ("Freeze", 250, 252)],
        ),
    ],
    ids=["duration", "unknown-duration", "none", "a-freeze-in-fact", "a-second-one"],
)
def test_impact_has_the_type_and_the_time_of_the_plan(plan, impacts):
    simulation = make_simulation({**AT_ONCE, **plan})
    first = document_at(simulation, "vm1", 10)
    lines = make_simulation({**AT_ONCE, **plan}).advance_to(T0 + 1000)
    found = [(each.kind, each.detail["type"], each.moment - T0) for each in lines if "impact" in each.kind]
    assert found == [
        line for kind, begin, end in impacts for line in (("impact-start", kind, begin), ("impact-end", kind, end))
    ]
    assert document_at(simulation, "vm1", 600) == first, "an impact is not visible"


def test_change_is_visible_and_keeps_the_id():
    changes = [
        {"after": 60, "type": "Redeploy", "description": "worse", "duration": -1, "source": "User"},
        {"after": 120, "resources": ["vm1", "vm2"]},
        {"after": 180, "resources": ["vm2"]},
        {"after": 240, "notice": "45m"},
    ]
    simulation = make_simulation({**FREEZE, "changes": changes})
    documents = [document_at(simulation, "vm1", now) for now in (10, 70, 130, 190, 250)]
    (first,), (worse,), (more,), (other,), (moved,) = (document["Events"] for document in documents)
    assert (worse["EventType"], worse["Description"], worse["EventSource"]) == ("Redeploy", "worse", "User")
    assert [each["Resources"] for each in (worse, more, other)] == [["vm1"], ["vm1", "vm2"], ["vm2"]]
    assert [each["NotBefore"][-12:-4] for each in (first, other, moved)] == ["08:15:10", "08:15:10", "08:49:10"]
    assert [document["DocumentIncarnation"] for document in documents] == [2, 3, 4, 5, 6]
    assert len({each["EventId"] for each in (first, worse, more, other, moved)}) == 1


def test_event_with_a_used_id_appears_again():
    guid = "5eed0000-0000-4000-8000-0000000000aa"
    again = {**FREEZE, "name": "again", "id": guid, "after": "e", "at": 30}
    simulation = make_simulation({**AT_ONCE, "id": guid, "started_for": 60}, again)
    shown = [document_at(simulation, "vm1", now)["Events"] for now in (10, 80, 100)]
    assert [[each["EventId"] for each in events] for events in shown] == [[guid.upper()], [], [guid.upper()]]


@pytest.mark.parametrize("gap", [0, 5])
def test_event_after_another_appears_when_that_has_ended(gap):
    then = {**FREEZE, "name": "next", "after": "e", "at": gap, "resources": ["vm2"]}
    simulation = make_simulation({**FREEZE, "started_for": 60}, then)
    approve(simulation, "e", "vm1", 20)
    moments = (80.9, 81 + gap - 0.1, 81 + gap)
    shown = [[each["Resources"] for each in document_at(simulation, "vm1", now)["Events"]] for now in moments]
    assert shown == [[["vm1"]], [] if gap else [["vm1"]], [["vm2"]]]
    assert document_at(simulation, "vm1", 90)["DocumentIncarnation"] == 5


POOL = {f"pool_{number}": {} for number in (1, 2, 3)}


def termination(number, **more):
    return {"name": f"t{number}", "type": "Terminate", "resources": [f"pool_{number}"], "at": 10, **more}


PAIR = [termination(1), termination(2)]
# events, moment -> (event, act), name -> moment of its start
DELETIONS = {
    "a-batch": ([{**each, "batch": "b"} for each in PAIR], {20: ("t2", ""), 100: ("t1", "")}, {"t1": 101, "t2": 101}),
    "a-batch-in-part": ([{**each, "batch": "b"} for each in PAIR], {20: ("t2", "")}, {"t1": 310, "t2": 310}),
    "scale-set-and-a-later-one": (
        [*PAIR, termination(3, at=60)],
        {20: ("t1", ""), 70: ("t2", ""), 100: ("t3", "")},
        {"t1": 101, "t2": 101, "t3": 101},
    ),
    "own-not-before": ([termination(1), termination(2, notice="15m")], {20: ("t1", "")}, {"t1": 310, "t2": 910}),
    "another-batch": ([termination(1), termination(2, batch="other")], {20: ("t1", "")}, {"t1": 21, "t2": 310}),
    "another-type": ([termination(1), termination(2, type="Reboot")], {20: ("t1", "")}, {"t1": 21, "t2": 910}),
    # nothing is due between the approval and the change: the start is then, and not in the past
    "last-is-cancelled": (PAIR, {20: ("t1", ""), 100: ("t2", CANCEL)}, {"t1": 100, "t2": None}),
    "last-is-started": (PAIR, {20: ("t1", ""), 100: ("t2", Change(0, status="Started"))}, {"t1": 100, "t2": 100}),
    "last-changes": (PAIR, {20: ("t1", ""), 100: ("t2", Change(0, type="Reboot"))}, {"t1": 100, "t2": 310}),
    "another-becomes-one": (
        [termination(1), termination(2, type="Reboot", hold=True)],
        {15: ("t2", Change(0, type="Terminate")), 20: ("t1", ""), 60: ("t2", CANCEL)},
        {"t1": 60, "t2": None},
    ),
}


def started(simulation, *names):
    moments = {name: event(simulation, name).started_at for name in names}
    return {name: None if moment is None else moment - T0 for name, moment in moments.items()}


@pytest.mark.parametrize("plans, acts, starts", DELETIONS.values(), ids=list(DELETIONS))
def test_terminate_waits_for_the_others_until_not_before(plans, acts, starts):
    simulation = make_simulation(*plans, groups={"pool": {"kind": "scale_set", "vms": POOL}})
    for moment, (name, what) in acts.items():
        act(simulation, name, what, moment)
    simulation.advance_to(T0 + 910)
    assert started(simulation, *starts) == starts


def test_terminate_outside_of_a_scale_set_waits_for_none():
    simulation = make_simulation(*PAIR, groups={"pool": {"kind": "availability_set", "vms": POOL}})
    act(simulation, "t1", "", 20)
    simulation.advance_to(T0 + 21)
    assert started(simulation, "t1", "t2") == {"t1": 21, "t2": None}


def test_terminate_of_many_instances_examines_them_once_for_each_request(monkeypatch):
    vms = {f"pool_{number}": {} for number in range(100)}
    simulation = make_simulation(*map(termination, range(100)), groups={"pool": {"kind": "scale_set", "vms": vms}})
    simulation.advance_to(T0 + 10)
    batch_key, examined = simulation.world.batch_key, []
    monkeypatch.setattr(simulation.world, "batch_key", lambda each: examined.append(each) or batch_key(each))
    simulation.approve(simulation.world.events, "pool_0", T0 + 20)
    simulation.apply_knobs(simulation.world.knobs, T0 + 20)
    # twice for each of two requests
    assert len(examined) <= 400
    simulation.advance_to(T0 + 21)
    assert {each.started_at for each in simulation.world.events} == {T0 + 21}


# plan, and the VMs that are deleted with the moment; the event appears at 10
DELETED = {
    "preempt": ({"type": "Preempt"}, [("vm1", 70)]),
    "terminate": ({"type": "Terminate"}, [("vm1", 370)]),
    "two-vms": ({"type": "Preempt", "resources": ["vm2", "vm1"]}, [("vm2", 70), ("vm1", 70)]),
    "a-preempt-in-fact": ({"type": "Reboot", "actual": "Preempt"}, [("vm1", 1510)]),
    "a-freeze-in-fact": ({"type": "Preempt", "actual": "Freeze"}, []),
    "interruption-to-the-end": ({"type": "Preempt", "impact_for": "31s"}, [("vm1", 70)]),
    "interruption-that-ends": ({"type": "Preempt", "impact_for": "30s"}, []),
    "no-interruption": ({"type": "Terminate", "impact_for": 0}, []),
    "cancelled": ({"type": "Terminate", "cancel_after": "1m"}, []),
    "redeploy": ({"type": "Redeploy"}, []),
    "advice": ({"type": "SpotRebalanceRecommendation"}, []),
}


def deleted(lines):
    return [(line.detail["vm"], line.moment - T0) for line in lines if line.kind == "removed"]


@pytest.mark.parametrize(("plan", "expected"), DELETED.values(), ids=list(DELETED))
def test_end_of_an_eviction_or_deletion_deletes_the_vms(plan, expected):
    simulation = make_simulation({**FREEZE, **plan})
    assert deleted(simulation.advance_to(T0 + 5000)) == expected
    assert simulation.world.removed == {vm for vm, _moment in expected}


@pytest.mark.parametrize(("now", "expected"), [(39, []), (41, [("vm1", 41)])])
def test_eviction_that_is_completed_by_hand_deletes_the_vm_once_it_has_started(now, expected):
    simulation = make_simulation({**FREEZE, "type": "Preempt"})
    simulation.advance_to(T0 + now)
    assert deleted(simulation.change(event(simulation), Change(action="complete"), T0 + now)) == expected


def test_other_events_lose_a_deleted_vm_and_end_without_a_vm():
    late = {"type": "Redeploy", "notice": "1h", "at": 20}
    simulation = make_simulation(
        {**FREEZE, "type": "Preempt"},
        {**late, "name": "both", "resources": ["vm1", "vm2"]},
        {**late, "name": "alone", "resources": ["vm1"]},
        {**late, "name": "started", "resources": ["vm1"], "starts": "automatic_approval", "started_for": "1h"},
        {**late, "name": "later", "resources": ["vm1"], "at": 1000},
        {**late, "name": "next", "resources": ["vm2"], "after": "alone", "at": 5},
    )
    shown = []
    for now in (69.9, 70, 74.9, 75):
        document = document_at(simulation, "vm2", now)
        shown.append((document["DocumentIncarnation"], [each["Resources"] for each in document["Events"]]))
    before, *after = shown
    assert before[1] == [["vm1"], ["vm1", "vm2"], ["vm1"], ["vm1"]]
    assert [events for _number, events in after] == [[["vm2"]], [["vm2"]], [["vm2"], ["vm2"]]]
    assert before[0] < after[0][0] == after[1][0] < after[2][0]
    ended = {each.name: each.cancelled for each in simulation.world.ended}
    assert ended == {"e": False, "alone": True, "started": False, "later": True}
    simulation.advance_to(T0 + 10_000)
    assert started(simulation, "both", "later", "next") == {"both": 3620, "later": None, "next": 3675}
    assert simulation.world.events == []


def test_later_change_does_not_bring_a_deleted_vm_back():
    changes = [{"after": 100, "resources": ["vm1", "vm2"], "duration": 7}, {"after": 200, "resources": ["vm1"]}]
    later = {"name": "later", "type": "Redeploy", "resources": ["vm2"], "notice": "1h", "at": 0, "changes": changes}
    simulation = make_simulation({**FREEZE, "type": "Preempt"}, later)
    assert deleted(simulation.advance_to(T0 + 150)) == [("vm1", 70)]
    (shown,) = document_at(simulation, "vm2", 150)["Events"]
    assert (shown["Resources"], shown["DurationInSeconds"]) == (["vm2"], 7)
    simulation.advance_to(T0 + 201)
    assert (event(simulation, "later").gone_at, event(simulation, "later").cancelled) == (T0 + 200, True)


def test_two_evictions_of_one_vm_delete_it_once():
    again = {**FREEZE, "type": "Terminate", "name": "f", "at": 0, "notice": "10s", "started_for": "1h"}
    simulation = make_simulation({**FREEZE, "type": "Preempt"}, again)
    assert deleted(simulation.advance_to(T0 + 5000)) == [("vm1", 70)]
    assert event(simulation, "f").gone_at == T0 + 70


def test_event_for_a_deleted_vm_is_refused():
    simulation = make_simulation({**FREEZE, "type": "Preempt"}, {**FREEZE, "name": "f", "resources": ["vm2"], "at": 60})
    simulation.advance_to(T0 + 70)
    plan = EventPlan(name="g", type="Reboot", resources=("vm2", "vm1"))
    with pytest.raises(InvalidState, match="^event g: Azure has deleted vm1; name another VM$"):
        simulation.schedule(plan, T0 + 70)
    with pytest.raises(InvalidState, match="^event f: Azure has deleted vm1; name another VM$"):
        simulation.change(event(simulation, "f"), Change(resources=("vm1",)), T0 + 70)
    assert [each.name for each in simulation.world.events] == ["f"]


def test_speed_divides_durations_and_keeps_not_before_a_whole_second():
    simulation = make_simulation({**FREEZE, "at": 30}, speed=60)
    simulation.advance_to(T0 + 0.5)
    assert event(simulation).not_before == T0 + 16  # 0.5 + 15 = 15.5, rounded up
    assert statuses(simulation, "vm1", 15.99) == ["Scheduled"]
    assert statuses(simulation, "vm1", 16) == ["Started"]
    assert event(simulation).ends_at == T0 + 26
    assert document_at(simulation, "vm1", 16)["Events"][0]["DurationInSeconds"] == 9


def test_steps_of_one_moment_come_in_their_order():
    lines = make_simulation(FREEZE).advance_to(T0 + 5000)
    assert [line.kind for line in lines] == ["scheduled", "started", "impact-start", "impact-end", "finished"]


def test_approval_raises_the_incarnation_with_its_knob_only():
    incarnations = []
    for knobs in ({}, {"approve_changes_incarnation": True}):
        simulation = make_simulation({**FREEZE, "hold": True}, knobs=knobs)
        approve(simulation, "e", "vm1", 20)
        incarnations.append(document_at(simulation, "vm1", 20)["DocumentIncarnation"])
    assert incarnations == [2, 3]


def test_step_calls_nothing_for_events_that_are_still_planned():
    later = [{**FREEZE, "name": f"later{number}", "at": 1000 + number} for number in range(500)]
    simulation = make_simulation(FREEZE, *later)
    profile = cProfile.Profile()
    lines = profile.runcall(simulation.advance_to, T0 + 10)
    assert [each.event for each in lines] == ["e"]
    assert pstats.Stats(profile).total_calls < len(later)


def test_world_keeps_at_most_a_thousand_ended_events():
    simulation = make_simulation(
        *({**FREEZE, "name": f"e{number}", "at": number, "notice": 0, "started_for": 0} for number in range(1200))
    )
    simulation.advance_to(T0 + 5000)
    assert len(simulation.world.ended) == 1000 and simulation.world.events == []
