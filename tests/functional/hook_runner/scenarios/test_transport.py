# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.2 to 8.4: a failing IMDS ends no event; odd documents; a lost answer."""

from __future__ import annotations

import pytest

from support.daemon.runner_harness import MakeVm, RunnerHarness
from support.daemon.simulated_azure import Azure

SICK = ["empty", "not-json", "events-null", "cut-json", "truncated", "unavailable", "gone", "forbidden-html", "reset"]
# of the log
WARNING, ALARM = "IMDS gives no good answer", "are stale since"


@pytest.mark.parametrize("started", [False, True])
def test_t47_t54_whatever_the_answer_is_the_event_is_not_over(azure: Azure, vm: RunnerHarness, started: bool) -> None:
    event = azure.schedule("Reboot", hold=not started, started_for="5h")
    vm.poll()
    vm.poll(after=2)
    ran = vm.ran()
    for kind in SICK:
        azure.fault(kind)
        for _poll in range(2):
            vm.poll(after=1)
        azure.heal()
        assert vm.ran() == ran, kind
        assert vm.health.error, kind
        assert vm.runner.records.find(event.casefold()) is not None
    vm.poll(after=1)
    assert vm.health.error == "" and vm.ran() == ran
    assert sum(vm.health.errors.values()) >= 2 * len(SICK)
    azure.complete(event)
    vm.poll()
    assert vm.ran() == [*ran, "recover/10-a"]


def test_t49_ten_minutes_without_an_answer_are_an_alarm_and_not_an_end(azure: Azure, vm: RunnerHarness) -> None:
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.fault("refuse")
    for _poll in range(20):
        vm.poll(after=30)
    assert (vm.times_logged(WARNING), vm.times_logged(ALARM)) == (1, 1)
    shown = vm.status()["imds"]
    assert shown["ok"] is False and shown["stale_since"] and shown["errors"] == {"unreachable": 20}
    assert vm.ran() == ["prepare/10-a"]
    azure.heal()
    vm.poll(after=10)
    assert vm.times_logged("IMDS answers again") == 1 and vm.runner.records.find(event.casefold()) is not None
    assert vm.status()["imds"]["stale_since"] is None


def test_errors_of_two_kinds_in_turns_are_two_warnings_in_one_outage(azure: Azure, vm: RunnerHarness) -> None:
    for kind in ("unavailable", "reset") * 4:
        azure.fault(kind)
        vm.poll(after=5)
        azure.heal()
    assert (vm.times_logged(WARNING), vm.times_logged("resource name is not known yet")) == (2, 1)


def test_t52_an_update_of_imds_is_one_warning_and_no_alarm(azure: Azure, vm: RunnerHarness) -> None:
    azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.fault("gone", **{"for": 70})
    for _poll in range(6):
        vm.poll(after=10)
    vm.poll(after=9)
    vm.poll(after=10)
    assert (vm.times_logged(WARNING), vm.times_logged(ALARM)) == (1, 0)
    assert vm.health.error == "" and vm.ran() == ["prepare/10-a"]


def test_an_entry_that_cannot_be_read_ends_nothing_and_is_shown(azure: Azure, vm: RunnerHarness) -> None:
    azure.show(azure.entry())
    vm.poll()
    azure.show({"EventType": "Reboot"})
    vm.poll(after=5)
    assert vm.ran("recover") == [] and vm.times_logged("has no usable EventId") == 1
    assert vm.status()["imds"]["incomplete_since"] is not None
    azure.show()
    vm.poll(after=5)
    assert vm.ran("recover") == ["recover/10-a"] and vm.status()["imds"]["incomplete_since"] is None


def test_status_has_the_event_as_the_last_document_has_it(azure: Azure, vm: RunnerHarness) -> None:
    seen = []
    entry = azure.entry()
    unreadable = {**entry, "Resources": [*entry["Resources"], 7]}
    for shown in ([entry], [unreadable], []):
        azure.show(*shown)
        vm.poll_once(after=1)
        seen += [(event["listed"], event["named"], event["readable"]) for event in vm.status()["events"]]
    names = [name.casefold() for name in entry["Resources"]]
    assert seen == [(True, names, True), (True, ["7", *names], False), (False, [], False)]


def test_event_that_comes_back_is_not_approved_by_what_was_known_before(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy={"rules": [{"when": {"first_seen_age": {"min": 10}}, "approve": "after_prepare"}]})
    for stage in ("prepare", "recover"):
        vm.hook(stage + "/10-a")
    azure.schedule("Freeze", hold=True)
    for is_listed in (True, *[False] * 3, *[True] * 9):
        if is_listed:
            azure.heal()
        else:
            azure.show()
        vm.poll_once(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"] and azure.requests("POST") == []
    vm.poll_once(after=2)
    assert len(azure.approvals()) == 1


@pytest.mark.parametrize("held", [True, False])
def test_t62_a_lost_answer_is_repeated_only_while_it_still_waits(azure: Azure, vm: RunnerHarness, held: bool) -> None:
    azure.fault("lost-answer", method="POST", **{"for": 1})
    event = azure.schedule("Reboot", hold=held)
    vm.poll()
    lost = azure.approvals()
    vm.poll(after=2)
    vm.poll(after=2)
    # a connection that turns out to be closed is asked twice by the client itself
    assert set(lost) == {("vm1", event)} and azure.approvals() == lost + [("vm1", event)] * held
    assert azure.starts(event) == (not held) and vm.ran("prepare") == ["prepare/10-a"]
