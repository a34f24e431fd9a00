# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""How the state machine recovers: after the last event, kill -9, a reboot, a full disk, the loss of its record."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hook_runner.records import FAILED, INTERRUPTED, LOST, OK, STARTING
from support.daemon.machine_driver import RESULTS, Driver, event, hook

DRAIN = hook("prepare/10-drain")
JOIN, NOTE = hook("recover/10-join"), hook("started/10-note")


def recovering() -> Driver:
    """Return a VM whose event is gone, and whose recover hook runs."""
    vm = Driver(JOIN)
    vm.read(event())
    vm.seconds(4)
    return vm


def test_recover_hooks_run_also_if_nothing_was_prepared() -> None:
    vm = Driver(JOIN)
    vm.seconds(1, event(status="Started"))
    vm.seconds(4)
    assert vm.begun == ["recover/10-join"]


def test_own_event_ends_a_recover_hook_and_prepares_again() -> None:
    vm = Driver(DRAIN, hook("recover/10-join", timeout=3600))
    vm.read(event())
    vm.end_hook()
    vm.seconds(4)
    vm.seconds(1, event("e2"))
    assert vm.ended == [("recover/10-join", 5.0)]
    vm.end_hook(FAILED)
    assert vm.begun == ["prepare/10-drain", "recover/10-join", "prepare/10-drain"]


def test_event_without_prepare_hooks_is_approved_after_the_recovery_that_runs() -> None:
    vm = Driver(JOIN)
    vm.seconds(2, event())
    vm.answer()
    vm.seconds(4)
    vm.seconds(2, event("e2"))
    assert vm.sent == ["e1"]
    vm.end_hook()
    vm.seconds(1, event("e2"))
    assert vm.sent == ["e1", "e2"]


def test_recover_hook_is_repeated_later_and_later_until_it_succeeds() -> None:
    vm = recovering()
    begins = []
    for number in range(8):
        vm.end_hook(FAILED)
        vm = vm.restarted() if number == 3 else vm
        began = vm.at
        while vm.run is None:
            vm.wait(1)
        begins.append(vm.at - began)
    assert begins == [10, 20, 40, 80, 160, 320, 600, 600]
    vm.end_hook()
    assert len(vm.history) == 1


def test_recover_hook_that_was_interrupted_is_repeated_at_once_twice_and_then_later() -> None:
    vm = recovering()
    for begun in (2, 3, 3):
        vm.end_hook(INTERRUPTED)
        assert len(vm.begun) == begun
    for boot in ("boot-1", "boot-2"):
        vm = vm.restarted(boot)
        vm.wait(600)
        assert vm.begun == ["recover/10-join"]
        vm.end_hook(INTERRUPTED)


@pytest.mark.parametrize(("step", "begun"), [(-3600, 2), (-0.1, 1)], ids=["far", "a-little"])
def test_clock_that_was_set_back_prolongs_no_pause_and_a_little_ends_none(step: float, begun: int) -> None:
    vm = recovering()
    vm.end_hook(FAILED)
    vm.wait(step)
    assert len(vm.begun) == begun


def test_operator_repeats_a_recovery_at_once_or_gives_it_up() -> None:
    vm = Driver(JOIN)
    assert not vm.machine.recover("operator", False, vm.now).accepted
    vm.read(event())
    assert not vm.machine.recover("operator", True, vm.now).accepted
    vm.seconds(4)
    vm.end_hook(FAILED)
    assert vm.machine.recover("operator", False, vm.now).accepted
    vm.act()
    assert len(vm.begun) == 2
    vm.end_hook(FAILED)
    assert vm.machine.recover("operator", True, vm.now).accepted
    vm.act()
    assert vm.history[0].given_up_by == "operator"


def test_input_of_a_recover_hook_is_the_most_severe_event_of_its_types() -> None:
    vm = Driver(JOIN, hook("recover/20-thaw", types=("Freeze",)))
    vm.seconds(2, event("e1", "Freeze"), event("e2", "Redeploy"), event("e3", "Reboot"))
    vm.seconds(4)
    vm.end_hook()
    vm.end_hook()
    assert [run.event_type for run in vm.history[0].runs] == ["Redeploy", "Freeze"]


def test_maintenance_that_fails_to_recover_for_months_stays_small() -> None:
    vm = recovering()
    for _ in range(100):
        vm.end_hook(FAILED)
        vm.wait(600)
    assert vm.written[1] is not None
    assert len(vm.written[1].runs) < 30
    assert vm.written[1].runs[-1].attempt == 101


# -- restarts, reboots, full disks


@pytest.mark.parametrize(("has_begun", "attempt"), [(False, 1), (True, 2)])
def test_run_without_a_unit_begins_again_and_was_interrupted_if_it_had_begun(has_begun: bool, attempt: int) -> None:
    vm = Driver(DRAIN)
    vm.makes_units = has_begun
    vm.read(event())
    vm.seconds(1, event())
    _state, maintenance = vm.written
    assert maintenance is not None and (maintenance.runs[0].state == STARTING) is not has_begun
    vm = vm.restarted()
    vm.machine.runs.lost(maintenance.runs[0].number, vm.now)
    vm.seconds(1, event())
    assert (vm.begun, vm.runs[-1].attempt) == (["prepare/10-drain"], attempt)


