# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Effects that must not occur when several faults or changes come at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.daemon.engine_harness import EngineHarness
from support.daemon.hook_scripts import ENDS_IN_ITS_OWN_TIME, FAILS, HANGS
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., EngineHarness]


def test_nothing_is_approved_on_what_was_true_before_imds_fell_ill(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.fault("empty", method="GET", route="scheduledevents")
    azure.change(event, resources=["vm1", "vm2"])
    vm.release("prepare/10-a")
    for _minute in range(5):
        vm.poll(after=60)
    assert azure.approvals() == [] and "no good answer" in vm.status()["events"][0]["reason"]
    azure.heal()
    vm.poll(after=60)
    assert azure.approvals() == [] and vm.status()["events"][0]["prepared"] == "ok"


@pytest.mark.parametrize("how", ["removed", "not executable", "other types"])
@pytest.mark.parametrize("body", [FAILS, HANGS])
def test_a_failure_stays_one_when_the_hook_goes_away(azure: Azure, make_vm: MakeVm, how: str, body: str) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a", body)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    if how == "removed":
        (vm.hooks_directory / "prepare" / "10-a").unlink()
    elif how == "not executable":
        (vm.hooks_directory / "prepare" / "10-a").chmod(0o644)
    else:
        vm.configure(hooks={"10-a": {"types": ["Freeze"]}})
    vm.reload()
    if body == HANGS:
        vm.release("prepare/10-a", 3)
    vm.poll(after=1)
    assert vm.steps(event) == [("prepare/10-a", "failed")]
    assert vm.status()["events"][0]["prepared"] == "failed" and azure.approvals() == []


def test_what_recovers_from_one_event_does_not_undo_the_preparation_for_the_next(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    vm.hook("prepare/10-drain")
    vm.hook("recover/90-undrain", HANGS)
    first = azure.schedule("Freeze", hold=True)
    vm.poll()
    azure.complete(first)
    vm.poll(after=1)
    second = azure.schedule("Reboot", hold=True)
    vm.poll(after=1)
    assert vm.ran("prepare") == ["prepare/10-drain"] and ("vm1", second) not in azure.approvals()
    vm.release("recover/90-undrain")
    vm.poll(after=1)
    assert vm.ran()[-2:] == ["recover/90-undrain", "prepare/10-drain"] and azure.approvals()[-1] == ("vm1", second)


def test_event_without_prepare_hooks_is_approved_after_the_recovery_of_another(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    vm.hook("recover/10-a", HANGS)
    azure.complete(_seen(azure, vm, "Freeze"))
    vm.poll(after=1)
    second = _seen(azure, vm, "Reboot")
    assert ("vm1", second) not in azure.approvals()
    vm.release("recover/10-a")
    vm.poll(after=1)
    assert ("vm1", second) in azure.approvals()


def test_a_forced_approval_outlives_the_daemon(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy="observe")
    vm.hook("prepare/10-a", FAILS)
    event = _seen(azure, vm, "Reboot")
    azure.fault("status", status=503, method="POST", route="scheduledevents")
    asked = vm.engine.approve_manually(event, "root", force=True, release_others=False)
    assert asked is not None and asked.accepted
    vm.poll(after=1)
    vm.restart("kill")
    azure.heal()
    vm.poll(after=30)
    vm.poll(after=30)
    assert azure.approvals() == [("vm1", event)]


def test_a_shared_recovery_waits_for_every_hook_that_is_being_ended(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(kill_after=600, hooks={"20-slow": {"types": ["Reboot"]}})
    vm.hook("prepare/10-a")
    vm.hook("prepare/20-slow", ENDS_IN_ITS_OWN_TIME)
    vm.hook("recover/10-a")
    both = [azure.schedule(kind, hold=True) for kind in ("Freeze", "Reboot")]
    vm.poll()
    for event in both:
        azure.complete(event)
    vm.receive_document()
    vm.pass_time(2)
    vm.receive_document()
    vm.wait(lambda: vm.marks("term"))
    vm.engine.tick()
    assert vm.ran("recover") == []
    vm.release("prepare/20-slow", 1)
    vm.settle()
    assert vm.ran("recover") == ["recover/10-a"]
    assert sorted(vm.steps(event)[-1] for event in both) == [("recover/10-a", "ok"), ("recover/10-a", "skipped")]


@pytest.mark.parametrize("body, state", [(FAILS, "failed"), (HANGS, "running")])
def test_a_shared_recovery_counts_for_both_events_as_it_went(
    azure: Azure, make_vm: MakeVm, body: str, state: str
) -> None:
    vm = make_vm()
    vm.hook("recover/10-a", body)
    both = [_seen(azure, vm, kind) for kind in ("Freeze", "Reboot")]
    for event in both:
        azure.complete(event)
    vm.poll(after=1)
    last = [vm.steps(event)[-1:] for event in both]
    assert last.count([("recover/10-a", state)]) == (2 if state == "failed" else 1)
    assert [vm.record(event).closed_at is None for event in both] == [True] * 2


def test_a_time_out_of_less_than_a_second_is_no_lack_of_time(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(hooks={"10-a": {"timeout": 0.5}})
    vm.hook("prepare/10-a")
    assert vm.steps(_seen(azure, vm, "Reboot")) == [("prepare/10-a", "ok")]


def test_what_was_left_out_has_never_run_so_that_it_needs_no_rerun(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(hooks={"10-a": {"needs": 100, "rerun": False}})
    vm.hook("prepare/10-a")
    event = azure.schedule("Reboot", notice=60)
    vm.poll()
    assert vm.ran() == []
    azure.change(event, notice="1h")
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"]


def test_a_time_in_a_started_event_is_no_deadline(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(when_started="finish")
    vm.hook("prepare/10-a", HANGS)
    entry: dict[str, Any] = azure.entry(NotBefore=azure.in_seconds(100))
    azure.show(entry)
    vm.poll()
    azure.show({**entry, "EventStatus": "Started"})
    vm.poll(after=110)
    assert vm.steps(entry["EventId"]) == [("prepare/10-a", "running")]


def test_a_hook_that_others_can_write_by_now_is_not_run(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a")
    vm.poll()
    (vm.hooks_directory / "prepare" / "10-a").chmod(0o777)
    event = _seen(azure, vm, "Reboot")
    assert vm.ran() == [] and vm.steps(event) == [("prepare/10-a", "failed")] and azure.approvals() == []


def test_a_dry_run_says_so_to_whoever_approves(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy="observe", dry_run=True)
    asked = vm.engine.approve_manually(_seen(azure, vm, "Reboot"), "root", force=False, release_others=False)
    assert asked is not None and not asked.accepted and "dry run" in asked.text


def test_unreadable_entries_need_an_operator(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    azure.show({"EventStatus": "Scheduled"})
    vm.poll()
    shown = vm.status()
    assert (
        shown["imds"]["incomplete_since"] is not None
        and vm.times_logged("IMDS: the document has unreadable entries") == 1
    )
    azure.show()
    vm.poll(after=1)
    assert vm.status()["imds"]["incomplete_since"] is None


def _seen(azure: Azure, vm: EngineHarness, kind: str) -> str:
    event = azure.schedule(kind, hold=True)
    vm.poll(after=1)
    return event
