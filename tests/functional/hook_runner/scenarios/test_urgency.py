# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Several events for this VM at once: which one is prepared first, and what they share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.daemon.engine_harness import EngineHarness
from support.daemon.hook_scripts import FAILS, HANGS, IGNORES_TERM
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., EngineHarness]
HOLD_FREEZE = {
    "rules": [
        {"name": "freezes wait", "when": {"type": "Freeze"}, "hold": True},
        {"name": "others", "when": {"concerns_me": True}, "approve": "after_prepare"},
    ]
}


def test_event_with_the_nearest_deadline_is_prepared_first(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    azure.schedule("Freeze", notice="14m", hold=True)
    redeploy = azure.schedule("Redeploy", notice="9m", hold=True)
    vm.poll()
    assert [mark.event_id for mark in vm.marks("begin")] == [redeploy]


def test_more_severe_event_is_prepared_first_if_it_begins_within_thirty_seconds(
    azure: Azure, vm: EngineHarness
) -> None:
    vm.hook("prepare/10-a", HANGS)
    azure.schedule("Freeze", notice="9m", hold=True)
    redeploy = azure.schedule("Redeploy", notice="9m20s", hold=True)
    vm.poll()
    assert [mark.event_id for mark in vm.marks("begin")] == [redeploy]


def test_worst_event_is_prepared_first_where_the_deadlines_are_equal(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    azure.show(
        azure.entry(EventType="Freeze", EventId="A-1"),
        azure.entry(EventType="Preempt", EventId="A-2"),
        azure.entry(EventId="A-3"),
    )
    vm.poll()
    assert [mark.event_id for mark in vm.marks("begin")] == ["A-2"]


def test_urgent_event_inherits_the_success_of_the_hook_that_runs_for_another(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a", HANGS)
    later = azure.schedule("Preempt", notice="14m", hold=True)
    vm.poll()
    preempt = azure.schedule("Preempt", notice=30, hold=True)
    vm.poll(after=1)
    assert "shortened" in vm.timeline(later) and azure.approvals() == []
    vm.release("prepare/10-a")
    vm.settle()
    assert vm.ran() == ["prepare/10-a"] and vm.steps(preempt) == [("prepare/10-a", "ok")] == vm.steps(later)
    assert sorted(azure.approvals()) == sorted([("vm1", later), ("vm1", preempt)])


def test_success_for_a_less_severe_event_does_not_count_for_the_urgent_one(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    freeze = azure.schedule("Freeze", hold=True)
    vm.poll()
    preempt = azure.schedule("Preempt", notice=30, hold=True)
    vm.poll(after=1)
    vm.hook("prepare/10-a")
    vm.release("prepare/10-a")
    vm.settle()
    assert vm.ran() == ["prepare/10-a"] * 2
    assert vm.steps(freeze) == [("prepare/10-a", "ok")] == vm.steps(preempt)
    assert sorted(azure.approvals()) == sorted([("vm1", freeze), ("vm1", preempt)])


def test_hook_of_a_less_severe_event_leaves_half_of_the_time_to_the_urgent_one(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(kill_after=1)
    vm.hook("prepare/10-a", HANGS)
    freeze = azure.schedule("Freeze", hold=True)
    vm.poll()
    preempt = azure.schedule("Preempt", notice=30, hold=True)
    vm.poll(after=1)
    vm.hook("prepare/10-a")
    vm.poll(after=11)
    assert vm.steps(freeze) == [("prepare/10-a", "running")]
    vm.poll(after=3)
    assert vm.steps(preempt) == [("prepare/10-a", "ok")] and azure.approvals()[0] == ("vm1", preempt)


def test_hook_of_an_event_that_may_start_now_does_not_delay_the_urgent_one(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    azure.show(azure.entry(EventType="Redeploy", EventId="A-1", NotBefore=""), azure.entry(EventId="A-2"))
    vm.poll()
    assert [mark.event_id for mark in vm.marks("begin")] == ["A-2"]


def test_hook_of_another_event_ends_when_the_urgent_one_has_no_more_time(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(kill_after=1)
    vm.hook("prepare/10-a", HANGS)
    later = azure.schedule("Preempt", notice="14m", hold=True)
    vm.poll()
    preempt = azure.schedule("Preempt", notice=30, hold=True)
    vm.poll(after=1)
    vm.poll(after=23)
    assert vm.steps(later) == [("prepare/10-a", "running")]
    vm.poll(after=2)
    assert vm.steps(later)[0] == ("prepare/10-a", "stopped") and vm.steps(preempt) == [("prepare/10-a", "skipped")]
    assert azure.requests("POST") == []


def test_failure_of_the_hook_of_another_event_is_not_inherited(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    freeze = azure.schedule("Freeze", hold=True)
    vm.poll()
    preempt = azure.schedule("Preempt", notice=30, hold=True)
    vm.poll(after=1)
    vm.hook("prepare/10-a")
    vm.release("prepare/10-a", exit_status=1)
    vm.settle()
    assert vm.steps(freeze) == [("prepare/10-a", "failed")] and vm.steps(preempt) == [("prepare/10-a", "ok")]
    assert azure.approvals() == [("vm1", preempt)]


def test_less_urgent_event_waits_and_does_not_shorten_the_hook_of_the_urgent_one(
    azure: Azure, vm: EngineHarness
) -> None:
    vm.hook("prepare/10-a", HANGS)
    preempt = azure.schedule("Redeploy", notice="9m", hold=True)
    vm.poll()
    freeze = azure.schedule("Freeze", hold=True)
    vm.poll(after=1)
    assert "shortened" not in vm.timeline(preempt)
    vm.release("prepare/10-a")
    vm.hook("prepare/10-a")
    vm.settle()
    assert vm.ran() == ["prepare/10-a"] * 2 and vm.steps(freeze) == [("prepare/10-a", "ok")]


def test_recovery_that_holds_an_urgent_event_back_gets_half_of_its_time(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(kill_after=1)
    vm.hook("prepare/10-a")
    vm.hook("recover/10-a", HANGS)
    reboot = azure.schedule("Reboot", cancel_after=60)
    vm.poll()
    vm.poll(after=61)
    preempt = azure.schedule("Preempt", notice=30, hold=True)
    vm.poll(after=1)
    vm.poll(after=11)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"]
    vm.poll(after=3)
    assert vm.steps(preempt) == [("prepare/10-a", "ok")] and azure.approvals()[-1] == ("vm1", preempt)
    # the recovery that was cut short comes after the event that needed its time
    azure.cancel(preempt)
    vm.hook("recover/10-a")
    vm.poll(after=1)
    vm.poll(after=1)
    assert vm.record(reboot).closed_at is not None and vm.record(preempt).closed_at is not None


def test_hook_of_an_event_that_is_called_off_goes_on_for_the_one_that_waits_for_it(
    azure: Azure, vm: EngineHarness
) -> None:
    vm.hook("prepare/10-a", HANGS)
    first = azure.schedule("Reboot", hold=True)
    vm.poll()
    second = azure.schedule("Freeze", hold=True, notice="14m")
    vm.poll(after=1)
    azure.cancel(first)
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"]
    vm.release("prepare/10-a")
    vm.settle()
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", second)]
    azure.cancel(second)
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"] and vm.engine.records == []


@pytest.mark.parametrize("how", ["kill", "reboot"])
def test_recovery_waits_for_an_event_that_is_going_to_be_prepared(azure: Azure, vm: EngineHarness, how: str) -> None:
    vm.hook("prepare/10-a", IGNORES_TERM)
    first = azure.schedule("Reboot", hold=True, notice="14m")
    vm.poll()
    second = azure.schedule("Freeze", hold=True)
    vm.poll(after=1)
    vm.restart(how)
    vm.hook("prepare/10-a")
    azure.cancel(first)
    if how != "reboot":
        vm.end_processes()
    vm.poll(after=1)
    vm.poll(after=1)
    assert vm.ran("recover") == []
    azure.cancel(second)
    vm.poll(after=1)
    assert vm.ran("recover") == ["recover/10-a"] and vm.engine.records == []


def test_recovery_does_not_wait_for_an_event_on_hold(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy=HOLD_FREEZE)
    for stage in ("prepare", "recover"):
        vm.hook(stage + "/10-a")
    azure.schedule("Freeze", hold=True)
    reboot = azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.cancel(reboot)
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"] and vm.record(reboot).closed_at is not None


def test_failed_preparation_of_one_event_leaves_the_other_alone(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(hooks={"prepare/10-a": {"types": ["Freeze"]}, "prepare/20-b": {"types": ["Reboot"]}})
    vm.hook("prepare/10-a", FAILS)
    vm.hook("prepare/20-b")
    azure.schedule("Freeze", hold=True)
    reboot = azure.schedule("Reboot", hold=True)
    vm.poll()
    assert azure.approvals() == [("vm1", reboot)]
