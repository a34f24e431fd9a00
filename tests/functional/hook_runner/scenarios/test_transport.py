# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.3: a failing IMDS never ends an event, and is logged once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., RunnerHarness]

SICK = ["empty", "not-json", "events-null", "cut-json", "truncated", "unavailable", "gone", "forbidden-html", "reset"]


def warnings(harness: RunnerHarness) -> int:
    return harness.times_logged("IMDS gives no good answer")


def alarms(harness: RunnerHarness) -> int:
    return harness.times_logged("are stale since")


@pytest.mark.parametrize("started", [False, True])
def test_t47_t54_whatever_the_answer_is_the_event_is_not_over(azure: Azure, vm: RunnerHarness, started: bool) -> None:
    event = azure.schedule("Reboot", hold=not started, started_for="5h")
    vm.poll()
    vm.poll(after=2)
    ran = vm.ran()
    for kind in SICK:
        azure.fault(kind)
        for _poll in range(2):
            vm.poll(after=1)
        azure.heal()
        assert vm.ran() == ran, kind
        assert vm.health.error, kind
        assert vm.record(event).gone_at is None
    vm.poll(after=1)
    assert vm.health.error == "" and vm.ran() == ran
    assert sum(vm.health.errors.values()) >= 2 * len(SICK)
    azure.complete(event)
    vm.poll()
    assert vm.ran() == [*ran, "recover/10-a"]


def test_t49_ten_minutes_without_an_answer_are_an_alarm_and_not_an_end(azure: Azure, vm: RunnerHarness) -> None:
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.fault("refuse")
    for _poll in range(20):
        vm.poll(after=30)
    assert (warnings(vm), alarms(vm)) == (1, 1)
    shown = vm.status()["imds"]
    assert shown["ok"] is False and shown["stale_since"] and shown["errors"] == {"unreachable": 20}
    assert vm.ran() == ["prepare/10-a"]
    azure.heal()
    vm.poll(after=10)
    assert vm.times_logged("IMDS answers again") == 1 and vm.record(event).gone_at is None
    assert vm.status()["imds"]["stale_since"] is None


def test_t52_an_update_of_imds_is_one_warning_and_no_alarm(azure: Azure, vm: RunnerHarness) -> None:
    azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.fault("gone", **{"for": 70})
    for _poll in range(6):
        vm.poll(after=10)
    vm.poll(after=9)
    vm.poll(after=10)
    assert (warnings(vm), alarms(vm)) == (1, 0)
    assert vm.health.error == "" and vm.ran() == ["prepare/10-a"]
