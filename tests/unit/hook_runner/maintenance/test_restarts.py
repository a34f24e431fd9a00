# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What the state machine does after kill -9, a reboot, a full disk or the loss of its record."""

from __future__ import annotations

import pytest

from hook_runner.maintenance.record import HookResult
from hook_runner.maintenance.runs import Condition
from hook_runner.records import FAILED, INTERRUPTED, LOST, OK, STARTING
from support.daemon.machine_driver import Driver, event, hook

DRAIN = hook("prepare/10-drain")
JOIN, NOTE = hook("recover/10-join"), hook("started/10-note")


def test_run_without_a_unit_begins_again_if_it_had_not_begun() -> None:
    vm = Driver(DRAIN)
    vm.makes_units = False
    vm.read(event())
    _state, maintenance = vm.written
    assert maintenance is not None and maintenance.runs[0].state == STARTING
    vm = vm.restarted()
    vm.machine.runs.lost(maintenance.runs[0].number, vm.now)
    vm.seconds(1, event())
    assert vm.run is not None and vm.run.attempt == 1


def test_run_without_a_unit_was_interrupted_if_it_had_begun() -> None:
    vm = Driver(DRAIN)
    vm.read(event())
    vm.seconds(1, event())
    assert vm.written[1] is not None
    number = vm.written[1].runs[0].number
    vm = vm.restarted()
    vm.machine.runs.lost(number, vm.now)
    vm.seconds(1, event())
    assert vm.run is not None and vm.run.attempt == 2


def test_reboot_undoes_successes_that_do_not_persist() -> None:
    vm = Driver(DRAIN, hook("prepare/20-checkpoint", persists=True))
    vm.read(event())
    vm.end_hook()
    vm.end_hook()
    vm = vm.restarted(boot="boot-2")
    vm.seconds(2, event())
    assert (vm.begun, vm.sent) == (["prepare/10-drain"], [])


def test_recovery_continues_at_once_if_all_events_are_gone() -> None:
    vm = Driver(JOIN)
    vm.read(event())
    vm.seconds(4)
    vm.end_hook(FAILED)
    vm = vm.restarted()
    vm.wait(10)
    assert vm.begun == ["recover/10-join"]


def test_recovery_waits_for_documents_if_an_event_is_present() -> None:
    vm = Driver(JOIN)
    vm.read(event())
    vm = vm.restarted()
    vm.wait(60)
    assert vm.begun == []
    vm.seconds(4)
    assert vm.begun == ["recover/10-join"]


@pytest.mark.parametrize("condition", [Condition.STALE, Condition.UNREADABLE])
def test_host_recovers_without_a_record_after_two_documents(condition: Condition) -> None:
    vm = Driver(DRAIN, hook("recover/10-join", types=("Freeze",)))
    vm.machine.runs.found(condition, vm.now)
    vm.seconds(2)
    assert vm.begun == []
    vm.seconds(1)
    assert vm.begun == ["recover/10-join"]


def test_host_with_a_damaged_record_prepares_for_a_listed_event() -> None:
    vm = Driver(DRAIN, JOIN)
    vm.machine.runs.found(Condition.UNREADABLE, vm.now)
    vm.seconds(1, event())
    assert vm.begun == ["prepare/10-drain"]


def test_stale_record_of_an_earlier_boot_has_no_success() -> None:
    vm = Driver(hook("prepare/10-drain", persists=True), JOIN)
    vm.read(event())
    vm.end_hook()
    vm = vm.restarted(boot="boot-2")
    vm.machine.runs.found(Condition.STALE, vm.now)
    vm.seconds(1, event())
    assert vm.begun == ["prepare/10-drain"]
    assert vm.written[1] is not None and vm.written[1].runs[0].state == LOST


def test_run_that_the_record_lacks_is_taken_over() -> None:
    vm = Driver(DRAIN)
    vm.is_full = True
    vm.read(event())
    assert vm.run is not None
    run = vm.run
    vm = vm.restarted()
    vm.machine.runs.adopt(run, vm.now)
    vm.seconds(1, event())
    assert (vm.begun, vm.ended) == ([], [])
    vm.machine.runs.ended(run.number, HookResult(OK), vm.now)
    vm.act()
    assert vm.prepared() == "ok"


def test_started_hook_that_was_interrupted_is_repeated_three_runs_at_most() -> None:
    vm = Driver(NOTE)
    vm.seconds(1, event())
    vm.seconds(1, event(status="Started"))
    for boot in ("boot-2", "boot-3", "boot-4"):
        vm = vm.restarted(boot)
        assert vm.records.maintenance is not None
        vm.machine.runs.lost(vm.records.maintenance.runs[-1].number, vm.now)
        vm.seconds(2, event(status="Started"))
    assert vm.records.maintenance is not None
    assert [(run.attempt, run.state) for run in vm.records.maintenance.runs] == [
        (1, INTERRUPTED),
        (2, INTERRUPTED),
        (3, INTERRUPTED),
    ]
