# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Several events for this VM at once: which one is prepared first, and what they share."""

from __future__ import annotations

from collections.abc import Callable

from support.daemon.hook_scripts import FAILS, HANGS
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., RunnerHarness]


def test_most_urgent_event_is_prepared_first(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    azure.schedule("Freeze", notice="9m", hold=True)
    redeploy = azure.schedule("Redeploy", notice="9m20s", hold=True)
    vm.poll()
    assert [mark.event_id for mark in vm.marks("begin")] == [redeploy]


def test_success_of_a_hook_counts_for_another_event_that_is_not_more_severe(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    later = azure.schedule("Preempt", notice="14m", hold=True)
    vm.poll()
    urgent = azure.schedule("Freeze", notice="13m", hold=True)
    vm.poll(after=1)
    vm.release("prepare/10-a")
    vm.settle()
    assert vm.ran() == ["prepare/10-a"] and sorted(azure.approvals()) == sorted([("vm1", later), ("vm1", urgent)])


def test_hook_of_a_less_severe_event_leaves_half_of_the_time_to_the_urgent_one(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(kill_after=1, hooks={"10-a": {"timeout": 25}})
    vm.hook("prepare/10-a", HANGS)
    azure.schedule("Freeze", hold=True)
    vm.poll()
    preempt = azure.schedule("Preempt", notice=30, hold=True)
    vm.poll(after=1)
    vm.hook("prepare/10-a")
    vm.poll(after=10)
    assert vm.steps(preempt) == [("prepare/10-a", "running")]
    vm.poll(after=3)
    assert vm.steps(preempt) == [("prepare/10-a", "stopped"), ("prepare/10-a", "ok")]
    assert ("vm1", preempt) in azure.approvals()


def test_own_event_ends_a_recover_hook_and_is_prepared(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("recover/10-a", HANGS)
    reboot = azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.cancel(reboot)
    vm.poll(after=1)
    preempt = azure.schedule("Preempt", notice=30, hold=True)
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"] and azure.approvals()[1:] == [("vm1", preempt)]
    vm.hook("recover/10-a")
    azure.cancel(preempt)
    vm.poll(after=1)
    assert vm.ran("recover") == ["recover/10-a"] * 2 and vm.maintenance(reboot) == vm.maintenance(preempt)


def test_recovery_does_not_wait_for_an_event_on_hold(azure: Azure, make_vm: MakeVm) -> None:
    rules = [{"when": {"type": "Freeze"}, "hold": True}, {"when": {}, "approve": "after_prepare"}]
    vm = make_vm(policy={"rules": rules})
    for stage in ("prepare", "recover"):
        vm.hook(stage + "/10-a")
    azure.schedule("Freeze", hold=True)
    reboot = azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.cancel(reboot)
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"] and vm.runner.records.maintenance is None


def test_failed_preparation_of_one_event_leaves_the_other_alone(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(hooks={"prepare/10-a": {"types": ["Freeze"]}, "prepare/20-b": {"types": ["Reboot"]}})
    vm.hook("prepare/10-a", FAILS)
    vm.hook("prepare/20-b")
    azure.schedule("Freeze", hold=True)
    reboot = azure.schedule("Reboot", hold=True)
    vm.poll()
    assert azure.approvals() == [("vm1", reboot)]
