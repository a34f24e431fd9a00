# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.1: lives of events, as the daemon deals with them."""

from __future__ import annotations

from collections.abc import Callable

from support.daemon.hook_scripts import HANGS
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., RunnerHarness]


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


def test_t18_another_client_approves_during_prepare(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Freeze", "vm2", "vm1", started_for=60)
    vm.poll()
    azure.approve(event, "vm2")
    vm.poll(after=2)
    assert vm.steps(event) == [("prepare/10-a", "stopped"), ("started/10-a", "ok")] and azure.approvals() == []
    vm.poll(after=60)
    assert vm.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"]


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
