# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.1: lives of events, as the daemon deals with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.daemon.engine_harness import Rig
from support.daemon.hook_scripts import HANGS
from support.daemon.simulated_azure import Azure

MakeRig = Callable[..., Rig]

ALL = ("prepare/10-a", "emergency/10-a", "started/10-a", "recover/10-a")


def with_hooks(rig: Rig, *hooks: str, body: str = ":") -> Rig:
    for hook in hooks or ALL:
        rig.hook(hook, body)
    return rig


def test_t01_prepare_approve_started_recover(azure: Azure, make_rig: MakeRig) -> None:
    me = with_hooks(make_rig())
    me.look()
    assert me.engine.records == []
    event = azure.schedule("Freeze", duration=5, started_for="5m")
    me.look()
    assert me.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]
    me.look()
    me.look(after=2)
    assert me.ran() == ["prepare/10-a", "started/10-a"]
    me.look(after=290)
    me.look(after=20)
    assert me.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"]
    assert me.marks("begin")[-1].outcome == "completed"
    me.look(after=60)
    assert len(me.ran()) == 3 and azure.approvals() == [("vm1", event)] and me.engine.records == []
    assert me.words(event) == [
        "appeared",
        "hook-started",
        "hook-ended",
        "approval-sent",
        "approved",
        "started",
        "hook-started",
        "hook-ended",
        "gone",
        "hook-started",
        "hook-ended",
        "closed",
    ]


def test_t02_never_approved_it_starts_when_its_time_has_come(azure: Azure, make_rig: MakeRig) -> None:
    me = with_hooks(make_rig(policy="observe"))
    event = azure.schedule("Freeze", started_for="5m")
    me.look()
    me.look(after=898)
    assert me.ran() == ["prepare/10-a"] and me.record(event).event.status == "Scheduled"
    me.look(after=3)
    assert me.ran() == ["prepare/10-a", "started/10-a"]
    me.look(after=310)
    me.look(after=10)
    assert me.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"]
    assert azure.requests("POST") == [] and me.record(event).outcome == "completed"


def test_t03_cancelled_before_it_started(azure: Azure, make_rig: MakeRig) -> None:
    me = with_hooks(make_rig(policy="observe"))
    event = azure.schedule("Freeze", cancel_after="8m")
    me.look()
    me.look(after=490)
    me.look()
    assert me.ran() == ["prepare/10-a", "recover/10-a"]
    assert me.marks("begin")[-1].outcome == me.record(event).outcome == "cancelled-or-missed"
    assert (
        "cancelled, or its start was missed"
        in next(entry for entry in me.record(event).timeline if entry.what == "gone").detail
    )
    assert me.said("error") == 0


def test_t04_cancelled_although_approved(azure: Azure, make_rig: MakeRig) -> None:
    me = with_hooks(make_rig())
    event = azure.schedule("Freeze", hold=True, cancel_after="8m")
    me.look()
    me.look(after=490)
    assert me.ran() == ["prepare/10-a", "recover/10-a"] and azure.approvals() == [("vm1", event)]
    assert me.record(event).outcome == "cancelled-or-missed"


@pytest.mark.parametrize("kind", ["Reboot", "Redeploy"])
def test_t06_t07_a_hardware_failure_is_an_emergency(azure: Azure, make_rig: MakeRig, kind: str) -> None:
    me = with_hooks(make_rig())
    me.look()
    event = azure.fail("vm1", kind)
    me.look()
    me.look(after=30)
    assert me.ran() == ["emergency/10-a"] and azure.requests("POST") == []
    azure.complete(event)
    me.look()
    me.look(after=60)
    assert me.ran() == ["emergency/10-a", "recover/10-a"] and me.record(event).outcome == "completed"


def test_t08_an_automatic_approval_is_one_too_but_told_from_it_by_its_source(azure: Azure, make_rig: MakeRig) -> None:
    me = with_hooks(make_rig(policy="documented"))
    azure.schedule("Reboot", starts="automatic_approval", source="User")
    me.look()
    me.look(after=5)
    assert me.ran() == ["emergency/10-a"] and azure.requests("POST") == []
    assert me.said("Reboot by User hits this VM") == 1 and me.said("hardware") == 0


def test_t09_a_reboot_that_only_freezes_is_recovered_from_once(azure: Azure, make_rig: MakeRig) -> None:
    me = with_hooks(make_rig())
    azure.schedule("Reboot", actual="Freeze", impact_for=5, started_for=60)
    for _second in range(15):
        me.look(after=5)
    assert me.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"]


def test_t10_a_second_impact_is_no_end(azure: Azure, make_rig: MakeRig) -> None:
    me = with_hooks(make_rig())
    changes = [{"action": "impact", "after_start": 300, "impact_for": 3}]
    azure.schedule("Freeze", started_for="10m", changes=changes)
    me.look()
    for _gap in range(18):
        me.look(after=33)
    assert me.ran() == ["prepare/10-a", "started/10-a"]
    me.look(after=33)
    assert me.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"]


def test_t15_two_at_once_are_two(azure: Azure, make_rig: MakeRig) -> None:
    me = with_hooks(make_rig())
    mine = azure.schedule("Freeze")
    other = azure.schedule("Redeploy", "vm2")
    me.look()
    assert [mark.event_id for mark in me.marks("begin")] == [mine] and azure.approvals() == [("vm1", mine)]
    told = {
        event["event_id"]: (event["stage"], event["concerns_me"], event["prepared"]) for event in me.status()["events"]
    }
    assert told == {mine: ("prepare", True, "ok"), other: ("watched", False, "none")}


