# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Documents of backends that do not agree: an absence counts when good documents with it span two seconds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., RunnerHarness]
LATE = {"rules": [{"when": {"first_seen_age": {"min": 10}}, "approve": "after_prepare"}]}


def _show_by_turns(azure: Azure, vm: RunnerHarness, *listed: bool) -> None:
    for is_listed in listed:
        azure.heal()
        if not is_listed:
            azure.show()
        vm.poll_once(after=1)


def _counts(azure: Azure, vm: RunnerHarness) -> tuple[int, int, int]:
    return len(vm.ran("prepare")), len(azure.approvals()), len(vm.ran("recover"))


@pytest.mark.parametrize("length, counts", [(1, (1, 1, 0)), (2, (1, 1, 0)), (3, (2, 2, 1))])
def test_documents_that_alternate_end_the_event_once_at_most(
    azure: Azure, vm: RunnerHarness, length: int, counts: tuple[int, int, int]
) -> None:
    azure.schedule("Freeze", hold=True)
    _show_by_turns(azure, vm, *([True] * length + [False] * length) * 10)
    assert _counts(azure, vm) == counts


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
    vm = make_vm(policy=LATE)
    for stage in ("prepare", "recover"):
        vm.hook(stage + "/10-a")
    azure.schedule("Freeze", hold=True)
    _show_by_turns(azure, vm, True, False, False, False, *[True] * 9)
    assert vm.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"] and azure.requests("POST") == []
    vm.poll_once(after=2)
    assert len(azure.approvals()) == 1


@pytest.mark.parametrize("how", ["kill", "reboot"])
def test_an_id_that_comes_back_is_another_event_and_ends_after_a_minute(
    azure: Azure, vm: RunnerHarness, how: str
) -> None:
    entry = azure.entry()
    azure.show(entry)
    vm.poll()
    azure.show()
    vm.poll(after=1)
    vm.restart(how)
    azure.show({**entry, "EventId": entry["EventId"].lower()})
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"] and len(azure.requests("POST")) == 2
    azure.show()
    for _restart in range(2):
        for _poll in range(60):
            vm.poll_once(after=1)
        assert vm.ran("recover") == ["recover/10-a"]
        vm.restart("kill")
    for _poll in range(62):
        vm.poll_once(after=1)
    assert vm.ran("recover") == ["recover/10-a"] * 2 and len(vm.stored()) == 2
