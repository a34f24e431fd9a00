# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Several events for this VM at once: which one is prepared first, and what they share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.daemon.engine_harness import Rig
from support.daemon.hook_scripts import FAILS, HANGS, IGNORES_TERM
from support.daemon.simulated_azure import Azure

MakeRig = Callable[..., Rig]
HOLD_FREEZE = {
    "rules": [
        {"name": "freezes wait", "when": {"type": "Freeze"}, "do": ["hold"]},
        {"name": "others", "when": {"concerns_me": True}, "do": ["prepare", {"approve": "after_prepare"}]},
    ]
}


def test_event_with_the_nearest_deadline_is_prepared_first(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", HANGS)
    azure.schedule("Freeze", notice="14m", hold=True)
    redeploy = azure.schedule("Redeploy", notice="9m", hold=True)
    me.look()
    assert [mark.event_id for mark in me.marks("begin")] == [redeploy]


def test_worst_event_is_prepared_first_where_the_deadlines_are_equal(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", HANGS)
    azure.show(
        azure.entry(EventType="Freeze", EventId="A-1"),
        azure.entry(EventType="Preempt", EventId="A-2"),
        azure.entry(EventId="A-3"),
    )
    me.look()
    assert [mark.event_id for mark in me.marks("begin")] == ["A-2"]


def test_urgent_event_inherits_the_success_of_the_hook_that_runs_for_another(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(hook_timeout="10m")
    me.hook("prepare/10-a", HANGS)
    freeze = azure.schedule("Freeze", hold=True)
    me.look()
    preempt = azure.schedule("Preempt", notice=30, hold=True)
    me.look(after=1)
    assert "shortened" in me.words(freeze) and azure.approvals() == []
    me.release("prepare/10-a")
    me.settle()
    assert me.ran() == ["prepare/10-a"] and me.steps(preempt) == [("prepare/10-a", "ok")] == me.steps(freeze)
    assert sorted(azure.approvals()) == sorted([("vm1", freeze), ("vm1", preempt)])


def test_hook_of_another_event_ends_when_the_urgent_one_has_no_more_time(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(hook_timeout="10m", kill_after=1)
    me.hook("prepare/10-a", HANGS)
    freeze = azure.schedule("Freeze", hold=True)
    me.look()
    preempt = azure.schedule("Preempt", notice=30, hold=True)
    me.look(after=1)
    me.look(after=23)
    assert me.steps(freeze) == [("prepare/10-a", "running")]
    me.look(after=2)
    assert me.steps(freeze)[0] == ("prepare/10-a", "stopped") and me.steps(preempt) == [("prepare/10-a", "skipped")]
    assert azure.requests("POST") == []


def test_failure_of_the_hook_of_another_event_is_not_inherited(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", HANGS)
    freeze = azure.schedule("Freeze", hold=True)
    me.look()
    preempt = azure.schedule("Preempt", notice=30, hold=True)
    me.look(after=1)
    me.hook("prepare/10-a")
    me.release("prepare/10-a", exit_status=1)
    me.settle()
    assert me.steps(freeze) == [("prepare/10-a", "failed")] and me.steps(preempt) == [("prepare/10-a", "ok")]
    assert azure.approvals() == [("vm1", preempt)]


def test_less_urgent_event_waits_and_does_not_shorten_the_hook_of_the_urgent_one(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", HANGS)
    preempt = azure.schedule("Redeploy", notice="9m", hold=True)
    me.look()
    freeze = azure.schedule("Freeze", hold=True)
    me.look(after=1)
    assert "shortened" not in me.words(preempt)
    me.release("prepare/10-a")
    me.hook("prepare/10-a")
    me.settle()
    assert me.ran() == ["prepare/10-a"] * 2 and me.steps(freeze) == [("prepare/10-a", "ok")]


def test_recovery_that_holds_an_urgent_event_back_gets_half_of_its_time(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(hook_timeout="10m", kill_after=1)
    me.hook("prepare/10-a")
    me.hook("recover/10-a", HANGS)
    reboot = azure.schedule("Reboot", cancel_after=60)
    me.look()
    me.look(after=61)
    preempt = azure.schedule("Preempt", notice=30, hold=True)
    me.look(after=1)
    me.look(after=11)
    assert me.ran() == ["prepare/10-a", "recover/10-a"]
    me.look(after=3)
    assert me.steps(preempt) == [("prepare/10-a", "ok")] and azure.approvals()[-1] == ("vm1", preempt)
    # the recovery that was cut short comes after the event that needed its time
    azure.cancel(preempt)
    me.hook("recover/10-a")
    me.look(after=1)
    me.look(after=1)
    assert me.record(reboot).closed_at is not None and me.record(preempt).closed_at is not None


def test_hook_of_an_event_that_is_called_off_goes_on_for_the_one_that_waits_for_it(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", HANGS)
    first = azure.schedule("Reboot", hold=True)
    me.look()
    second = azure.schedule("Freeze", hold=True, notice="14m")
    me.look(after=1)
    azure.cancel(first)
    me.look(after=1)
    assert me.ran() == ["prepare/10-a"]
    me.release("prepare/10-a")
    me.settle()
    assert me.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", second)]
    azure.cancel(second)
    me.look(after=1)
    assert me.ran() == ["prepare/10-a", "recover/10-a"] and me.engine.records == []


@pytest.mark.parametrize("how", ["stop", "kill", "reboot"])
def test_recovery_waits_for_an_event_that_is_going_to_be_prepared(azure: Azure, me: Rig, how: str) -> None:
    me.hook("prepare/10-a", IGNORES_TERM)
    first = azure.schedule("Reboot", hold=True, notice="14m")
    me.look()
    second = azure.schedule("Freeze", hold=True)
    me.look(after=1)
    me.restart(how)
    me.hook("prepare/10-a")
    azure.cancel(first)
    if how != "reboot":
        me.end_processes()
    me.look(after=1)
    me.look(after=1)
    assert me.ran("recover") == []
    azure.cancel(second)
    me.look(after=1)
    assert me.ran("recover") == ["recover/10-a"] and me.engine.records == []


def test_recovery_does_not_wait_for_an_event_on_hold(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(policy=HOLD_FREEZE)
    for stage in ("prepare", "recover"):
        me.hook(stage + "/10-a")
    azure.schedule("Freeze", hold=True)
    reboot = azure.schedule("Reboot", hold=True)
    me.look()
    azure.cancel(reboot)
    me.look(after=1)
    assert me.ran() == ["prepare/10-a", "recover/10-a"] and me.record(reboot).closed_at is not None


def test_failed_preparation_of_one_event_leaves_the_other_alone(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(hooks={"prepare/10-a": {"types": ["Freeze"]}, "prepare/20-b": {"types": ["Reboot"]}})
    me.hook("prepare/10-a", FAILS)
    me.hook("prepare/20-b")
    azure.schedule("Freeze", hold=True)
    reboot = azure.schedule("Reboot", hold=True)
    me.look()
    assert azure.approvals() == [("vm1", reboot)]
