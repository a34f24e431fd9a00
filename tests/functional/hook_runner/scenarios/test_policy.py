# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Decisions of policies and operators: presets, gates, hold, manual approvals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.daemon.hook_scripts import FAILS, HANGS
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., RunnerHarness]


@pytest.mark.parametrize(
    "what, body, approved",
    [
        ({"source": "User"}, ":", True),
        ({"source": "User"}, HANGS, False),
        ({"source": "User"}, FAILS, False),
        ({"duration": 5}, ":", True),
        ({"duration": 9}, ":", False),
        ({"duration": -1}, ":", False),
    ],
)
def test_documented_policy_approves_what_microsofts_sample_does_after_the_prepare_hooks(
    azure: Azure, make_vm: MakeVm, what: dict[str, Any], body: str, approved: bool
) -> None:
    vm = make_vm(policy="documented")
    vm.hook("prepare/10-a", body)
    azure.schedule("Freeze", hold=True, **what)
    vm.poll()
    assert bool(azure.approvals()) == approved


def test_approved_at_once_is_approved_before_the_preparation_ends(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy={"rules": [{"when": {}, "approve": "now"}]})
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    assert azure.approvals() == [("vm1", event)] and vm.steps(event) == [("prepare/10-a", "running")]


@pytest.mark.parametrize(
    "approve, seconds", [({"when": "after_prepare", "time_left": "5m"}, 600), ({"delay": "30s"}, 30)], ids=str
)
def test_approval_at_a_time_that_a_restart_does_not_move(
    azure: Azure, make_vm: MakeVm, approve: dict[str, str], seconds: int
) -> None:
    vm = make_vm(policy={"rules": [{"when": {}, "approve": approve}]})
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    vm.restart("reboot")
    vm.poll(after=seconds - 1)
    assert azure.approvals() == []
    vm.poll(after=1)
    assert azure.approvals() == [("vm1", event)]


def test_a_gate_is_open_while_its_file_is_there(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy={"rules": [{"when": {"gate": "quiet"}, "approve": "after_prepare"}, {"when": {}}]})
    gate = vm.folder / "gate"
    # no rule uses the second gate
    vm.configure(gates={"quiet": str(gate), "unused": str(vm.folder / "missing")})
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    vm.poll(after=60)
    assert azure.approvals() == [] and vm.status()["events"][0]["reason"].endswith("; closed gates: quiet")
    gate.touch()
    vm.poll(after=1)
    assert azure.approvals() == [("vm1", event)]


def test_an_event_that_is_held_until_it_starts_is_still_recovered_from(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy={"rules": [{"when": {}, "hold": True}]})
    for stage in ("prepare", "started", "recover"):
        vm.hook(stage + "/10-a")
    azure.schedule("Reboot", notice=60, started_for=60)
    for _look in range(6):
        vm.poll(after=30)
    assert vm.ran() == ["started/10-a", "recover/10-a"]


def test_recovery_does_not_wait_for_an_event_on_hold(azure: Azure, make_vm: MakeVm) -> None:
    rules = [{"when": {"type": "Freeze"}, "hold": True}, {"when": {}, "approve": "after_prepare"}]
    vm = make_vm(policy={"rules": rules})
    for stage in ("prepare", "recover"):
        vm.hook(stage + "/10-a")
    azure.schedule("Freeze", hold=True)
    reboot = azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.cancel(reboot)
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"] and vm.runner.records.maintenance is None
