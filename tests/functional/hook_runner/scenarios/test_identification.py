# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Which VM this is: remembered for a start at which IMDS does not say it, and compared with that of the records."""

from __future__ import annotations

import os
import shutil

import pytest

from hook_runner import record_files
from support.daemon.hook_scripts import HANGS
from support.daemon.runner_harness import MakeVm, RunnerHarness
from support.daemon.simulated_azure import Azure


def copied(source: RunnerHarness, target: RunnerHarness) -> None:
    """Give a VM the disk of another one, which has been stopped."""
    shutil.copytree(source.settings.state_directory, target.settings.state_directory)
    target.boot_number = 9


@pytest.mark.parametrize("how", ["kill", "reboot"])
def test_event_is_prepared_after_a_restart_although_imds_does_not_give_the_name(
    azure: Azure, vm: RunnerHarness, how: str
) -> None:
    vm.poll()
    azure.fault("server-error", route="instance")
    event = azure.schedule("Preempt", notice=30, hold=True)
    vm.restart(how)
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_nothing_happens_until_imds_gives_the_name(azure: Azure, vm: RunnerHarness) -> None:
    event = azure.schedule("Reboot")
    azure.fault("server-error", route="instance")
    vm.poll()
    vm.poll(after=5)
    assert vm.ran() == [] and azure.requests("POST") == [] and vm.status()["vm"] is None
    assert vm.times_logged("resource name is not known yet") == 1
    azure.heal()
    vm.poll(after=5)
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_records_of_another_vm_are_set_aside_and_none_of_their_hooks_runs(azure: Azure, make_vm: MakeVm) -> None:
    one, two = make_vm("vm1"), make_vm("vm2")
    for harness in (one, two):
        harness.hook("prepare/10-a")
        harness.hook("recover/10-a", HANGS)
    over = azure.schedule("Freeze", "vm1", hold=True)
    one.poll()
    azure.cancel(over)
    one.poll(after=1)
    other = azure.schedule("Reboot", "vm1", hold=True)
    copied(one, two)
    two.start().tick()
    two.poll(after=1)
    assert two.ran() == []
    assert [(each["event_id"], each["affects_this_vm"]) for each in two.status()["events"]] == [(other, False)]
    (aside,) = two.status()["records"]["set_aside"]
    assert {"history", "maintenance.json", "state.json"} <= set(os.listdir(aside))
    assert record_files.stored(aside).state.vm.name == "vm1" and record_files.stored(aside).maintenances
    mine = azure.schedule("Reboot", "vm2", hold=True)
    two.poll(after=1)
    assert two.ran() == ["prepare/10-a"] and azure.approvals()[-1] == ("vm2", mine)


def test_records_of_another_vm_are_noticed_by_a_configured_name(azure: Azure, make_vm: MakeVm) -> None:
    one, two = make_vm("vm1", resource_name="vm1"), make_vm("vm2", resource_name="vm2")
    for harness in (one, two):
        harness.hook("prepare/10-a")
    azure.schedule("Reboot", "vm1", hold=True)
    one.poll()
    copied(one, two)
    two.poll(after=1)
    assert two.ran() == [] and two.times_logged("this VM is vm2") == 1
