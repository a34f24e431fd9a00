# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Records cannot be written, or are lost, and the daemon is killed: systemd has the results of hooks."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest

from support.daemon.engine_harness import EngineHarness
from support.daemon.hook_scripts import HANGS
from support.daemon.simulated_azure import Azure
from support.daemon.small_disk import Disk


def test_result_stays_until_its_record_is_written_so_that_a_kill_prepares_once(
    azure: Azure, vm: EngineHarness, disk: Disk
) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    disk.fail()
    vm.release("prepare/10-a")
    vm.settle()
    assert vm.steps(event) == [("prepare/10-a", "ok")]
    assert len(vm.systemd.units()) == 1
    for _kill in range(3):
        vm.restart("kill")
        vm.poll(after=1)
        assert vm.steps(event) == [("prepare/10-a", "ok")] and len(vm.systemd.units()) == 1
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == []
    disk.heal()
    vm.restart("kill")
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]
    vm.wait(lambda: vm.systemd.units() == [])


def test_units_go_once_records_are_written_again(azure: Azure, vm: EngineHarness, disk: Disk) -> None:
    vm.hook("prepare/20-b", HANGS)
    azure.schedule("Reboot")
    vm.engine.runtime.hooks = {}
    disk.fail()
    vm.engine.reconfigure(vm.settings, vm._hooks())
    vm.poll()
    assert len(vm.systemd.units()) == 2
    disk.heal()
    vm.release("prepare/20-b")
    vm.settle()
    assert vm.store.error is None
    vm.wait(lambda: vm.systemd.units() == [])


@pytest.mark.parametrize("ends_before", [True, False], ids=["ended", "runs"])
def test_run_whose_start_was_never_written_is_adopted(
    azure: Azure, vm: EngineHarness, disk: Disk, ends_before: bool
) -> None:
    vm.hook("prepare/10-a", HANGS)
    vm.start()
    disk.fail()
    event = azure.schedule("Reboot")
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
    assert "hook-adopted" in vm.timeline(event)
    disk.heal()
    vm.poll(after=1)
    vm.restart("kill")
    vm.poll(after=1)
    assert vm.ran("prepare") == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_event_that_came_back_after_a_recovery_is_prepared_again(azure: Azure, vm: EngineHarness, disk: Disk) -> None:
    vm.start()
    disk.fail()
    entry = azure.entry()
    azure.show(entry)
    vm.poll()
    azure.show()
    vm.poll(after=1)
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"]
    vm.restart("kill")
    azure.show(entry)
    vm.poll(after=1)
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"]


def test_event_whose_end_was_not_written_is_recovered_once_more(azure: Azure, vm: EngineHarness, disk: Disk) -> None:
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    disk.fail()
    azure.cancel(event)
    vm.poll(after=1)
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"]
    vm.restart("kill")
    vm.poll(after=1)
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a", "recover/10-a"]
    assert vm.engine.records == []


def test_lost_run_of_an_event_that_is_gone_is_ended_and_undone(azure: Azure, vm: EngineHarness, disk: Disk) -> None:
    vm.hook("prepare/10-a", HANGS)
    vm.start()
    disk.fail()
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    vm.restart("kill")
    assert len(vm.systemd.units()) == 1
    disk.heal()
    azure.cancel(event)
    vm.poll(after=1)

    def has_ended() -> bool:
        vm.engine.tick()
        return vm.systemd.units() == []

    vm.wait(has_ended)
    vm.poll(after=1)
    assert vm.engine.records == [] and vm.ran() == ["prepare/10-a", "recover/10-a"]


def test_event_of_which_a_read_only_disk_has_no_record_is_recovered(
    azure: Azure, vm: EngineHarness, disk: Disk
) -> None:
    vm.start()
    disk.fail(errno.EROFS)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    # the marker cannot be renamed; the unit shows that a hook has run
    assert os.path.exists(os.path.join(vm.settings.state_directory, "clean"))
    azure.cancel(event)
    disk.heal()
    vm.restart("kill")
    vm.poll(after=1)
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"] and vm.engine.records == []


def test_event_of_which_a_full_disk_has_no_record_is_recovered_after_a_reboot(
    azure: Azure, make_vm: Callable[..., EngineHarness], disk: Disk
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
    assert vm.ran() == ["prepare/10-a", "recover/10-a"] and vm.engine.records == []


def test_no_success_counts_after_a_full_disk_and_a_reboot(
    azure: Azure, make_vm: Callable[..., EngineHarness], disk: Disk
) -> None:
    vm = make_vm(hooks={"10-a": {"persists": True}})
    vm.delivers_approvals = False
    vm.hook("prepare/10-a")
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    disk.fail()
    vm.engine.pausing.begin("root", None, "")
    vm.engine.tick()
    disk.heal()
    vm.restart("reboot")
    vm.delivers_approvals = True
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "prepare/10-a"] and azure.approvals() == [("vm1", event)]
