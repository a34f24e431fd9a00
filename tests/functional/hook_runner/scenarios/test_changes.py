# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Events that change, overlap or come back, beyond docs/reference/scheduled-events.md 8."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.daemon.engine_harness import EngineHarness
from support.daemon.hook_scripts import HANGS
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., EngineHarness]


def begun(harness: EngineHarness) -> list[tuple[str, str]]:
    return [(mark.hook, mark.event_id) for mark in harness.marks("begin")]


def test_this_vm_comes_to_an_event(azure: Azure, vm: EngineHarness) -> None:
    event = azure.schedule("Reboot", "vm2")
    vm.poll()
    vm.poll(after=60)
    assert vm.ran() == []
    azure.change(event, resources=["vm2", "vm1"])
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"] and "concerns-us" in vm.timeline(event)
    azure.complete(event)
    vm.poll()
    assert vm.ran() == ["prepare/10-a", "recover/10-a"]


def test_this_vm_comes_to_an_event_that_has_started(azure: Azure, vm: EngineHarness) -> None:
    event = azure.schedule("Reboot", "vm2", notice=30, started_for=60)
    vm.poll()
    vm.poll(after=31)
    azure.change(event, resources=["vm2", "vm1"])
    vm.poll(after=1)
    assert [hook for hook in vm.ran() if hook.startswith("prepare")] == []
    assert len(vm.ran()) == 1 and azure.requests("POST") == []
    vm.poll(after=60)
    assert vm.ran()[1:] == ["recover/10-a"]


def test_this_vm_leaves_an_event(azure: Azure, vm: EngineHarness) -> None:
    event = azure.schedule("Reboot", "vm1", "vm2", hold=True)
    vm.poll()
    azure.change(event, resources=["vm2"])
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"]
    vm.poll(after=60)
    azure.complete(event)
    vm.poll()
    vm.poll(after=60)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"] and vm.engine.records == []


@pytest.mark.parametrize("others", [["vm2"], ["vm2", "vm3"], ["vm3"]], ids=" ".join)
def test_one_short_document_releases_no_vm_after_this_vm_comes_back(
    azure: Azure, make_vm: MakeVm, others: list[str]
) -> None:
    vm = make_vm(leader="self-only")
    event = azure.schedule("Reboot", "vm1", "vm2", hold=True)
    vm.poll()
    azure.change(event, resources=others)
    vm.poll()
    vm.poll_once(after=1)
    azure.change(event, resources=["vm1"])
    for _poll in range(60):
        vm.poll_once(after=1)
        assert azure.requests("POST") == [], f"it released {others}, which may be in the next document again"
    vm.poll_once(after=1)
    assert azure.approvals() == [("vm1", event)]


def test_incomplete_documents_do_not_end_an_event_for_this_vm(azure: Azure, vm: EngineHarness) -> None:
    azure.show(azure.entry(Resources=["vm1", "vm2"], NotBefore=azure.in_seconds(50)))
    vm.poll()
    vm.poll(after=1)
    azure.show(azure.entry(Resources=["vm2"], NotBefore=azure.in_seconds(50)), azure.entry(EventId=5))
    for _poll in range(4):
        vm.poll_once(after=1)
    assert vm.ran() == ["prepare/10-a"]


