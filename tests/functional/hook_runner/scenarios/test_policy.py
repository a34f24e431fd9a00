# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Decisions of policies and operators: presets, gates, hold, manual approvals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.daemon.engine_harness import EngineHarness
from support.daemon.hook_scripts import FAILS, HANGS
from support.daemon.simulated_azure import Azure
from support.daemon.small_disk import Disk

MakeVm = Callable[..., EngineHarness]

MANUAL = {"rules": [{"when": {}, "approve": "manual"}]}


def by_hand(harness: EngineHarness, event: str, force: bool = False, release_others: bool = False) -> tuple[bool, str]:
    asked = harness.engine.approve_manually(event, "root", force, release_others)
    assert asked is not None
    harness.settle()
    return asked.accepted, asked.text


@pytest.mark.parametrize(
    "what, approved",
    [({"source": "User"}, True), ({"duration": 5}, True), ({"duration": 9}, False), ({"duration": -1}, False)],
)
def test_the_documented_policy_approves_what_microsofts_sample_does(
    azure: Azure, make_vm: MakeVm, what: dict[str, Any], approved: bool
) -> None:
    vm = make_vm(policy="documented")
    azure.schedule("Freeze", **what)
    vm.poll()
    assert bool(azure.approvals()) == approved


@pytest.mark.parametrize("body, approved", [(HANGS, False), (FAILS, False), (":", True)])
def test_documented_policy_approves_after_the_prepare_hooks(
    azure: Azure, make_vm: MakeVm, body: str, approved: bool
) -> None:
    vm = make_vm(policy="documented")
    vm.hook("prepare/10-a", body)
    azure.schedule("Reboot", source="User", hold=True)
    vm.poll()
    assert bool(azure.approvals()) == approved


def test_approved_at_once_is_approved_before_the_preparation_ends(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy={"rules": [{"when": {}, "approve": "now"}]})
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    assert azure.approvals() == [("vm1", event)] and vm.steps(event) == [("prepare/10-a", "running")]


def test_approved_at_time_left(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy={"rules": [{"when": {}, "approve": {"when": "after_prepare", "time_left": "5m"}}]})
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    vm.poll(after=599)
    assert azure.approvals() == []
    vm.poll(after=1)
    assert azure.approvals() == [("vm1", event)]


def test_approved_after_a_delay_that_a_restart_does_not_begin_anew(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy={"rules": [{"when": {}, "approve": {"delay": "30s"}}]})
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    vm.restart("reboot")
    vm.poll(after=29)
    assert azure.approvals() == []
    vm.poll(after=1)
    assert azure.approvals() == [("vm1", event)]


def test_a_gate_is_open_while_its_file_is_there(azure: Azure, make_vm: MakeVm) -> None:
    rules = [{"when": {"gate": "quiet"}, "approve": "after_prepare"}, {"when": {}}]
    vm = make_vm(policy={"rules": rules})
    gate = vm.folder / "gate"
    # no rule uses the second gate
    vm.configure(gates={"quiet": str(gate), "unused": str(vm.folder / "missing")})
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    vm.poll(after=60)
    assert azure.approvals() == []
    assert vm.status()["events"][0]["reason"].endswith("; closed gates: quiet")
    gate.touch()
    vm.poll(after=1)
    assert azure.approvals() == [("vm1", event)]


def test_hold_waits_until_time_left_is_below_and_then_prepares(azure: Azure, make_vm: MakeVm) -> None:
    rules = [
        {"when": {"time_left": {"gt": "10m"}}, "hold": True},
        {"when": {}, "approve": "after_prepare"},
    ]
    vm = make_vm(policy={"rules": rules})
    vm.hook("prepare/10-a")
    event = azure.schedule("Reboot")
    vm.poll()
    vm.poll(after=299)
    assert vm.ran() == []
    assert vm.status()["events"][0]["waiting"] == "no prepare hook begins: the matching rule has `hold`"
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]
    assert vm.status()["events"][0]["waiting"] is None


