# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Too little time (T22), NotBefore that moves (T26, T27), and hosts whose own clock is wrong (T45)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from support.daemon.engine_harness import EngineHarness
from support.daemon.hook_scripts import ENDS_IN_ITS_OWN_TIME, HANGS, IGNORES_TERM
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., EngineHarness]


def test_t26_a_later_time_prepares_nothing_twice(azure: Azure, vm: EngineHarness) -> None:
    vm.configure(policy="observe")
    event = azure.schedule("Reboot", notice=60)
    vm.poll()
    azure.change(event, notice="20m")
    vm.poll(after=1)
    vm.poll(after=100)
    assert vm.ran() == ["prepare/10-a"]
    (shown,) = vm.status()["events"]
    assert shown["seconds_left"] == pytest.approx(1100, abs=2)


def test_t26_a_later_time_gives_a_running_hook_longer(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", notice=60)
    vm.poll()
    azure.change(event, notice="20m")
    vm.poll(after=50)
    vm.poll(after=30)
    assert vm.steps(event) == [("prepare/10-a", "running")]
    vm.release("prepare/10-a")
    vm.settle()
    assert vm.steps(event) == [("prepare/10-a", "ok")] and azure.approvals() == [("vm1", event)]


@pytest.mark.parametrize("skipped", [True, False])
def test_t26_a_later_time_runs_what_only_lacked_time(azure: Azure, make_vm: MakeVm, skipped: bool) -> None:
    vm = make_vm(hooks={"10-a": {"needs": 120 if skipped else 0}})
    vm.hook("prepare/10-a", HANGS)
    vm.hook("prepare/20-b")
    event = azure.schedule("Reboot", notice=60)
    vm.poll()
    if not skipped:
        vm.poll(after=55)
    assert vm.steps(event)[0] == ("prepare/10-a", "skipped" if skipped else "timeout") and azure.approvals() == []
    azure.change(event, notice="20m")
    vm.poll(after=1)
    vm.release("prepare/10-a")
    vm.settle()
    assert vm.ran()[-1] == "prepare/10-a" if skipped else vm.ran().count("prepare/10-a") == 2
    assert vm.steps(event)[-1][1] == "ok" and azure.approvals() == [("vm1", event)]


def test_t26_a_later_time_comes_as_the_hook_is_being_ended(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(kill_after=600, margin=300, hooks={"10-a": {"timeout": 3600}})
    vm.hook("prepare/10-a", ENDS_IN_ITS_OWN_TIME)
    event = azure.schedule("Reboot", notice=1200)
    vm.poll()
    vm.pass_time(900)
    vm.receive_document()
    vm.wait(lambda: vm.marks("term"))
    azure.change(event, notice="40m")
    vm.hook("prepare/10-a")
    vm.release("prepare/10-a", 1)
    vm.poll(after=1)
    assert vm.steps(event) == [("prepare/10-a", "stopped"), ("prepare/10-a", "ok")] and azure.approvals() == [
        ("vm1", event)
    ]


def test_t26_what_was_left_out_may_be_left_out_often(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(hooks={"10-a": {"needs": 120}})
    vm.hook("prepare/10-a")
    event = azure.schedule("Reboot", notice=60)
    for notice in (60, 65, 70, 75, 80):
        azure.change(event, notice=notice)
        vm.poll(after=1)
    assert vm.ran() == []
    azure.change(event, notice=200)
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_t27_an_earlier_time_shortens_the_plan_with_a_warning(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot")
    vm.poll()
    azure.change(event, notice="60s")
    vm.poll(after=10)
    assert "shortened" in vm.timeline(event) and vm.times_logged("NotBefore has come nearer: 50 s are left") == 1
    vm.poll(after=44)
    assert vm.steps(event) == [("prepare/10-a", "running")]
    vm.poll(after=1)
    assert vm.steps(event) == [("prepare/10-a", "timeout")] and azure.approvals() == []


@pytest.mark.parametrize("minutes", [20, -20, 60 * 24 * 400])
def test_t45_a_wrong_clock_of_the_host_does_not_matter(azure: Azure, make_vm: MakeVm, minutes: int) -> None:
    vm = make_vm()
    vm.wall_offset = timedelta(minutes=minutes)
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", notice=120)
    vm.poll()
    assert (vm.marks()[0].seconds_left, vm.marks()[0].hook_seconds) == (120, 115)
    vm.poll(after=114)
    assert vm.steps(event) == [("prepare/10-a", "running")]
    vm.poll(after=1)
    assert vm.steps(event) == [("prepare/10-a", "timeout")]


@pytest.mark.parametrize("minutes", [20, -20, 60])
def test_t45_a_clock_that_is_set_while_a_hook_runs_does_not_matter(azure: Azure, make_vm: MakeVm, minutes: int) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", notice=120)
    vm.poll()
    vm.wall_offset = timedelta(minutes=minutes)
    vm.poll(after=114)
    assert vm.steps(event) == [("prepare/10-a", "running")]
    vm.poll(after=1)
    assert vm.steps(event) == [("prepare/10-a", "timeout")]


@pytest.mark.parametrize("skew", [3600, -3600, 86400])
def test_one_odd_date_neither_ends_a_hook_nor_begins_one_late(azure: Azure, make_vm: MakeVm, skew: int) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", notice=120)
    vm.poll()
    for _odd in range(3):
        azure.fault("date-skew", skew=skew, requests="1")
        vm.poll(after=10)
        azure.heal()
        vm.poll(after=10)
    assert vm.steps(event) == [("prepare/10-a", "running")] and vm.times_logged("the answer has a date") == 1
    vm.poll(after=55)
    assert vm.steps(event) == [("prepare/10-a", "timeout")] and vm.times_logged("the answer has a date") == 1


def test_a_date_that_three_answers_agree_on_counts(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", notice=120)
    vm.poll()
    azure.fault("date-skew", skew=3600)
    for _answer in range(2):
        vm.poll(after=1)
        assert vm.steps(event) == [("prepare/10-a", "running")]
    vm.poll(after=1)
    assert vm.steps(event) == [("prepare/10-a", "timeout")]


@pytest.mark.parametrize("minutes", [20, -20])
def test_t45_a_wrong_clock_ends_no_hook_that_outlived_a_restart(azure: Azure, make_vm: MakeVm, minutes: int) -> None:
    vm = make_vm(hooks={"10-a": {"timeout": 300}})
    vm.wall_offset = timedelta(minutes=minutes)
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot")
    vm.poll()
    vm.restart("kill")
    vm.settle()
    vm.poll(after=200)
    assert vm.steps(event) == [("prepare/10-a", "running")]
    vm.poll(after=101)
    assert vm.steps(event) == [("prepare/10-a", "timeout")]


def test_t22_a_preempt_gets_the_short_plan(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a", HANGS)
    vm.hook("prepare/20-b")
    vm.hook("recover/10-a")
    event = azure.schedule("Preempt", notice=30)
    vm.poll()
    assert (vm.marks()[0].hook_seconds, vm.marks()[0].seconds_left) == (25, 30)
    vm.poll(after=24)
    assert vm.steps(event) == [("prepare/10-a", "running")]
    vm.poll(after=1)
    assert vm.steps(event) == [("prepare/10-a", "timeout"), ("prepare/20-b", "skipped")]
    assert azure.requests("POST") == []
    # the host disappears at once; the host that returns under its name recovers
    vm.restart("reboot")
    vm.poll(after=300)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"]


def test_t22_four_seconds_are_used_as_well_and_the_kill_comes_before_the_end(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(kill_after=600)
    vm.hook("prepare/10-a", IGNORES_TERM)
    event = azure.schedule("Preempt", notice=4)
    vm.poll()
    assert vm.marks()[0].hook_seconds == 3
    vm.poll(after=3)
    # half of the second that is left, not the ten minutes of kill_after
    assert vm.steps(event) == [("prepare/10-a", "timeout")]
    assert vm.record(event).steps[0].exit_status == -9 and len(vm.marks("term")) == 1