def test_this_vm_leaves_an_event_while_it_prepares(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", "vm1", "vm2", hold=True)
    vm.poll()
    azure.change(event, resources=["vm2"])
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"] and vm.marks("end") == vm.marks("end")[-1:]
    azure.change(event, resources=["vm1", "vm2"])
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"]


def test_resources_of_others_come_and_go_without_another_preparation(azure: Azure, vm: EngineHarness) -> None:
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    for resources in (["vm1", "vm2"], ["vm3", "vm1"], ["vm1"]):
        azure.change(event, resources=resources)
        vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"]


def test_a_grown_event_is_not_approved_by_what_was_said_before(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.change(event, resources=["vm1", "vm2"])
    vm.poll(after=1)
    vm.release("prepare/10-a")
    vm.settle()
    assert azure.requests("POST") == [] and "release other VMs" in vm.status()["events"][0]["reason"]


def test_cancelled_while_it_prepares(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    vm.hook("prepare/20-b")
    event = azure.schedule("Reboot")
    vm.poll()
    azure.cancel(event)
    vm.poll(after=1)
    assert vm.steps(event) == [("prepare/10-a", "stopped"), ("recover/10-a", "ok")]
    assert azure.requests("POST") == [] and vm.engine.records == []


def test_a_second_event_while_a_hook_runs_is_prepared_beside_it(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(hooks={"10-reboot": {"types": ["Reboot"]}, "10-freeze": {"types": ["Freeze"]}})
    vm.hook("prepare/10-reboot", HANGS)
    vm.hook("prepare/10-freeze")
    first = azure.schedule("Reboot", hold=True)
    vm.poll()
    second = azure.schedule("Freeze", hold=True)
    vm.poll(after=1)
    assert begun(vm) == [("prepare/10-reboot", first), ("prepare/10-freeze", second)]
    assert azure.approvals() == [("vm1", second)]
    vm.release("prepare/10-reboot")
    vm.settle()
    assert azure.approvals() == [("vm1", second), ("vm1", first)]


def test_one_hook_never_runs_twice_at_once(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    first = azure.schedule("Reboot", hold=True)
    second = azure.schedule("Freeze", hold=True)
    vm.poll()
    assert begun(vm) == [("prepare/10-a", first)]
    assert "waits for the hook of the same name" in vm.status()["events"][1]["waiting"]
    vm.release("prepare/10-a")
    vm.settle()
    assert begun(vm) == [("prepare/10-a", first), ("prepare/10-a", second)]
    vm.release("prepare/10-a")
    vm.settle()
    assert azure.approvals() == [("vm1", first), ("vm1", second)]


def test_hooks_run_again_for_a_type_that_is_more_severe(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(hooks={"20-b": {"types": ["Reboot", "Redeploy"]}})
    vm.hook("prepare/10-a")
    vm.hook("prepare/20-b", HANGS)
    event = azure.schedule("Freeze", hold=True)
    vm.poll()
    assert vm.ran() == ["prepare/10-a"] and len(azure.requests("POST")) == 1
    azure.change(event, type="Redeploy")
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "prepare/10-a", "prepare/20-b"] and "worse" in vm.timeline(event)
    vm.release("prepare/20-b")
    vm.settle()
    azure.change(event, type="Freeze")
    vm.poll(after=1)
    assert len(vm.ran()) == 3 and len(azure.requests("POST")) == 1


def test_success_of_a_run_that_began_for_a_less_severe_type_does_not_count(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Freeze", hold=True)
    vm.poll()
    azure.change(event, type="Redeploy")
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"]
    vm.release("prepare/10-a")
    vm.settle()
    assert vm.ran() == ["prepare/10-a"] * 2 and azure.approvals() == []
    vm.release("prepare/10-a")
    vm.settle()
    assert azure.approvals() == [("vm1", event)]


def test_an_id_that_comes_back_after_a_restart_is_another_event_and_ends_after_a_minute(
    azure: Azure, vm: EngineHarness
) -> None:
    entry = azure.entry()
    azure.show(entry)
    vm.poll()
    azure.show()
    vm.poll(after=1)
    for _restart in range(2):
        vm.restart("kill")
        azure.show(entry)
        vm.poll(after=1)
        assert vm.record(entry["EventId"]).occurrence == 2
    azure.show()
    vm.poll_once(after=1)
    vm.poll_once(after=30)
    assert vm.record(entry["EventId"]).gone_at is None
    vm.poll_once(after=30)
    assert vm.record(entry["EventId"]).gone_at is not None


def test_an_id_that_comes_back_is_another_event(azure: Azure, vm: EngineHarness) -> None:
    entry = azure.entry()
    azure.show(entry)
    vm.poll()
    azure.show()
    vm.poll(after=1)
    azure.show(azure.entry())
    vm.poll(after=61)
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"]
    assert [record.occurrence for record in vm.stored()] == [2, 1]
    assert "anomaly" in vm.timeline(entry["EventId"])


def test_event_that_came_back_is_over_after_a_minute_without_it(azure: Azure, vm: EngineHarness) -> None:
    entry = azure.entry(NotBefore=azure.in_seconds(900))
    azure.show(entry)
    vm.poll()
    azure.show()
    vm.poll(after=1)
    azure.show(entry)
    vm.poll(after=1)
    azure.show()
    for _poll in range(60):
        vm.poll_once(after=1)
        assert vm.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"]
    vm.restart("kill")
    for _poll in range(60):
        vm.poll_once(after=1)
        assert vm.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"]
    vm.poll_once(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a", "recover/10-a"]


def test_nothing_is_approved_before_the_second_document(azure: Azure, vm: EngineHarness) -> None:
    event = azure.schedule("Reboot", hold=True)
    vm.poll_once()
    assert vm.ran() == ["prepare/10-a"] and azure.requests("POST") == []
    assert "one document" in vm.status()["events"][0]["reason"] and not vm.status()["imds"]["confirmed"]
    vm.poll_once(after=1)
    assert azure.approvals() == [("vm1", event)] and vm.status()["imds"]["confirmed"]


def test_an_id_that_comes_back_after_a_restart_is_another_event_too(azure: Azure, vm: EngineHarness) -> None:
    entry = azure.entry()
    azure.show(entry)
    vm.poll()
    azure.show()
    vm.poll(after=1)
    vm.restart("reboot")
    azure.show(azure.entry(EventId=entry["EventId"].lower()))
    vm.poll(after=61)
    assert vm.record(entry["EventId"]).occurrence == 2 and vm.ran("prepare") == ["prepare/10-a"] * 2
