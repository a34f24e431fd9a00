# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A pause by an operator."""

from __future__ import annotations

import pytest

from hook_runner.maintenance.record import ApprovalRequest
from support.daemon.hook_scripts import HANGS
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure


def test_a_hook_that_runs_goes_on_and_the_next_one_does_not_begin(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    vm.hook("prepare/20-b")
    azure.schedule("Reboot", hold=True)
    vm.poll()
    vm.runner.pause("root", None, "")
    vm.release("prepare/10-a")
    vm.poll(after=60)
    assert vm.ran() == ["prepare/10-a"] and azure.requests("POST") == []
    assert vm.status()["events"][0]["reason_code"] == "paused"
    vm.runner.resume("root")
    vm.settle()
    assert vm.ran() == ["prepare/10-a", "prepare/20-b"] and len(azure.approvals()) == 1


@pytest.mark.parametrize("when_started", ["stop", "finish"])
def test_recovery_goes_on_and_so_do_the_hooks_of_a_start(azure: Azure, vm: RunnerHarness, when_started: str) -> None:
    vm.configure(when_started=when_started)
    vm.hook("prepare/20-b", HANGS)
    event = azure.schedule("Freeze", started_for=600)
    vm.poll()
    vm.runner.pause("root", None, "")
    azure.approve(event)
    vm.poll(after=2)
    if when_started == "finish":
        vm.release("prepare/20-b")
    vm.poll()
    azure.complete(event)
    vm.poll()
    assert vm.ran("started") and vm.ran("recover") and not vm.runner.has_events


def test_manual_approval_while_paused_needs_force(azure: Azure, vm: RunnerHarness) -> None:
    vm.configure(policy="observe")
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    vm.runner.pause("root", None, "")
    asked = vm.runner.approve(event.casefold(), ApprovalRequest("anna"))
    assert asked is not None and not asked.accepted and "paused by root" in asked.text and "--force" in asked.text
    asked = vm.runner.approve(event.casefold(), ApprovalRequest("anna", force=True))
    vm.settle()
    assert asked is not None and asked.accepted and azure.approvals() == [("vm1", event)]
