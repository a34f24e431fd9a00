# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hook runs: their limits, input and results, and hooks that cannot run."""

from __future__ import annotations

import json
import os

import pytest

from hook_runner.records import Cause
from support.daemon.hook_scripts import HANGS, KEEPS_INPUT, TALKS
from support.daemon.runner_harness import MakeVm, RunnerHarness
from support.daemon.simulated_azure import Azure
from support.daemon.small_disk import Disk


@pytest.mark.parametrize("stage", ["prepare", "emergency", "started", "recover"])
def test_systemd_ends_a_hook_at_its_own_time_out(azure: Azure, make_vm: MakeVm, stage: str) -> None:
    vm = make_vm(hooks={"10-a": {"timeout": 30}})
    vm.hook(stage + "/10-a", HANGS)
    how = {"starts": "automatic_approval"} if stage == "emergency" else {}
    azure.schedule("Reboot", started_for=3600 if stage != "recover" else 1, **how)
    vm.poll()
    vm.poll(after=5)
    vm.poll()
    (mark,) = vm.marks("begin")
    assert (mark.hook, mark.hook_seconds) == (stage + "/10-a", 30)
    (unit,) = vm.systemd.units()
    assert "--property=RuntimeMaxSec=30.000s" in vm.systemd.arguments(unit)


def test_hook_that_others_can_write_since_the_start_is_not_run_and_has_failed(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a")
    vm.hook("prepare/20-b")
    vm.poll()
    (vm.hooks_directory / "prepare/10-a").chmod(0o777)
    azure.schedule("Reboot", hold=True)
    vm.poll(after=1)
    assert vm.ran() == ["prepare/20-b"] and azure.requests("POST") == []
    run = vm.runs[0]
    assert (run.state, run.cause) == ("failed", Cause.REFUSED) and "can be written by others" in run.reason


def test_hook_gets_the_event_by_environment_and_by_stdin_and_its_output_is_kept(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a", f"{KEEPS_INPUT}\n{TALKS}")
    vm.hook("recover/10-a", KEEPS_INPUT)
    event = azure.schedule("Reboot", "vm1", "vm2", source="User", duration=9)
    vm.poll()
    given = json.loads((vm.folder / "marks.input.prepare.10-a").read_text())
    assert given["event_id"] == event and given["resources"] == ["vm1", "vm2"] and given["stage"] == "prepare"
    assert given["seconds_left"] == 900 and [each["event_id"] for each in given["events"]] == [event]
    lines = (vm.folder / "marks.environment.prepare.10-a").read_text().splitlines()
    assert {f"EVENT_ID={event}", "EVENT_RESOURCE=vm1", "EVENT_OUTCOME=", "HOOK_SECONDS=600"} <= set(lines)
    assert vm.runs[0].output == f"speaking of {event}\nand of trouble\n"
    azure.complete(event)
    vm.poll()
    assert json.loads((vm.folder / "marks.input.recover.10-a").read_text())["outcome"] == "unknown"


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
        assert vm.steps() == [("prepare/10-a", "ok")] and len(vm.systemd.units()) == 1
        vm.restart("kill")
        vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == []
    disk.heal()
    vm.restart("kill")
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]
    vm.wait(lambda: vm.systemd.units() == [])


def test_first_hook_of_a_maintenance_waits_for_room_too(
    azure: Azure, vm: RunnerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    vm.poll()
    with monkeypatch.context() as full:
        full.setattr(os, "statvfs", lambda path: os.statvfs_result((4096, 4096, 100, 0, 0, 0, 0, 0, 0, 255)))
        azure.schedule("Reboot", hold=True)
        vm.poll(after=1)
        (shown,) = vm.status()["events"]
        assert (vm.ran(), shown["reason_code"]) == ([], "hook_waits")
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"] and vm.runner.waiting_for == ""
