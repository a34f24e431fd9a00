# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.2: what the daemon does with odd documents and old versions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.daemon.engine_harness import AFTER_PREPARE, EngineHarness
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., EngineHarness]

# approves whatever it may
ALWAYS = {"rules": [{"name": "always", "when": {}, "approve": "now"}]}


def test_t31_the_impossible_step_back_is_noted_and_changes_nothing(azure: Azure, vm: EngineHarness) -> None:
    event = azure.schedule("Reboot")
    vm.poll()
    vm.poll(after=2)
    azure.change(event, status="Scheduled", notice="10m")
    vm.poll()
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "started/10-a"] and len(azure.approvals()) == 1
    assert "anomaly" in vm.timeline(event)
    azure.complete(event)
    vm.poll()
    assert vm.ran("recover") == ["recover/10-a"] and vm.record(event).outcome == "completed"


def test_changed_events_under_an_unchanged_incarnation_count_with_one_warning(azure: Azure, vm: EngineHarness) -> None:
    entries = [azure.entry(EventId=name, EventType="Freeze") for name in "abcd"]
    azure.show(*entries[:1])
    vm.poll()
    assert vm.times_logged("unchanged DocumentIncarnation") == 0
    for number in range(2, 5):
        azure.heal()
        azure.show(*entries[:number])
        vm.poll(after=1)
    assert {mark.event_id for mark in vm.marks("begin")} == set("abcd")
    assert vm.times_logged("unchanged DocumentIncarnation (7)") == 1


def test_t35_what_was_missed_is_recovered_from(azure: Azure, vm: EngineHarness) -> None:
    event = azure.schedule("Reboot", started_for=5)
    vm.poll()
    vm.poll(after=600)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"] and vm.record(event).outcome == "unknown"
    assert vm.times_logged("its start was missed") == 1


ODD = {
    "type": {"EventType": "Hibernate"},
    "status": {"EventStatus": "Paused"},
    "source": {"EventSource": "Autoscaler"},
    "resource-type": {"ResourceType": "Disk"},
}


@pytest.mark.parametrize("what", ODD)
def test_t39_unknown_words_are_never_approved_by_themselves(azure: Azure, vm: EngineHarness, what: str) -> None:
    vm.configure(policy=ALWAYS)
    azure.show(azure.entry(**{"EventSource": "User", **ODD[what]}))
    vm.poll()
    vm.poll(after=5)
    assert azure.requests("POST") == []
    # an event that was never listed cannot be about to begin
    assert vm.ran() == ([] if what == "status" else ["prepare/10-a"])
    azure.show()
    vm.poll(after=5)
    assert vm.ran("recover") == ["recover/10-a"] and vm.engine.records == []


@pytest.mark.parametrize("version", ["2017-08-01", "2017-11-01", "2019-01-01", "2019-04-01", "2019-08-01"])
def test_t41_without_source_and_duration_the_documented_policy_approves_nothing(
    azure: Azure, vm: EngineHarness, version: str
) -> None:
    vm.configure(policy="documented", api_version=version)
    azure.schedule("Reboot", source="User")
    azure.schedule("Freeze", duration=5)
    vm.poll()
    vm.poll(after=5)
    has_source = version >= "2019-08-01"
    assert len(azure.requests("POST")) == has_source
    assert vm.ran("prepare") == ["prepare/10-a"] * 2


def test_t42_the_preview_version_names_vms_with_an_underscore(azure: Azure, vm: EngineHarness) -> None:
    vm.configure(api_version="2017-03-01")
    event = azure.schedule("Reboot")
    vm.poll()
    assert vm.record(event).event.resources == ("_vm1",)
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_a_version_that_is_not_there_is_followed_by_the_next(azure: Azure, vm: EngineHarness) -> None:
    vm.configure(api_version=["2031-01-01", "2020-07-01"])
    event = azure.schedule("Reboot")
    vm.poll()
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_an_entry_that_cannot_be_read_ends_nothing(azure: Azure, vm: EngineHarness) -> None:
    azure.show(azure.entry())
    vm.poll()
    azure.show({"EventType": "Reboot"})
    vm.poll(after=5)
    assert vm.ran("recover") == [] and vm.times_logged("has no usable EventId") == 1
    azure.show()
    vm.poll(after=5)
    assert vm.ran("recover") == ["recover/10-a"]


def test_policy_and_hooks_hold_for_the_shipped_default(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy=AFTER_PREPARE)
    event = azure.schedule("Reboot")
    vm.poll()
    assert azure.approvals() == [("vm1", event)], "no hooks at all: there is nothing that could fail"
    azure.complete(event)
    vm.poll()
    assert vm.engine.records == [] and vm.record(event).outcome == "unknown"