def test_t17_an_event_of_others_is_seen_and_left_alone(azure: Azure, make_rig: MakeRig) -> None:
    me = with_hooks(make_rig(policy="documented", leader="first"))
    other = azure.schedule("Freeze", "vm2", "vm3", source="User")
    me.look()
    me.look(after=300)
    assert [event["event_id"] for event in me.status()["events"]] == [other]
    me.look(after=1000)
    me.look(after=1000)
    assert me.ran() == [] and azure.requests("POST") == [] and me.engine.records == []
    assert me.journal.reader().records(10) == []


def test_t18_somebody_else_approves_during_prepare(azure: Azure, make_rig: MakeRig) -> None:
    me = with_hooks(make_rig(), "started/10-a", "recover/10-a")
    me.hook("prepare/10-a", HANGS)
    me.hook("prepare/20-b")
    event = azure.schedule("Freeze", "vm2", "vm1", started_for=60)
    me.look()
    azure.approve(event, "vm2")
    me.look(after=2)
    assert me.steps(event)[0] == ("prepare/10-a", "stopped") and azure.approvals() == []
    assert me.ran() == ["prepare/10-a", "started/10-a"] and me.engine.preparation_state(me.record(event)) == "failed"
    me.look(after=60)
    assert me.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"]


def test_t19_both_approve_in_the_same_moment(azure: Azure, make_rig: MakeRig) -> None:
    both = [with_hooks(make_rig(name, leader="first", takeover_after=0)) for name in ("vm1", "vm2")]
    event = azure.schedule("Freeze", "vm1", "vm2", started_for=60)
    for me in both:
        me.look()
    assert azure.approvals() == [("vm1", event), ("vm2", event)]
    azure.advance(2)
    for me in both:
        me.look()
        assert me.ran() == ["prepare/10-a", "started/10-a"]
    assert azure.starts(event) == 1


def test_t20_approved_but_held_by_other_tenants_is_not_asked_for_again(azure: Azure, make_rig: MakeRig) -> None:
    me = with_hooks(make_rig())
    event = azure.schedule("Freeze", hold=True)
    for _minute in range(10):
        me.look(after=60)
    assert len(azure.requests("POST")) == 1
    (told,) = me.status()["events"]
    assert (told["status"], told["approval"], told["event_id"]) == ("Scheduled", "accepted", event)
    assert told["reason"].startswith("approved, and waits for Azure to start it")
    me.restart("reboot")
    me.look(after=60)
    assert len(azure.requests("POST")) == 1
    me.look(after=301)
    assert me.ran() == ["prepare/10-a", "prepare/10-a", "started/10-a"]


def test_t21_the_next_one_comes_as_the_last_one_ends_and_one_recovery_serves_both(
    azure: Azure, make_rig: MakeRig
) -> None:
    me = with_hooks(make_rig())
    first = azure.schedule("Freeze")
    me.look()
    me.look(after=2)
    azure.complete(first)
    second = azure.schedule("Freeze")
    me.look()
    assert [(mark.hook, mark.event_id) for mark in me.marks("begin")] == [
        ("prepare/10-a", first),
        ("started/10-a", first),
        ("prepare/10-a", second),
    ]
    azure.complete(second)
    me.look(after=1)
    assert me.ran("recover") == ["recover/10-a"] and me.engine.records == []


def test_t24_each_terminate_is_approved_by_its_own_vm_only(azure: Azure, make_rig: MakeRig) -> None:
    own: dict[str, Any] = {
        "policy": {
            "rules": [{"name": "own", "when": {"only_me": True}, "do": ["prepare", {"approve": "after_prepare"}]}]
        }
    }
    first, second = (with_hooks(make_rig(name, **own)) for name in ("pool_1", "pool_2"))
    one = azure.schedule("Terminate", "pool_1", batch="scale-in")
    two = azure.schedule("Terminate", "pool_2", batch="scale-in")
    second.look()
    assert azure.approvals() == [("pool_2", two)]
    second.look(after=20)
    assert azure.status(two) == "Scheduled"
    first.look()
    assert azure.approvals() == [("pool_2", two), ("pool_1", one)]
    second.look(after=5)
    assert azure.status(two) == "Started" and second.ran() == ["prepare/10-a", "started/10-a"]


def test_t25_a_predicted_failure_waits_for_days_and_through_restarts(azure: Azure, make_rig: MakeRig) -> None:
    rules = [
        {"name": "later", "when": {"time_left": {"gt": "2h"}}, "do": ["notify", "hold"]},
        {"name": "now", "do": ["prepare", {"approve": "after_prepare"}]},
    ]
    me = with_hooks(make_rig(policy={"rules": rules}))
    event = azure.schedule("Redeploy", notice="5d")
    me.look()
    for day in range(1, 5):
        me.restart("reboot" if day % 2 else "kill")
        me.look(after=86400)
        assert me.ran() == []
    assert me.said("rule 'later'") >= 1
    me.look(after=86400 - 7200 - 5)
    assert me.ran() == []
    me.look(after=5)
    assert me.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]
