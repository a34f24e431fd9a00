# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.1 and 1.5: the daemon, or its host, restarts during an event."""

from __future__ import annotations

import pytest

from support.daemon.hook_scripts import HANGS
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure


def test_t11_a_reboot_during_prepare_runs_the_hooks_again_before_the_approval(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("prepare/20-b", HANGS)
    event = azure.schedule("Reboot")
    vm.poll()
    assert vm.ran() == ["prepare/10-a", "prepare/20-b"]
    vm.restart("reboot")
    vm.poll(after=30)
    assert vm.ran() == ["prepare/10-a", "prepare/20-b"] * 2 and azure.approvals() == []
    vm.release("prepare/20-b")
    vm.poll()
    assert [state for _hook, state in vm.steps(event)] == ["ok", "interrupted", "ok", "ok"]
    assert azure.approvals() == [("vm1", event)]


@pytest.mark.parametrize("how", ["kill", "reboot"])
def test_t11_an_approval_that_is_due_after_the_restart_is_sent_then(azure: Azure, vm: RunnerHarness, how: str) -> None:
    vm.delivers_approvals = False
    event = azure.schedule("Reboot")
    vm.poll()
    assert vm.record(event).approval == "sent" and azure.approvals() == []
    vm.restart(how)
    vm.delivers_approvals = True
    vm.poll(after=30)
    assert azure.approvals() == [("vm1", event)] and vm.ran() == ["prepare/10-a"] * (2 if how == "reboot" else 1)
    vm.poll(after=5)
    assert len(azure.requests("POST")) == 1


@pytest.mark.parametrize("how", ["kill", "reboot"])
def test_t12_a_restart_while_started_waits_for_the_end(azure: Azure, vm: RunnerHarness, how: str) -> None:
    event = azure.schedule("Reboot", started_for="5m")
    vm.poll()
    vm.poll(after=2)
    vm.restart(how)
    vm.poll(after=60)
    vm.poll(after=60)
    assert vm.ran() == ["prepare/10-a", "started/10-a"]
    vm.poll(after=200)
    assert vm.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"] and azure.approvals() == [("vm1", event)]
    assert vm.record(event).outcome == "completed"


@pytest.mark.parametrize("seen_started, outcome", [(True, "completed"), (False, "unknown")])
def test_t13_gone_at_the_first_poll_after_a_reboot_is_recovered_from_once(
    azure: Azure, vm: RunnerHarness, seen_started: bool, outcome: str
) -> None:
    event = azure.schedule("Reboot")
    vm.poll()
    if seen_started:
        vm.poll(after=2)
    azure.complete(event)
    vm.restart("reboot")
    vm.poll(after=90)
    assert vm.ran("recover") == ["recover/10-a"] and vm.ran("prepare") == ["prepare/10-a"]
    assert vm.record(event).outcome == outcome
    vm.restart("reboot")
    vm.poll()
    assert vm.ran("recover") == ["recover/10-a"]


def test_deadline_of_a_hook_that_was_adopted_holds_before_imds_answers(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", notice=60)
    vm.poll()
    azure.fault("reset")
    vm.restart("kill")
    vm.poll(after=50)
    assert vm.steps(event) == [("prepare/10-a", "running")]
    vm.poll(after=7)
    assert vm.steps(event) == [("prepare/10-a", "cut")] and azure.approvals() == []
