# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.1: lives of events, as the daemon deals with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.daemon.engine_harness import EngineHarness
from support.daemon.hook_scripts import HANGS
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., EngineHarness]

ALL = ("prepare/10-a", "emergency/10-a", "started/10-a", "recover/10-a")


def with_hooks(harness: EngineHarness, *hooks: str, body: str = ":") -> EngineHarness:
    for hook in hooks or ALL:
        harness.hook(hook, body)
    return harness


def test_t01_prepare_approve_started_recover(azure: Azure, make_vm: MakeVm) -> None:
    vm = with_hooks(make_vm())
    vm.poll()
    assert vm.engine.records == []
    event = azure.schedule("Freeze", duration=5, started_for="5m")
    vm.poll()
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]
    vm.poll()
    vm.poll(after=2)
    assert vm.ran() == ["prepare/10-a", "started/10-a"]
    vm.poll(after=290)
    vm.poll(after=20)
    assert vm.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"]
    assert vm.marks("begin")[-1].outcome == "completed"
    vm.poll(after=60)
    assert len(vm.ran()) == 3 and azure.approvals() == [("vm1", event)] and vm.engine.records == []
    assert vm.timeline(event) == [
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


def test_t02_never_approved_it_starts_when_its_time_has_come(azure: Azure, make_vm: MakeVm) -> None:
    vm = with_hooks(make_vm(policy="observe"))
    event = azure.schedule("Freeze", started_for="5m")
    vm.poll()
    vm.poll(after=898)
    assert vm.ran() == ["prepare/10-a"] and vm.record(event).event.status == "Scheduled"
    vm.poll(after=3)
    assert vm.ran() == ["prepare/10-a", "started/10-a"]
    vm.poll(after=310)
    vm.poll(after=10)
    assert vm.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"]
    assert azure.requests("POST") == [] and vm.record(event).outcome == "completed"


def test_t03_cancelled_before_it_started(azure: Azure, make_vm: MakeVm) -> None:
    vm = with_hooks(make_vm(policy="observe"))
    event = azure.schedule("Freeze", cancel_after="8m")
    vm.poll()
    vm.poll(after=490)
    vm.poll()
    assert vm.ran() == ["prepare/10-a", "recover/10-a"]
    assert vm.marks("begin")[-1].outcome == vm.record(event).outcome == "unknown"
    assert (
        "cancelled, or its start was missed"
        in next(entry for entry in vm.record(event).timeline if entry.what == "gone").detail
    )
    assert vm.times_logged("error") == 0


def test_t04_cancelled_although_approved(azure: Azure, make_vm: MakeVm) -> None:
    vm = with_hooks(make_vm())
    event = azure.schedule("Freeze", hold=True, cancel_after="8m")
    vm.poll()
    vm.poll(after=490)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"] and azure.approvals() == [("vm1", event)]
    assert vm.record(event).outcome == "unknown"


@pytest.mark.parametrize("kind", ["Reboot", "Redeploy"])
def test_t06_t07_a_hardware_failure_is_an_emergency(azure: Azure, make_vm: MakeVm, kind: str) -> None:
    vm = with_hooks(make_vm())
    vm.poll()
    event = azure.fail("vm1", kind)
    vm.poll()
    vm.poll(after=30)
    assert vm.ran() == ["emergency/10-a"] and azure.requests("POST") == []
    azure.complete(event)
    vm.poll()
    vm.poll(after=60)
    assert vm.ran() == ["emergency/10-a", "recover/10-a"] and vm.record(event).outcome == "completed"


def test_t08_automatic_approval_is_distinguished_by_its_source(azure: Azure, make_vm: MakeVm) -> None:
    vm = with_hooks(make_vm(policy="documented"))
    azure.schedule("Reboot", starts="automatic_approval", source="User")
    vm.poll()
    vm.poll(after=5)
    assert vm.ran() == ["emergency/10-a"] and azure.requests("POST") == []
    assert vm.times_logged("Reboot by User hits this VM") == 1 and vm.times_logged("hardware") == 0


def test_t09_a_reboot_that_only_freezes_is_recovered_from_once(azure: Azure, make_vm: MakeVm) -> None:
    vm = with_hooks(make_vm())
    azure.schedule("Reboot", actual="Freeze", impact_for=5, started_for=60)
    for _second in range(15):
        vm.poll(after=5)
    assert vm.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"]


def test_t10_a_second_impact_is_no_end(azure: Azure, make_vm: MakeVm) -> None:
    vm = with_hooks(make_vm())
    changes = [{"action": "impact", "after_start": 300, "impact_for": 3}]
    azure.schedule("Freeze", started_for="10m", changes=changes)
    vm.poll()
    for _gap in range(18):
        vm.poll(after=33)
    assert vm.ran() == ["prepare/10-a", "started/10-a"]
    vm.poll(after=33)
    assert vm.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"]


def test_t15_two_at_once_are_two(azure: Azure, make_vm: MakeVm) -> None:
    vm = with_hooks(make_vm())
    mine = azure.schedule("Freeze")
    other = azure.schedule("Redeploy", "vm2")
    vm.poll()
    assert [mark.event_id for mark in vm.marks("begin")] == [mine] and azure.approvals() == [("vm1", mine)]
    shown = {
        event["event_id"]: (event["stage"], event["concerns_me"], event["prepared"]) for event in vm.status()["events"]
    }
    assert shown == {mine: ("prepare", True, "ok"), other: ("watched", False, "none")}


def test_t17_an_event_of_others_is_seen_and_left_alone(azure: Azure, make_vm: MakeVm) -> None:
    vm = with_hooks(make_vm(policy="documented", leader="first"))
    other = azure.schedule("Freeze", "vm2", "vm3", source="User")
    vm.poll()
    vm.poll(after=300)
    assert [event["event_id"] for event in vm.status()["events"]] == [other]
    vm.poll(after=1000)
    vm.poll(after=1000)
    assert vm.ran() == [] and azure.requests("POST") == [] and vm.engine.records == []
    assert vm.stored() == []


def test_t18_another_client_approves_during_prepare(azure: Azure, make_vm: MakeVm) -> None:
    vm = with_hooks(make_vm(), "started/10-a", "recover/10-a")
    vm.hook("prepare/10-a", HANGS)
    vm.hook("prepare/20-b")
    event = azure.schedule("Freeze", "vm2", "vm1", started_for=60)
    vm.poll()
    azure.approve(event, "vm2")
    vm.poll(after=2)
    assert vm.steps(event)[0] == ("prepare/10-a", "stopped") and azure.approvals() == []
    assert vm.ran() == ["prepare/10-a", "started/10-a"] and vm.engine.preparation_state(vm.record(event)) == "failed"
    vm.poll(after=60)
    assert vm.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"]


def test_t19_both_approve_in_the_same_moment(azure: Azure, make_vm: MakeVm) -> None:
    both = [with_hooks(make_vm(name, leader="first", takeover_after=0)) for name in ("vm1", "vm2")]
    event = azure.schedule("Freeze", "vm1", "vm2", started_for=60)
    for vm in both:
        vm.poll()
    assert azure.approvals() == [("vm1", event), ("vm2", event)]
    azure.advance(2)
    for vm in both:
        vm.poll()
        assert vm.ran() == ["prepare/10-a", "started/10-a"]
    assert azure.starts(event) == 1


def test_t20_approval_is_not_repeated_while_other_tenants_hold_the_event(azure: Azure, make_vm: MakeVm) -> None:
    vm = with_hooks(make_vm())
    event = azure.schedule("Freeze", hold=True)
    for _minute in range(10):
        vm.poll(after=60)
    assert len(azure.requests("POST")) == 1
    (shown,) = vm.status()["events"]
    assert (shown["status"], shown["approval"], shown["event_id"]) == ("Scheduled", "accepted", event)
    assert shown["reason"].startswith("approved, and waits for Azure to start it")
    vm.restart("reboot")
    vm.poll(after=60)
    assert len(azure.requests("POST")) == 1
    vm.poll(after=301)
    assert vm.ran() == ["prepare/10-a", "prepare/10-a", "started/10-a"]


def test_t21_the_next_one_comes_as_the_last_one_ends_and_one_recovery_serves_both(
    azure: Azure, make_vm: MakeVm
) -> None:
    vm = with_hooks(make_vm())
    first = azure.schedule("Freeze")
    vm.poll()
    vm.poll(after=2)
    azure.complete(first)
    second = azure.schedule("Freeze")
    vm.poll()
    # the second one starts before the first one counts as gone
    assert [(mark.hook, mark.event_id) for mark in vm.marks("begin")] == [
        ("prepare/10-a", first),
        ("started/10-a", first),
        ("prepare/10-a", second),
        ("started/10-a", second),
    ]
    azure.complete(second)
    vm.poll(after=1)
    assert vm.ran("recover") == ["recover/10-a"] and vm.engine.records == []


def test_t24_each_terminate_is_approved_by_its_own_vm_only(azure: Azure, make_vm: MakeVm) -> None:
    own: dict[str, Any] = {
        "policy": {"rules": [{"name": "own", "when": {"only_me": True}, "approve": "after_prepare"}]}
    }
    first, second = (with_hooks(make_vm(name, **own)) for name in ("pool_1", "pool_2"))
    one = azure.schedule("Terminate", "pool_1", batch="scale-in")
    two = azure.schedule("Terminate", "pool_2", batch="scale-in")
    second.poll()
    assert azure.approvals() == [("pool_2", two)]
    second.poll(after=20)
    assert azure.status(two) == "Scheduled"
    first.poll()
    assert azure.approvals() == [("pool_2", two), ("pool_1", one)]
    second.poll(after=5)
    assert azure.status(two) == "Started" and second.ran() == ["prepare/10-a", "started/10-a"]


def test_t25_an_event_waits_for_days_by_policy_and_through_restarts(azure: Azure, make_vm: MakeVm) -> None:
    rules = [
        {"name": "later", "when": {"time_left": {"gt": "2h"}}, "hold": True},
        {"name": "now", "approve": "after_prepare"},
    ]
    vm = with_hooks(make_vm(policy={"rules": rules}))
    event = azure.schedule("Reboot", notice="5d")
    vm.poll()
    for day in range(1, 5):
        vm.restart("reboot" if day % 2 else "kill")
        vm.poll(after=86400)
        assert vm.ran() == []
    assert vm.times_logged("rule 'later'") >= 1
    vm.poll(after=86400 - 7200 - 5)
    assert vm.ran() == []
    vm.poll(after=5)
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]
