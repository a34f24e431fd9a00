# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""NotBefore has passed, and the event is still Scheduled."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from support.daemon.hook_scripts import HANGS
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., RunnerHarness]


def test_hooks_have_30_seconds_each_when_not_before_has_passed(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(kill_after=1)
    vm.hook("prepare/10-a", HANGS)
    azure.show(azure.entry(NotBefore=azure.in_seconds(-5)))
    vm.poll()
    assert vm.marks()[0].hook_seconds == 30
    vm.poll(after=29)
    assert vm.ran() == ["prepare/10-a"]
    vm.hook("prepare/10-a")
    vm.poll(after=2)
    assert vm.steps(azure.entry()["EventId"]) == [("prepare/10-a", "cut"), ("prepare/10-a", "ok")]


def test_late_preparation_ends_when_the_event_starts(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    azure.show(azure.entry(NotBefore=azure.in_seconds(-5)))
    vm.poll()
    azure.show(azure.entry(NotBefore="", EventStatus="Started"))
    vm.poll(after=1)
    assert vm.steps(azure.entry()["EventId"]) == [("prepare/10-a", "stopped"), ("started/10-a", "ok")]


@pytest.mark.parametrize("minutes", [20, -20])
def test_preparation_runs_where_the_clocks_are_ahead_of_not_before(
    azure: Azure, vm: RunnerHarness, minutes: int
) -> None:
    azure.fault("date-skew", skew=f"{int(minutes)}m")
    vm.wall_offset = timedelta(minutes=minutes)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    assert vm.steps(event) == [("prepare/10-a", "ok")] and azure.approvals() == [("vm1", event)]


def test_hooks_that_lacked_time_run_when_the_event_does_not_start(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(kill_after=1)
    vm.hook("prepare/10-a", HANGS)
    vm.hook("prepare/20-b")
    azure.show(azure.entry(NotBefore=azure.in_seconds(30)))
    vm.poll()
    vm.poll(after=26)
    event = azure.entry()["EventId"]
    assert vm.steps(event) == [("prepare/10-a", "cut")] and vm.status()["events"][0]["prepared"] == "failed"
    vm.hook("prepare/10-a")
    vm.poll(after=5)
    assert vm.steps(event)[1:] == [("prepare/10-a", "ok"), ("prepare/20-b", "ok")]
