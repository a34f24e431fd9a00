# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.1: lives of events, as the daemon deals with them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.daemon.hook_scripts import HANGS
from support.daemon.runner_harness import AFTER_PREPARE, RunnerHarness
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., RunnerHarness]


def vm_with_hooks(make_vm: MakeVm, name: str = "vm1", **config: object) -> RunnerHarness:
    harness = make_vm(name, **config)
    for stage in ("prepare", "emergency", "started", "recover"):
        harness.hook(f"{stage}/10-a")
    return harness


def test_t01_prepare_approve_started_recover(azure: Azure, vm: RunnerHarness) -> None:
    vm.poll()
    assert not vm.runner.has_events
    event = azure.schedule("Freeze", duration=5, started_for="5m")
    vm.poll()
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]
    vm.poll(after=2)
    assert vm.ran() == ["prepare/10-a", "started/10-a"]
    vm.poll(after=310)
    vm.poll(after=60)
    assert vm.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"]
    assert vm.marks("begin")[-1].outcome == vm.maintenance(event).outcome == "completed"
    assert azure.approvals() == [("vm1", event)] and not vm.runner.has_events


def test_t02_never_approved_it_starts_when_its_time_has_come(azure: Azure, make_vm: MakeVm) -> None:
    vm = vm_with_hooks(make_vm, policy="observe")
    event = azure.schedule("Freeze", started_for="5m")
    vm.poll()
    vm.poll(after=898)
    assert vm.ran() == ["prepare/10-a"] and vm.record(event).event.status == "Scheduled"
    vm.poll(after=3)
    assert vm.ran() == ["prepare/10-a", "started/10-a"]
    vm.poll(after=310)
    assert vm.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"]
    assert azure.requests("POST") == [] and vm.record(event).outcome == "completed"


@pytest.mark.parametrize("policy, approvals", [("observe", 0), (AFTER_PREPARE, 1)], ids=["t03", "t04"])
def test_t03_t04_cancelled_before_it_started(azure: Azure, make_vm: MakeVm, policy: object, approvals: int) -> None:
    vm = vm_with_hooks(make_vm, policy=policy)
    event = azure.schedule("Freeze", hold=True, cancel_after="8m")
    vm.poll()
    vm.poll(after=490)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"] and len(azure.approvals()) == approvals
    assert vm.marks("begin")[-1].outcome == vm.record(event).outcome == "unknown"
    assert vm.times_logged("error") == 0


def test_t06_a_hardware_failure_is_an_emergency(azure: Azure, vm: RunnerHarness) -> None:
    vm.poll()
    event = azure.fail("vm1", "Redeploy")
    vm.poll()
    vm.poll(after=30)
    assert vm.ran() == ["emergency/10-a"] and azure.requests("POST") == []
    azure.complete(event)
    vm.poll()
    assert vm.ran() == ["emergency/10-a", "recover/10-a"] and vm.record(event).outcome == "completed"


def test_t08_an_automatic_approval_is_an_emergency_too(azure: Azure, make_vm: MakeVm) -> None:
    vm = vm_with_hooks(make_vm, policy={"rules": [{"when": {}, "approve": "now"}]})
    azure.schedule("Reboot", starts="automatic_approval", source="User")
    vm.poll()
    vm.poll(after=5)
    assert vm.ran() == ["emergency/10-a"] and azure.requests("POST") == []


def test_t10_a_second_impact_is_no_end(azure: Azure, vm: RunnerHarness) -> None:
    changes = [{"action": "impact", "after_start": 300, "impact_for": 3}]
    azure.schedule("Freeze", started_for="10m", changes=changes)
    vm.poll()
    for _gap in range(18):
        vm.poll(after=33)
    assert vm.ran() == ["prepare/10-a", "started/10-a"]
    vm.poll(after=33)
    assert vm.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"]


