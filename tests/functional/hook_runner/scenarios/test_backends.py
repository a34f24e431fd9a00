# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Documents of backends that do not agree: an absence counts when good documents with it span two seconds."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

import pytest

from support.daemon.engine_harness import EngineHarness
from support.daemon.hook_scripts import HANGS
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., EngineHarness]
LATE = {"rules": [{"when": {"first_seen_age": {"min": 10}}, "approve": "after_prepare"}]}


def _alternate(azure: Azure, vm: EngineHarness, listed: Iterator[bool], polls: int = 20) -> None:
    azure.schedule("Freeze", hold=True)
    _show_by_turns(azure, vm, *itertools.islice(listed, polls))


def _show_by_turns(azure: Azure, vm: EngineHarness, *listed: bool) -> None:
    for is_listed in listed:
        azure.heal()
        if not is_listed:
            azure.show()
        vm.poll_once(after=1)


def _pattern(*listed: bool) -> Iterator[bool]:
    while True:
        yield from listed


def _counts(azure: Azure, vm: EngineHarness) -> tuple[int, int, int]:
    return len(vm.ran("prepare")), len(azure.approvals()), len(vm.ran("recover"))


def test_documents_that_alternate_one_by_one_are_one_preparation_and_no_recovery(
    azure: Azure, vm: EngineHarness
) -> None:
    _alternate(azure, vm, _pattern(True, False))
    assert _counts(azure, vm) == (1, 1, 0)


def test_status_has_the_event_as_the_last_document_has_it(azure: Azure, vm: EngineHarness) -> None:
    seen = []
    entry = azure.entry()
    unreadable = {**entry, "Resources": [*entry["Resources"], 7]}
    for shown in ([entry], [unreadable], []):
        azure.show(*shown)
        vm.poll_once(after=1)
        seen += [(event["listed"], event["named"], event["readable"]) for event in vm.status()["events"]]
    names = [name.casefold() for name in entry["Resources"]]
    assert seen == [(True, names, True), (True, ["7", *names], False), (False, [], False)]


def test_documents_that_alternate_two_by_two_are_one_preparation_and_no_recovery(
    azure: Azure, vm: EngineHarness
) -> None:
    _alternate(azure, vm, _pattern(True, True, False, False), polls=40)
    assert _counts(azure, vm) == (1, 1, 0)


def test_documents_that_alternate_three_by_three_end_the_event_once(azure: Azure, vm: EngineHarness) -> None:
    _alternate(azure, vm, _pattern(True, True, True, False, False, False), polls=60)
    assert _counts(azure, vm) == (2, 2, 1)


@pytest.mark.parametrize("seed", range(5))
def test_random_documents_end_the_event_once_at_most(azure: Azure, vm: EngineHarness, seed: int) -> None:
    choose = random.Random(seed)
    _alternate(azure, vm, iter(lambda: choose.random() < 0.5, None), polls=40)
    prepared, approved, recovered = _counts(azure, vm)
    assert recovered <= 1 and 1 <= approved <= prepared <= recovered + 1


def test_event_that_comes_back_after_its_recovery_is_prepared_again(azure: Azure, vm: EngineHarness) -> None:
    _alternate(azure, vm, _pattern(True, True, False, False, False, True), polls=6)
    assert _counts(azure, vm) == (2, 2, 1)
    azure.show()
    vm.poll(after=1)
    assert _counts(azure, vm) == (2, 2, 2) and vm.engine.records == []


