# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Too little time (T22), NotBefore that moves (T26, T27), and hosts whose own clock is wrong (T45)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from support.daemon.engine_harness import Rig
from support.daemon.hook_scripts import ENDS_IN_ITS_OWN_TIME, HANGS, IGNORES_TERM
from support.daemon.simulated_azure import Azure

MakeRig = Callable[..., Rig]


def test_t26_a_later_time_prepares_nothing_twice(azure: Azure, me: Rig) -> None:
    me.configure(policy="observe")
    event = azure.schedule("Reboot", notice=60)
    me.look()
    azure.change(event, notice="20m")
    me.look(after=1)
    me.look(after=100)
    assert me.ran() == ["prepare/10-a"]
    (told,) = me.status()["events"]
    assert told["seconds_left"] == pytest.approx(1100, abs=2)


def test_t26_a_later_time_gives_a_running_hook_longer(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", notice=60)
    me.look()
    azure.change(event, notice="20m")
    me.look(after=50)
    me.look(after=30)
    assert me.steps(event) == [("prepare/10-a", "running")]
    me.release("prepare/10-a")
    me.settle()
    assert me.steps(event) == [("prepare/10-a", "ok")] and azure.approvals() == [("vm1", event)]


@pytest.mark.parametrize("skipped", [True, False])
def test_t26_a_later_time_runs_what_only_lacked_time(azure: Azure, make_rig: MakeRig, skipped: bool) -> None:
    me = make_rig(hooks={"10-a": {"needs": 120 if skipped else 0}})
    me.hook("prepare/10-a", HANGS)
    me.hook("prepare/20-b")
    event = azure.schedule("Reboot", notice=60)
    me.look()
    if not skipped:
        me.look(after=55)
    assert me.steps(event)[0] == ("prepare/10-a", "skipped" if skipped else "timeout") and azure.approvals() == []
    azure.change(event, notice="20m")
    me.look(after=1)
    me.release("prepare/10-a")
    me.settle()
    assert me.ran()[-1] == "prepare/10-a" if skipped else me.ran().count("prepare/10-a") == 2
    assert me.steps(event)[-1][1] == "ok" and azure.approvals() == [("vm1", event)]


def test_t26_a_later_time_comes_as_the_hook_is_being_ended(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(kill_after=600, margin=300, hook_timeout=3600)
    me.hook("prepare/10-a", ENDS_IN_ITS_OWN_TIME)
    event = azure.schedule("Reboot", notice=1200)
    me.look()
    me.pass_time(900)
    me.poll()
    me.wait(lambda: me.marks("term"))
    azure.change(event, notice="40m")
    me.hook("prepare/10-a")
    me.release("prepare/10-a", 1)
    me.look(after=1)
    assert me.steps(event) == [("prepare/10-a", "stopped"), ("prepare/10-a", "ok")] and azure.approvals() == [
        ("vm1", event)
    ]


def test_t26_what_was_left_out_may_be_left_out_often(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(hooks={"10-a": {"needs": 120}})
    me.hook("prepare/10-a")
    event = azure.schedule("Reboot", notice=60)
    for notice in (60, 65, 70, 75, 80):
        azure.change(event, notice=notice)
        me.look(after=1)
    assert me.ran() == []
    azure.change(event, notice=200)
    me.look(after=1)
    assert me.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_t27_an_earlier_time_shortens_the_plan_with_a_warning(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot")
    me.look()
    azure.change(event, notice="60s")
    me.look(after=10)
    assert "shortened" in me.words(event) and me.said("NotBefore has come nearer: 50 s are left") == 1
    me.look(after=44)
    assert me.steps(event) == [("prepare/10-a", "running")]
    me.look(after=1)
    assert me.steps(event) == [("prepare/10-a", "timeout")] and azure.approvals() == []


@pytest.mark.parametrize("minutes", [20, -20, 60 * 24 * 400])
def test_t45_a_wrong_clock_of_the_host_does_not_matter(azure: Azure, make_rig: MakeRig, minutes: int) -> None:
    me = make_rig()
    me.wall_is_off = timedelta(minutes=minutes)
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", notice=120)
    me.look()
    assert (me.marks()[0].seconds_left, me.marks()[0].hook_seconds) == (120, 115)
    me.look(after=114)
    assert me.steps(event) == [("prepare/10-a", "running")]
    me.look(after=1)
    assert me.steps(event) == [("prepare/10-a", "timeout")]


@pytest.mark.parametrize("minutes", [20, -20, 60])
def test_t45_a_clock_that_is_set_while_a_hook_runs_does_not_matter(
    azure: Azure, make_rig: MakeRig, minutes: int
) -> None:
    me = make_rig()
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", notice=120)
    me.look()
    me.wall_is_off = timedelta(minutes=minutes)
    me.look(after=114)
    assert me.steps(event) == [("prepare/10-a", "running")]
    me.look(after=1)
    assert me.steps(event) == [("prepare/10-a", "timeout")]


@pytest.mark.parametrize("skew", [3600, -3600, 86400])
def test_one_odd_date_neither_ends_a_hook_nor_begins_one_late(azure: Azure, make_rig: MakeRig, skew: int) -> None:
    me = make_rig()
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", notice=120)
    me.look()
    for _odd in range(3):
        azure.fault("date-skew", skew=skew, requests="1")
        me.look(after=10)
        azure.heal()
        me.look(after=10)
    assert me.steps(event) == [("prepare/10-a", "running")] and me.said("the answer has a date") == 1
    me.look(after=55)
    assert me.steps(event) == [("prepare/10-a", "timeout")] and me.said("the answer has a date") == 1


def test_a_date_that_three_answers_agree_on_counts(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig()
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", notice=120)
    me.look()
    azure.fault("date-skew", skew=3600)
    for _answer in range(2):
        me.look(after=1)
        assert me.steps(event) == [("prepare/10-a", "running")]
    me.look(after=1)
    assert me.steps(event) == [("prepare/10-a", "timeout")]


@pytest.mark.parametrize("minutes", [20, -20])
def test_t45_a_wrong_clock_ends_no_hook_that_outlived_a_restart(azure: Azure, make_rig: MakeRig, minutes: int) -> None:
    me = make_rig(hook_timeout=300)
    me.wall_is_off = timedelta(minutes=minutes)
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot")
    me.look()
    me.restart("kill")
    me.settle()
    me.look(after=200)
    assert me.steps(event) == [("prepare/10-a", "running")]
    me.look(after=101)
    assert me.steps(event) == [("prepare/10-a", "timeout")]


def test_t22_a_preempt_gets_the_short_plan(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(hook_timeout=120)
    me.hook("prepare/10-a", HANGS)
    me.hook("prepare/20-b")
    me.hook("recover/10-a")
    event = azure.schedule("Preempt", notice=30)
    me.look()
    assert (me.marks()[0].hook_seconds, me.marks()[0].seconds_left) == (25, 30)
    me.look(after=24)
    assert me.steps(event) == [("prepare/10-a", "running")]
    me.look(after=1)
    assert me.steps(event) == [("prepare/10-a", "timeout"), ("prepare/20-b", "skipped")]
    assert azure.requests("POST") == []
    # the host is gone all of a sudden; whoever comes back as it recovers
    me.restart("reboot")
    me.look(after=300)
    assert me.ran() == ["prepare/10-a", "recover/10-a"]


def test_t22_four_seconds_are_used_as_well_and_the_kill_comes_before_the_end(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(kill_after=600)
    me.hook("prepare/10-a", IGNORES_TERM)
    event = azure.schedule("Preempt", notice=4)
    me.look()
    assert me.marks()[0].hook_seconds == 3
    me.look(after=3)
    # half of the second that is left, not the ten minutes of kill_after
    assert me.steps(event) == [("prepare/10-a", "timeout")]
    assert me.record(event).steps[0].exit_status == -9 and len(me.marks("term")) == 1
