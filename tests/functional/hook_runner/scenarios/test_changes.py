# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Events that change, overlap or come back, beyond docs/reference/scheduled-events.md 8."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.daemon.hook_scripts import HANGS
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., RunnerHarness]


def begun(harness: RunnerHarness) -> list[tuple[str, str]]:
    return [(mark.hook, mark.event_id) for mark in harness.marks("begin")]


def test_this_vm_comes_to_an_event(azure: Azure, vm: RunnerHarness) -> None:
    event = azure.schedule("Reboot", "vm2")
    vm.poll()
    assert vm.ran() == []
    azure.change(event, resources=["vm2", "vm1"])
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"]
    azure.complete(event)
    vm.poll()
    assert vm.ran() == ["prepare/10-a", "recover/10-a"]


def test_this_vm_comes_to_an_event_that_has_started(azure: Azure, vm: RunnerHarness) -> None:
    event = azure.schedule("Reboot", "vm2", notice=30, started_for=60)
    vm.poll()
    vm.poll(after=31)
    azure.change(event, resources=["vm2", "vm1"])
    vm.poll(after=1)
    assert vm.ran() == ["started/10-a"] and azure.requests("POST") == []
    vm.poll(after=60)
    assert vm.ran() == ["started/10-a", "recover/10-a"]


def test_this_vm_leaves_an_event_while_it_prepares_and_comes_back(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", "vm1", "vm2", hold=True)
    vm.poll()
    azure.change(event, resources=["vm2"])
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"] and vm.steps(event)[0] == ("prepare/10-a", "stopped")
    assert vm.runner.records.maintenance is None and vm.status()["events"][0]["affects_this_vm"] is False
    azure.change(event, resources=["vm1", "vm2"])
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"] and len(vm.stored()) == 2


@pytest.mark.parametrize("others", [["vm2"], ["vm2", "vm3"], ["vm3"]], ids=" ".join)
def test_one_short_document_releases_no_vm_after_this_vm_comes_back(
    azure: Azure, vm: RunnerHarness, others: list[str]
) -> None:
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


def test_incomplete_documents_do_not_end_an_event_for_this_vm(azure: Azure, vm: RunnerHarness) -> None:
    azure.show(azure.entry(Resources=["vm1", "vm2"], NotBefore=azure.in_seconds(50)))
    vm.poll()
    azure.show(azure.entry(Resources=["vm2"], NotBefore=azure.in_seconds(50)), azure.entry(EventId=5))
    for _poll in range(4):
        vm.poll_once(after=1)
    assert vm.ran() == ["prepare/10-a"]


def test_resources_of_others_come_and_go_without_another_preparation(azure: Azure, vm: RunnerHarness) -> None:
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    for resources in (["vm1", "vm2"], ["vm3", "vm1"], ["vm1"]):
        azure.change(event, resources=resources)
        vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"]


def test_a_grown_event_is_not_approved_by_what_was_known_before(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.change(event, resources=["vm1", "vm2"])
    vm.poll(after=1)
    vm.release("prepare/10-a")
    vm.settle()
    assert azure.requests("POST") == [] and "release other VMs" in vm.status()["events"][0]["reason"]


def test_cancelled_while_it_prepares(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    vm.hook("prepare/20-b")
    event = azure.schedule("Reboot")
    vm.poll()
    azure.cancel(event)
    vm.poll(after=1)
    assert vm.steps(event) == [("prepare/10-a", "stopped"), ("recover/10-a", "ok")]
    assert azure.requests("POST") == [] and not vm.runner.has_events


def test_hooks_of_two_events_run_one_after_the_other(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(hooks={"10-reboot": {"types": ["Reboot"]}, "10-freeze": {"types": ["Freeze"]}})
    vm.hook("prepare/10-reboot", HANGS)
    vm.hook("prepare/10-freeze", HANGS)
    first = azure.schedule("Reboot", hold=True)
    vm.poll()
    second = azure.schedule("Freeze", hold=True)
    vm.poll(after=1)
    assert begun(vm) == [("prepare/10-reboot", first)]
    vm.release("prepare/10-reboot")
    vm.settle()
    assert begun(vm) == [("prepare/10-reboot", first), ("prepare/10-freeze", second)]
    assert azure.approvals() == [("vm1", first)]
    vm.release("prepare/10-freeze")
    vm.settle()
    assert azure.approvals() == [("vm1", first), ("vm1", second)]


def test_hooks_run_again_for_a_type_that_is_more_severe_and_not_for_one_that_is_less(
    azure: Azure, vm: RunnerHarness
) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Freeze", hold=True)
    vm.poll()
    azure.change(event, type="Redeploy")
    vm.poll(after=1)
    vm.release("prepare/10-a")
    vm.settle()
    assert vm.ran() == ["prepare/10-a"] * 2 and azure.approvals() == []
    vm.release("prepare/10-a")
    azure.change(event, type="Freeze")
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"] * 2 and azure.approvals() == [("vm1", event)]


@pytest.mark.parametrize("how", ["kill", "reboot"])
def test_an_id_that_comes_back_is_another_event_and_ends_after_a_minute(
    azure: Azure, vm: RunnerHarness, how: str
) -> None:
    entry = azure.entry()
    azure.show(entry)
    vm.poll()
    azure.show()
    vm.poll(after=1)
    vm.restart(how)
    azure.show({**entry, "EventId": entry["EventId"].lower()})
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"] and len(azure.requests("POST")) == 2
    azure.show()
    for _restart in range(2):
        for _poll in range(60):
            vm.poll_once(after=1)
        assert vm.ran("recover") == ["recover/10-a"]
        vm.restart("kill")
    for _poll in range(62):
        vm.poll_once(after=1)
    assert vm.ran("recover") == ["recover/10-a"] * 2 and len(vm.stored()) == 2


def test_nothing_is_approved_before_the_second_document(azure: Azure, vm: RunnerHarness) -> None:
    event = azure.schedule("Reboot", hold=True)
    vm.poll_once()
    assert vm.ran() == ["prepare/10-a"] and azure.requests("POST") == []
    assert "one document" in vm.status()["events"][0]["reason"] and not vm.status()["imds"]["confirmed"]
    vm.poll_once(after=1)
    assert azure.approvals() == [("vm1", event)] and vm.status()["imds"]["confirmed"]
