# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""When the daemon has to act although nothing comes in."""

from __future__ import annotations

from hook_runner.maintenance.machine import TICK_INTERVAL
from hook_runner.records import FAILED
from support.daemon.machine_driver import Driver, event, hook, rules

DRAIN, JOIN = hook("prepare/10-drain"), hook("recover/10-join")
MANUAL = rules({"approve": "manual"})


def test_without_events_time_changes_nothing() -> None:
    vm = Driver(DRAIN, JOIN)
    vm.seconds(3)
    assert vm.machine.due_in(vm.now) is None


def test_hook_that_runs_and_approval_that_waits_are_looked_at_each_second() -> None:
    vm = Driver(DRAIN, JOIN, policy=MANUAL)
    vm.seconds(3, event())
    assert vm.begun == ["prepare/10-drain"] and vm.machine.due_in(vm.now) == TICK_INTERVAL
    undecided = Driver(JOIN)
    undecided.seconds(1, event())
    assert undecided.machine.due_in(undecided.now) == TICK_INTERVAL


def test_prepared_event_without_a_decision_waits_for_not_before() -> None:
    vm = Driver(DRAIN, JOIN, policy=MANUAL)
    vm.seconds(3, event(not_before=900))
    vm.end_hook()
    assert vm.machine.due_in(vm.now) == event(not_before=900).seconds_left(vm.now)


def test_preparation_in_a_pause_fails_when_too_little_time_is_left() -> None:
    vm = Driver(hook("prepare/10-drain", needs=300, timeout=600), policy=MANUAL)
    vm.machine.pause("operator", None, "", vm.now)
    vm.seconds(3, event(not_before=900))
    while vm.record().prepared != "failed":
        due = vm.machine.due_in(vm.now)
        assert due is not None and due < 300
        vm.wait(due)
    assert 590 <= vm.at <= 610


def test_failed_recovery_waits_for_the_next_attempt() -> None:
    vm = Driver(DRAIN, JOIN)
    vm.seconds(3, event())
    vm.end_hook()
    vm.seconds(4)
    vm.end_hook(FAILED)
    due = vm.machine.due_in(vm.now)
    assert due is not None and 8 <= due <= 10
