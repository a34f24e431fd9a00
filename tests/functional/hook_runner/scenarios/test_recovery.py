# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Recovery: after the last event of the maintenance, until it succeeds, also when it was cut short."""

from __future__ import annotations

import pytest

from support.daemon.hook_scripts import FAILS, HANGS
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure


@pytest.mark.parametrize("how", ["kill", "reboot"])
def test_recovery_that_is_always_interrupted_is_not_given_up(azure: Azure, vm: RunnerHarness, how: str) -> None:
    vm.hook("recover/10-a", HANGS)
    event = azure.schedule("Reboot", cancel_after=60)
    vm.poll()
    vm.poll(after=61)
    for _attempt in range(4):
        vm.end_processes()
        vm.restart(how)
        vm.poll(after=1)
        vm.poll(after=200)
    vm.release("recover/10-a")
    vm.settle()
    assert vm.steps(event)[1:] == [("recover/10-a", "interrupted")] * 4 + [("recover/10-a", "ok")]
    assert vm.runner.records.maintenance is None


def test_failed_recovery_is_shown_and_repeated_with_growing_pauses_across_restarts(
    azure: Azure, vm: RunnerHarness
) -> None:
    vm.hook("recover/10-a", FAILS)
    azure.schedule("Reboot", cancel_after=60)
    vm.poll()
    vm.poll(after=61)
    for seconds, runs in ((9, 1), (1, 2), (19, 2), (1, 3)):
        vm.poll(after=seconds)
        assert len(vm.ran("recover")) == runs
    vm.restart("kill")
    vm.poll(after=1)
    shown = vm.status()
    assert len(vm.ran("recover")) == 3 and shown["maintenance"]["not_recovered"] == ["10-a"]
    assert 0 < shown["maintenance"]["next_attempt"] <= 40
    vm.hook("recover/10-a")
    vm.poll(after=40)
    assert len(vm.ran("recover")) == 4 and vm.runner.records.maintenance is None
    assert vm.times_logged("closed: recovered; outcome") == 1