def test_t15_t17_an_event_of_others_is_seen_and_left_alone(azure: Azure, make_vm: MakeVm) -> None:
    vm = vm_with_hooks(make_vm, leader="first")
    mine, other = azure.schedule("Freeze", hold=True), azure.schedule("Redeploy", "vm2", "vm3", source="User")
    vm.poll()
    assert [mark.event_id for mark in vm.marks("begin")] == [mine] and azure.approvals() == [("vm1", mine)]
    shown = {event["event_id"]: (event["affects_this_vm"], event["prepared"]) for event in vm.status()["events"]}
    assert shown == {mine: (True, "ok"), other: (False, "none")}
    azure.cancel(mine)
    azure.complete(other)
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"] and not vm.runner.has_events
    assert [record.key for record in vm.maintenance().events] == [mine.casefold()]
    assert [record.key for record in vm.runner.records.state.past] == [other.casefold()]


def test_t18_another_client_approves_during_prepare(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Freeze", "vm2", "vm1", started_for=60)
    vm.poll()
    azure.approve(event, "vm2")
    vm.poll(after=2)
    assert vm.steps(event) == [("prepare/10-a", "stopped"), ("started/10-a", "ok")] and azure.approvals() == []
    vm.poll(after=60)
    assert vm.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"]


def test_t19_both_approve_in_the_same_moment(azure: Azure, make_vm: MakeVm) -> None:
    both = [vm_with_hooks(make_vm, name, leader="first", takeover_after=0) for name in ("vm1", "vm2")]
    event = azure.schedule("Freeze", "vm1", "vm2", started_for=60)
    for vm in both:
        vm.poll()
    assert azure.approvals() == [("vm1", event), ("vm2", event)]
    azure.advance(2)
    for vm in both:
        vm.poll()
        assert vm.ran() == ["prepare/10-a", "started/10-a"]
    assert azure.starts(event) == 1


def test_t20_approval_is_not_repeated_while_other_tenants_hold_the_event(azure: Azure, vm: RunnerHarness) -> None:
    event = azure.schedule("Freeze", hold=True)
    for _minute in range(10):
        vm.poll(after=60)
    (shown,) = vm.status()["events"]
    assert (shown["status"], shown["approval"], shown["reason_code"]) == ("Scheduled", "accepted", "accepted")
    vm.restart("reboot")
    vm.poll(after=60)
    assert azure.approvals() == [("vm1", event)] and len(azure.requests("POST")) == 1
    vm.poll(after=301)
    assert vm.ran() == ["prepare/10-a", "prepare/10-a", "started/10-a"]


def test_t21_one_recovery_serves_an_event_and_the_next_one(azure: Azure, vm: RunnerHarness) -> None:
    first = azure.schedule("Freeze")
    vm.poll()
    vm.poll(after=2)
    azure.complete(first)
    second = azure.schedule("Freeze")
    vm.poll()
    # the second one starts before the first one counts as gone; the host is prepared already
    assert [(mark.hook, mark.event_id) for mark in vm.marks("begin")] == [
        ("prepare/10-a", first),
        ("started/10-a", first),
        ("started/10-a", second),
    ]
    azure.complete(second)
    vm.poll(after=1)
    assert vm.ran("recover") == ["recover/10-a"] and vm.maintenance(first) == vm.maintenance(second)


def test_t24_each_terminate_is_approved_by_its_own_vm_only(azure: Azure, make_vm: MakeVm) -> None:
    policy = {"rules": [{"name": "own", "when": {"only_me": True}, "approve": "after_prepare"}]}
    first, second = (vm_with_hooks(make_vm, name, policy=policy) for name in ("pool_1", "pool_2"))
    one, two = (azure.schedule("Terminate", name, batch="scale-in") for name in ("pool_1", "pool_2"))
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
    vm = vm_with_hooks(make_vm, policy={"rules": rules})
    event = azure.schedule("Reboot", notice="5d")
    vm.poll()
    for day in range(1, 5):
        vm.restart("reboot" if day % 2 else "kill")
        vm.poll(after=86400)
    vm.poll(after=86400 - 7200 - 5)
    assert vm.ran() == [] and vm.status()["events"][0]["reason_code"] == "held"
    vm.poll(after=5)
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]
