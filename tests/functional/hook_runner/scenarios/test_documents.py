# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.2: odd documents, and those of backends that do not agree."""

from __future__ import annotations

from collections.abc import Callable

from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure


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


def _show_by_turns(azure: Azure, vm: RunnerHarness, *listed: bool) -> None:
    for is_listed in listed:
        azure.heal()
        if not is_listed:
            azure.show()
        vm.poll_once(after=1)


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


def test_event_that_comes_back_is_not_approved_by_what_was_known_before(
    azure: Azure, make_vm: Callable[..., RunnerHarness]
) -> None:
    vm = make_vm(policy={"rules": [{"when": {"first_seen_age": {"min": 10}}, "approve": "after_prepare"}]})
    for stage in ("prepare", "recover"):
        vm.hook(stage + "/10-a")
    azure.schedule("Freeze", hold=True)
    _show_by_turns(azure, vm, True, False, False, False, *[True] * 9)
    assert vm.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"] and azure.requests("POST") == []
    vm.poll_once(after=2)
    assert len(azure.approvals()) == 1
