# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.2: what the daemon does with odd documents and old versions."""

from __future__ import annotations

import pytest

from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure


def test_t31_the_impossible_step_back_changes_nothing(azure: Azure, vm: RunnerHarness) -> None:
    event = azure.schedule("Reboot")
    vm.poll()
    vm.poll(after=2)
    azure.change(event, status="Scheduled", notice="10m")
    vm.poll()
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "started/10-a"] and len(azure.approvals()) == 1
    azure.complete(event)
    vm.poll()
    assert vm.ran("recover") == ["recover/10-a"] and vm.record(event).outcome == "completed"


def test_changed_events_under_an_unchanged_incarnation_count_with_one_warning(azure: Azure, vm: RunnerHarness) -> None:
    entries = [azure.entry(EventId=name, EventType="Freeze") for name in "abcd"]
    azure.show(*entries[:1])
    vm.poll()
    assert vm.times_logged("unchanged DocumentIncarnation") == 0
    for number in range(2, 5):
        azure.show(*entries[:number])
        vm.poll(after=1)
    assert [each["event_id"] for each in vm.status()["events"]] == list("abcd")
    assert vm.times_logged("unchanged DocumentIncarnation (7)") == 1


@pytest.mark.parametrize(
    "odd, prepares",
    [({"EventType": "Hibernate"}, ["prepare/10-a"]), ({"EventStatus": "Paused"}, [])],
    ids=["type", "status"],
)
def test_t39_hooks_run_for_an_unknown_type_and_wait_for_a_known_status(
    azure: Azure, vm: RunnerHarness, odd: dict[str, str], prepares: list[str]
) -> None:
    azure.show(azure.entry(**odd))
    vm.poll()
    assert vm.ran() == prepares
    azure.show()
    vm.poll(after=5)
    assert vm.ran() == [*prepares, "recover/10-a"] and vm.runner.records.maintenance is None


@pytest.mark.parametrize("version", ["2017-08-01", "2019-04-01", "2019-08-01"])
def test_t41_without_source_and_duration_the_documented_policy_approves_nothing(
    azure: Azure, vm: RunnerHarness, version: str
) -> None:
    vm.configure(policy="documented", api_version=version)
    azure.schedule("Reboot", source="User")
    azure.schedule("Freeze", duration=5)
    vm.poll()
    vm.poll(after=5)
    has_source = version >= "2019-08-01"
    assert len(azure.requests("POST")) == has_source
    assert vm.ran("prepare") == ["prepare/10-a"]


def test_t42_the_preview_version_names_vms_with_an_underscore(azure: Azure, vm: RunnerHarness) -> None:
    vm.configure(api_version="2017-03-01")
    event = azure.schedule("Reboot")
    vm.poll()
    assert vm.record(event).event.resources == ("_vm1",)
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


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