def test_event_that_comes_back_is_not_approved_by_what_was_known_before(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy=LATE)
    for stage in ("prepare", "recover"):
        vm.hook(stage + "/10-a")
    azure.schedule("Freeze", hold=True)
    _show_by_turns(azure, vm, True, False, False, False, True)
    for _look in range(8):
        vm.poll_once(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"] and azure.requests("POST") == []
    vm.poll_once(after=2)
    assert len(azure.approvals()) == 1


def test_events_whose_recovery_was_one_run_are_all_prepared_again_when_they_come_back(
    azure: Azure, make_vm: MakeVm
) -> None:
    vm = make_vm(policy=LATE)
    for stage in ("prepare", "recover"):
        vm.hook(stage + "/10-a")
    for kind in ("Freeze", "Redeploy"):
        azure.schedule(kind, hold=True)
    _show_by_turns(azure, vm, True, False, False, False)
    assert vm.ran("recover") == ["recover/10-a"]
    _show_by_turns(azure, vm, *[True] * 8)
    assert azure.requests("POST") == [] and len(vm.ran("prepare")) == 4
    vm.poll(after=10)
    assert len(azure.approvals()) == 2 and len(vm.ran("prepare")) == 4


def test_event_that_comes_back_during_a_recovery_is_not_approved_before_it_is_prepared_again(
    azure: Azure, make_vm: MakeVm
) -> None:
    vm = make_vm(policy=LATE)
    vm.hook("prepare/10-a")
    vm.hook("recover/10-a", HANGS)
    for kind in ("Freeze", "Redeploy"):
        azure.schedule(kind, hold=True)
    _show_by_turns(azure, vm, True, False, False, False, True)
    vm.poll_once(after=10)
    assert azure.requests("POST") == [] and len(vm.ran("prepare")) == 2
    vm.restart("kill")
    vm.poll_once(after=1)
    assert azure.requests("POST") == []
    vm.release("recover/10-a")
    vm.poll_once(after=1)
    assert len(azure.approvals()) == 2 and len(vm.ran("prepare")) == 4 and vm.ran("recover") == ["recover/10-a"]


def test_one_document_without_this_vm_ends_nothing(azure: Azure, vm: EngineHarness) -> None:
    azure.show(azure.entry())
    vm.poll()
    azure.show(azure.entry(Resources=["vm2"]))
    vm.poll_once(after=1)
    azure.show(azure.entry())
    vm.poll_once(after=1)
    assert vm.ran() == ["prepare/10-a"]
    azure.show(azure.entry(Resources=["vm2"]))
    for _poll in range(2):
        vm.poll_once(after=1)
        assert vm.ran() == ["prepare/10-a"]
    vm.poll_once(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"]


@pytest.mark.parametrize("resources", [None, 17, [], {}, [None]])
def test_resources_that_cannot_be_read_are_unknown(azure: Azure, vm: EngineHarness, resources: object) -> None:
    vm.hook("prepare/10-a", HANGS)
    azure.show(azure.entry())
    vm.poll()
    entry = azure.entry()
    entry["Resources"] = resources
    azure.show(entry)
    for _poll in range(4):
        vm.poll_once(after=1)
    assert vm.ran() == ["prepare/10-a"] and vm.running()
    vm.release("prepare/10-a")
    vm.settle()
    # it is unknown which VMs an approval would release
    assert azure.requests("POST") == [] and vm.timeline(azure.entry()["EventId"]).count("approval-held") == 0
    azure.show(azure.entry())
    vm.poll(after=1)
    assert len(azure.requests("POST")) == 1


def test_approval_is_not_sent_while_the_event_is_missing(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    azure.show(azure.entry())
    vm.poll()
    azure.show()
    vm.poll_once(after=1)
    vm.release("prepare/10-a")
    vm.settle()
    assert azure.requests("POST") == []
    azure.show(azure.entry())
    vm.poll_once(after=1)
    assert len(azure.requests("POST")) == 1


def test_recovery_that_has_begun_is_finished_before_anything_else(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("recover/10-a", HANGS)
    for entries in ([azure.entry()], [], [], [], [azure.entry()]):
        azure.show(*entries)
        vm.poll_once(after=1)
    vm.restart("kill")
    vm.poll_once(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"]
    vm.release("recover/10-a")
    vm.settle()
    assert vm.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"]
