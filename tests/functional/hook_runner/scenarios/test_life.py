# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.1: lives of events, and the recovery until it succeeds."""

from __future__ import annotations

import json
import shutil

import pytest

from support.daemon.hook_scripts import FAILS, HANGS
from support.daemon.runner_harness import MakeVm, RunnerHarness
from support.daemon.simulated_azure import Azure
from support.daemon.small_disk import Disk


def test_t01_prepare_approve_started_recover(azure: Azure, vm: RunnerHarness) -> None:
    vm.poll()
    assert not vm.runner.has_events
    event = azure.schedule("Freeze", duration=5, started_for="5m")
    vm.poll()
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]
    vm.poll(after=2)
    assert vm.ran() == ["prepare/10-a", "started/10-a"]
    vm.poll(after=310)
    vm.poll(after=60)
    assert vm.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"]
    assert vm.marks("begin")[-1].outcome == vm.maintenance(event).outcome == "completed"
    assert azure.approvals() == [("vm1", event)] and not vm.runner.has_events


def test_t18_another_client_approves_during_prepare(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Freeze", "vm2", "vm1", started_for=60)
    vm.poll()
    azure.approve(event, "vm2")
    vm.poll(after=2)
    assert vm.steps(event) == [("prepare/10-a", "stopped"), ("started/10-a", "ok")] and azure.approvals() == []
    vm.poll(after=60)
    assert vm.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"]


def test_t20_approval_is_not_repeated_while_other_tenants_hold_the_event(azure: Azure, vm: RunnerHarness) -> None:
    event = azure.schedule("Freeze", hold=True)
    for _minute in range(10):
        vm.poll(after=60)
    (shown,) = vm.status()["events"]
    assert (shown["status"], shown["approval"], shown["reason_code"]) == ("Scheduled", "accepted", "accepted")
    vm.restart("reboot")
    vm.poll(after=60)
    assert azure.approvals() == [("vm1", event)] and len(azure.requests("POST")) == 1
    vm.poll(after=301)
    assert vm.ran() == ["prepare/10-a", "prepare/10-a", "started/10-a"]


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


def test_record_with_two_open_runs_holds_nothing_up(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    # the daemon took over two runs after a full disk, and was killed; systemd has no unit of the second one
    record = vm.folder / "state/maintenance.json"
    content = json.loads(record.read_text())
    (run,) = content["runs"]
    content["runs"].append({**run, "number": run["number"] + 1})
    record.write_text(json.dumps(content))
    vm.restart()
    vm.poll(after=1)
    vm.release("prepare/10-a")
    vm.settle()
    assert vm.steps(event) == [("prepare/10-a", "ok"), ("prepare/10-a", "interrupted")]
    assert azure.approvals() == [("vm1", event)]


def test_operator_who_gives_a_recovery_up_learns_that_the_disk_is_full(
    azure: Azure, vm: RunnerHarness, disk: Disk
) -> None:
    vm.hook("recover/10-a", FAILS)
    azure.schedule("Reboot", cancel_after=60)
    vm.poll()
    vm.poll(after=61)
    disk.fail()
    answer = vm.runner.recover("operator", True)
    assert answer.accepted and answer.text.endswith("records cannot be written: a restart begins the recovery again")


@pytest.mark.parametrize("how", ["damaged", "full"])
def test_host_is_recovered_from_an_event_that_no_record_has(
    azure: Azure, make_vm: MakeVm, disk: Disk, how: str
) -> None:
    # nothing is known of the event: recover hooks of other types run, too
    vm = make_vm(hooks={"recover/10-a": {"types": ["Freeze"]}})
    vm.hook("prepare/10-a")
    vm.hook("recover/10-a")
    vm.start()
    disk.fail() if how == "full" else None
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    assert vm.ran() == ["prepare/10-a"] and len(azure.approvals()) == (how == "damaged")
    disk.heal()
    record = vm.folder / "state/maintenance.json"
    assert record.exists() == (how == "damaged")
    record.write_text('{"version": 99}') if how == "damaged" else None
    azure.cancel(event)
    vm.restart("reboot")
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"] and vm.runner.records.maintenance is None


def test_host_is_recovered_from_a_hook_of_which_nothing_but_its_unit_is_left(
    azure: Azure, vm: RunnerHarness, disk: Disk
) -> None:
    vm.hook("prepare/10-a")
    vm.hook("recover/10-a")
    vm.start()
    disk.fail()
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    assert vm.ran() == ["prepare/10-a"] and vm.systemd.units() != []
    disk.heal()
    shutil.rmtree(vm.settings.run_directory)
    azure.cancel(event)
    vm.restart()
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"]
    assert all("recover" in unit for unit in vm.systemd.units())


def test_unit_of_a_killed_trial_is_ended_and_recovers_nothing(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("recover/10-a")
    vm.start()
    vm.systemd.set_unit_state("azure-scheduled-events-hook-prepare-10-a-4711.service", "active", "exited")
    vm.restart()
    vm.poll(after=1)
    assert vm.ran() == [] and vm.runner.records.maintenance is None
