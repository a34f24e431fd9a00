# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Too little time (T22), NotBefore that moves (T26, T27), and hosts whose own clock is wrong (T45)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from support.daemon.hook_scripts import HANGS, IGNORES_TERM
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., RunnerHarness]


def test_t26_a_later_time_prepares_nothing_twice(azure: Azure, vm: RunnerHarness) -> None:
    vm.configure(policy="observe")
    event = azure.schedule("Reboot", notice=60)
    vm.poll()
    azure.change(event, notice="20m")
    vm.poll(after=1)
    vm.poll(after=100)
    assert vm.ran() == ["prepare/10-a"]
    (shown,) = vm.status()["events"]
    assert shown["seconds_left"] == pytest.approx(1100, abs=2)


def test_t27_an_earlier_time_ends_the_hook_earlier(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot")
    vm.poll()
    azure.change(event, notice="60s")
    vm.poll(after=10)
    vm.poll(after=44)
    assert vm.steps(event) == [("prepare/10-a", "running")]
    vm.poll(after=1)
    assert vm.steps(event) == [("prepare/10-a", "cut")] and azure.approvals() == []
    assert vm.times_logged("hook-ending") == 1


@pytest.mark.parametrize("before, later", [(20, 20), (-20, -20), (60 * 24 * 400, 0), (0, 20), (0, -20)])
def test_t45_a_wrong_clock_of_the_host_does_not_matter(azure: Azure, make_vm: MakeVm, before: int, later: int) -> None:
    vm = make_vm()
    vm.wall_offset = timedelta(minutes=before)
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", notice=120)
    vm.poll()
    assert (vm.marks()[0].seconds_left, vm.marks()[0].hook_seconds) == (120, 115)
    vm.wall_offset = timedelta(minutes=later)
    vm.restart("kill")
    vm.settle()
    vm.poll(after=114)
    assert vm.steps(event) == [("prepare/10-a", "running")]
    vm.poll(after=1)
    assert vm.steps(event) == [("prepare/10-a", "cut")]


@pytest.mark.parametrize("skew", [3600, -3600])
def test_one_odd_date_does_not_end_a_hook_and_three_that_agree_do(azure: Azure, make_vm: MakeVm, skew: int) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", notice=120)
    vm.poll()
    azure.fault("date-skew", skew=skew, requests="1")
    vm.poll(after=10)
    azure.heal()
    vm.poll(after=10)
    assert vm.steps(event) == [("prepare/10-a", "running")] and vm.times_logged("the answer has a date") == 1
    azure.fault("date-skew", skew=3600)
    for _answer in range(2):
        vm.poll(after=1)
        assert vm.steps(event) == [("prepare/10-a", "running")]
    vm.poll(after=1)
    # NotBefore has passed, and the event has not started
    assert vm.steps(event) == [("prepare/10-a", "cut"), ("prepare/10-a", "running")]
    assert vm.marks("begin")[-1].hook_seconds == 30


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
    assert vm.steps(event) == [("prepare/10-a", "cut")] and vm.status()["events"][0]["prepared"] == "failed"
    # the host disappears at once; the host that returns under its name recovers
    vm.restart("reboot")
    vm.poll(after=300)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"] and azure.requests("POST") == []


def test_t22_four_seconds_are_used_as_well_and_the_kill_comes_before_the_end(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(kill_after=600)
    vm.hook("prepare/10-a", IGNORES_TERM)
    event = azure.schedule("Preempt", notice=4)
    vm.poll()
    assert vm.marks()[0].hook_seconds == 3
    vm.poll(after=3)
    # a part of the second that is left, not the ten minutes of kill_after
    assert vm.steps(event) == [("prepare/10-a", "cut")]
    assert vm.maintenance(event).runs[0].exit_status == -9 and len(vm.marks("term")) == 1


@pytest.mark.parametrize("minutes", [20, -20])
def test_preparation_runs_where_the_clocks_are_ahead_of_not_before(
    azure: Azure, vm: RunnerHarness, minutes: int
) -> None:
    azure.fault("date-skew", skew=f"{int(minutes)}m")
    vm.wall_offset = timedelta(minutes=minutes)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    assert vm.steps(event) == [("prepare/10-a", "ok")] and azure.approvals() == [("vm1", event)]
