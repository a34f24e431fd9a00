# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Too little time (T22), hosts whose own clock is wrong (T45), and deadlines while IMDS does not answer."""

from __future__ import annotations

from datetime import timedelta

import pytest

from support.daemon.hook_scripts import HANGS, IGNORES_TERM
from support.daemon.runner_harness import MakeVm, RunnerHarness
from support.daemon.simulated_azure import Azure


@pytest.mark.parametrize("before, later", [(60 * 24 * 400, 0), (0, -20)])
def test_t45_a_wrong_clock_of_the_host_does_not_matter(azure: Azure, make_vm: MakeVm, before: int, later: int) -> None:
    vm = make_vm()
    vm.wall_offset = timedelta(minutes=before)
    vm.hook("prepare/10-a", HANGS)
    azure.schedule("Reboot", notice=120)
    vm.poll()
    assert (vm.marks()[0].seconds_left, vm.marks()[0].hook_seconds) == (120, 115)
    vm.wall_offset = timedelta(minutes=later)
    vm.restart("kill")
    vm.settle()
    vm.poll(after=114)
    assert vm.steps() == [("prepare/10-a", "running")]
    vm.poll(after=1)
    assert vm.steps() == [("prepare/10-a", "cut")]


def test_t22_four_seconds_are_used_as_well_and_the_kill_comes_before_the_end(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(kill_after=600)
    vm.hook("prepare/10-a", IGNORES_TERM)
    azure.schedule("Preempt", notice=4)
    vm.poll()
    assert vm.marks()[0].hook_seconds == 3
    vm.poll(after=3)
    # a part of the second that is left, not the ten minutes of kill_after
    assert vm.steps() == [("prepare/10-a", "cut")]
    assert vm.runs[0].exit_status == -9 and len(vm.marks("term")) == 1


def test_deadline_of_a_hook_that_was_adopted_holds_before_imds_answers(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    azure.schedule("Reboot", notice=60)
    vm.poll()
    azure.fault("reset")
    vm.restart("kill")
    vm.poll(after=50)
    assert vm.steps() == [("prepare/10-a", "running")]
    vm.poll(after=7)
    assert vm.steps() == [("prepare/10-a", "cut")] and azure.approvals() == []
