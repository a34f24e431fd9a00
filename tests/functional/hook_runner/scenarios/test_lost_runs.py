# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Records cannot be written, or are lost, and the daemon is killed: systemd has the results of hooks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.daemon.hook_scripts import HANGS
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure
from support.daemon.small_disk import Disk

MakeVm = Callable[..., RunnerHarness]


def test_result_stays_until_its_record_is_written_so_that_a_kill_prepares_once(
    azure: Azure, vm: RunnerHarness, disk: Disk
) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    disk.fail()
    vm.release("prepare/10-a")
    vm.settle()
    for _kill in range(3):
        assert vm.steps(event) == [("prepare/10-a", "ok")] and len(vm.systemd.units()) == 1
        vm.restart("kill")
        vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == []
    disk.heal()
    vm.restart("kill")
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]
    vm.wait(lambda: vm.systemd.units() == [])


@pytest.mark.parametrize("ends_before", [True, False], ids=["ended", "runs"])
def test_run_whose_start_was_never_written_is_adopted(
    azure: Azure, vm: RunnerHarness, disk: Disk, ends_before: bool
) -> None:
    vm.hook("prepare/10-a", HANGS)
    vm.start()
    disk.fail()
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    if ends_before:
        vm.release("prepare/10-a")
        vm.settle()
    vm.restart("kill")
    vm.poll(after=1)
    if not ends_before:
        vm.release("prepare/10-a")
        vm.settle()
    assert vm.ran() == ["prepare/10-a"] and vm.steps(event) == [("prepare/10-a", "ok")]
    disk.heal()
    vm.poll(after=1)
    vm.restart("kill")
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_event_of_which_a_full_disk_has_no_record_is_recovered_after_a_reboot(
    azure: Azure, make_vm: MakeVm, disk: Disk
) -> None:
    vm = make_vm(hooks={"recover/10-a": {"types": ["Freeze"]}})
    vm.hook("prepare/10-a")
    vm.hook("recover/10-a")
    vm.start()
    disk.fail()
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.cancel(event)
    disk.heal()
    vm.restart("reboot")
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"] and vm.runner.records.maintenance is None