def test_run_that_may_have_begun_as_a_child_was_interrupted() -> None:
    vm = Driver(hook("prepare/10-drain", rerun=False))
    vm.makes_units = False
    vm.read(event())
    assert vm.runs[0].state == STARTING
    number, vm = vm.runs[0].number, vm.restarted()
    vm.machine.runs.found_incomplete(vm.now)
    vm.machine.runs.lost(number, vm.now)
    vm.seconds(1, event())
    assert (vm.begun, vm.prepared()) == ([], "failed")


def test_reboot_undoes_successes_that_do_not_persist() -> None:
    vm = Driver(DRAIN, hook("prepare/20-checkpoint", persists=True))
    vm.read(event())
    vm.end_hook()
    vm.end_hook()
    vm = vm.restarted(boot="boot-2")
    vm.seconds(2, event())
    assert (vm.begun, vm.sent) == (["prepare/10-drain"], [])


def test_recovery_waits_for_documents_if_an_event_is_present() -> None:
    vm = Driver(JOIN)
    vm.read(event())
    vm = vm.restarted()
    vm.wait(60)
    assert vm.begun == []
    vm.seconds(4)
    assert vm.begun == ["recover/10-join"]


@pytest.mark.parametrize("kind", [{"complete": False}, {"doubtful": ("e1",)}])
def test_host_without_a_record_recovers_when_no_unreadable_entry_may_be_its_event(kind: dict[str, Any]) -> None:
    vm = Driver(hook("recover/10-join", types=("Freeze",)))
    vm.machine.runs.found_incomplete(vm.now)
    vm.seconds(5, event(vms=()), **kind)
    vm.seconds(2)
    assert vm.begun == []
    vm.seconds(1)
    assert vm.begun == ["recover/10-join"]


def test_host_with_a_damaged_record_prepares_for_a_listed_event_and_recovers() -> None:
    vm = Driver(DRAIN, hook("recover/10-join", types=("Freeze",)))
    vm.machine.runs.found_incomplete(vm.now)
    vm.seconds(5, event())
    assert vm.begun == ["prepare/10-drain"]
    vm.end_hook()
    vm.seconds(4)
    assert vm.begun == ["prepare/10-drain", "recover/10-join"]


@pytest.mark.parametrize("boot", ["boot-1", "boot-2"])
def test_record_that_may_lack_a_recovery_has_no_success(boot: str) -> None:
    vm = Driver(hook("prepare/10-drain", persists=True), JOIN)
    vm.read(event())
    vm.end_hook()
    vm = vm.restarted(boot=boot)
    vm.machine.runs.found_incomplete(vm.now)
    vm.seconds(1, event())
    assert vm.begun == ["prepare/10-drain"]
    assert vm.written[1] is not None and vm.written[1].runs[0].state == LOST


def test_runs_that_the_record_lacks_are_taken_over_and_may_end_in_any_order() -> None:
    vm = Driver(DRAIN, hook("prepare/20-checkpoint"))
    vm.is_full = True
    vm.read(event())
    runs = []
    for _number in range(2):
        runs.append(copy.copy(vm.runs[-1]))
        vm.end_hook()
    vm = vm.restarted()
    for run in runs:
        vm.machine.runs.adopt(run, vm.now)
    vm.seconds(1, event())
    assert (vm.begun, vm.ended, vm.prepared()) == ([], [], "running")
    # systemd answers about the second one first
    for run in runs[::-1]:
        vm.machine.runs.ended(run.number, RESULTS[OK], vm.now)
    vm.act()
    assert (vm.begun, vm.prepared()) == ([], "ok")


@pytest.mark.parametrize("is_recorded", [True, False], ids=["recorded", "unit-only"])
@pytest.mark.parametrize(("rerun", "begun"), [(True, ["prepare/10-drain"]), (False, [])], ids=["rerun", "no-rerun"])
def test_run_that_a_process_without_a_disk_may_have_ended_was_interrupted(
    is_recorded: bool, rerun: bool, begun: list[str]
) -> None:
    vm = Driver(hook("prepare/10-drain", rerun=rerun))
    vm.machine.pause("operator", None, "", vm.now)
    vm.read(event())
    vm.is_full = not is_recorded
    vm.machine.resume("operator")
    vm.act()
    run = copy.copy(vm.runs[0])
    vm = vm.restarted()
    vm.machine.runs.found_incomplete(vm.now)
    if not is_recorded:
        vm.machine.resume("operator")
        vm.machine.runs.adopt(run, vm.now)
    vm.act()
    vm = vm.restarted()
    vm.machine.runs.ended(run.number, RESULTS[FAILED], vm.now)
    vm.seconds(1, event())
    assert vm.begun == begun
    assert vm.runs[0].state == INTERRUPTED


def test_started_hook_that_was_interrupted_is_repeated_three_runs_at_most() -> None:
    vm = Driver(NOTE)
    vm.seconds(1, event())
    vm.seconds(1, event(status="Started"))
    for boot in ("boot-2", "boot-3", "boot-4"):
        vm = vm.restarted(boot)
        vm.machine.runs.lost(vm.runs[-1].number, vm.now)
        vm.seconds(2, event(status="Started"))
    assert [(run.attempt, run.state) for run in vm.runs] == [(1, INTERRUPTED), (2, INTERRUPTED), (3, INTERRUPTED)]
