# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Records that lack a run or cannot be written, and units that no record has."""

from __future__ import annotations

import json
import shutil

from support.daemon.hook_scripts import FAILS, HANGS
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure
from support.daemon.small_disk import Disk


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
    assert vm.steps() == [("prepare/10-a", "ok"), ("prepare/10-a", "interrupted")]
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