def test_what_was_held_and_never_prepared_is_still_recovered_from(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy={"rules": [{"when": {}, "hold": True}]})
    for stage in ("prepare", "started", "recover"):
        vm.hook(stage + "/10-a")
    azure.schedule("Reboot", notice=60, started_for=60)
    for _look in range(6):
        vm.poll(after=30)
    assert vm.ran() == ["started/10-a", "recover/10-a"]


def test_a_policy_that_never_approves_says_so_once(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy="observe")
    azure.schedule("Reboot", source="User")
    for _look in range(5):
        vm.poll(after=10)
    assert vm.times_logged("it does not approve") <= 3 and azure.requests("POST") == []


def test_a_person_approves(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy=MANUAL)
    vm.hook("prepare/10-a")
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    vm.poll(after=60)
    assert azure.approvals() == []
    assert by_hand(vm, event.lower()) == (True, "its approval is sent to IMDS now")
    assert azure.approvals() == [("vm1", event)] and vm.record(event).approval_asked_by == "root"
    assert by_hand(vm, event)[0] is True
    vm.poll(after=60)
    assert len(azure.requests("POST")) == 1


def test_a_person_approves_under_a_policy_that_would_not(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy="observe")
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    assert by_hand(vm, event)[0] and azure.approvals() == [("vm1", event)]


def test_a_person_who_approves_too_early_is_remembered_through_a_restart(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy=MANUAL)
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    assert by_hand(vm, event) == (True, "it will be approved when its preparation is done")
    assert azure.approvals() == []
    vm.restart("kill")
    vm.poll(after=5)
    vm.release("prepare/10-a")
    vm.settle()
    assert azure.approvals() == [("vm1", event)]


def test_a_person_who_forces_does_not_wait_for_the_preparation(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy=MANUAL)
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    assert by_hand(vm, event, force=True)[0] and azure.approvals() == [("vm1", event)]


def test_a_failed_preparation_has_to_be_forced(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy=MANUAL)
    vm.hook("prepare/10-a", FAILS)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    accepted, text = by_hand(vm, event)
    assert not accepted and "--force" in text and azure.approvals() == []
    assert by_hand(vm, event, force=True)[0] and azure.approvals() == [("vm1", event)]


@pytest.mark.parametrize("resources", [("vm1", "vm2"), ("vm2",)])
def test_others_are_released_only_by_that_word(azure: Azure, make_vm: MakeVm, resources: tuple[str, ...]) -> None:
    vm = make_vm(policy=MANUAL)
    event = azure.schedule("Reboot", *resources, hold=True)
    vm.poll()
    accepted, text = by_hand(vm, event, force=True)
    assert not accepted and "--release-others" in text
    vm.poll(after=5)
    assert azure.approvals() == []
    assert by_hand(vm, event, force=True, release_others=True)[0] and azure.approvals() == [("vm1", event)]


def test_manual_approval_needs_a_scheduled_event(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy=MANUAL)
    event = azure.schedule("Reboot")
    vm.poll()
    assert vm.engine.approve_manually("nobody's", "root", True, True) is None
    azure.approve(event)
    vm.poll(after=2)
    accepted, text = by_hand(vm, event, force=True)
    assert not accepted and "has started" in text and azure.approvals() == []


def test_a_person_does_not_approve_in_a_dry_run(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy=MANUAL, dry_run=True)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    by_hand(vm, event, force=True)
    vm.poll(after=5)
    assert azure.requests("POST") == []


def test_on_a_full_disk_nothing_is_approved_that_would_be_forgotten(azure: Azure, make_vm: MakeVm, disk: Disk) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a")
    vm.start()
    disk.fail()
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    assert vm.ran() == ["prepare/10-a"] and azure.requests("POST") == []
    assert "records cannot be written" in vm.status()["events"][0]["reason"]
    assert by_hand(vm, event)[0] is False
    disk.heal()
    vm.poll(after=1)
    assert azure.approvals() == [("vm1", event)]
