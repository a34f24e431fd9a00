# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Documents of backends that do not agree: an absence counts after two good documents in a row."""

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


def test_documents_that_alternate_two_by_two_are_one_preparation_and_one_recovery(
    azure: Azure, vm: EngineHarness
) -> None:
    _alternate(azure, vm, _pattern(True, True, False, False), polls=40)
    assert _counts(azure, vm) == (1, 1, 1)


@pytest.mark.parametrize("seed", range(5))
def test_random_documents_are_one_preparation_one_approval_and_at_most_one_recovery(
    azure: Azure, vm: EngineHarness, seed: int
) -> None:
    choose = random.Random(seed)
    _alternate(azure, vm, iter(lambda: choose.random() < 0.5, None), polls=40)
    prepared, approved, recovered = _counts(azure, vm)
    assert (prepared, approved) == (1, 1) and recovered <= 1


def test_event_that_is_still_listed_after_its_recovery_is_prepared_again(azure: Azure, vm: EngineHarness) -> None:
    _alternate(azure, vm, _pattern(True, True, False, False), polls=6)
    azure.heal()
    vm.poll(after=58)
    assert len(vm.ran("prepare")) == 1
    vm.poll(after=3)
    assert _counts(azure, vm) == (2, 1, 1)
    azure.show()
    vm.poll(after=1)
    assert _counts(azure, vm) == (2, 1, 2) and vm.engine.records == []


def test_event_that_comes_back_shortly_before_not_before_is_prepared_again_at_once(
    azure: Azure, vm: EngineHarness
) -> None:
    soon = azure.entry(NotBefore=azure.in_seconds(50))
    for entries in ([soon], [], [], [soon]):
        azure.show(*entries)
        vm.poll_once(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"]


def test_event_that_comes_back_too_late_to_prepare_is_not_recovered_again(azure: Azure, vm: EngineHarness) -> None:
    soon = azure.entry(NotBefore=azure.in_seconds(8))
    for entries, after in (([soon], 1), ([], 1), ([], 1), ([soon], 4), ([], 0.2), ([], 0.2)):
        azure.show(*entries)
        vm.poll_once(after=after)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"] and vm.engine.records == []


def test_event_that_is_not_approved_yet_is_not_approved_after_its_recovery(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy=LATE)
    for stage in ("prepare", "recover"):
        vm.hook(stage + "/10-a")
    azure.schedule("Freeze", hold=True)
    _show_by_turns(azure, vm, True, False, False, True)
    for _look in range(20):
        vm.poll_once(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"] and azure.requests("POST") == []
    for _look in range(45):
        vm.poll_once(after=1)
    assert vm.ran("prepare") == ["prepare/10-a"] * 2 and len(azure.approvals()) == 1


def test_event_whose_recovery_another_one_served_is_not_approved_when_it_comes_back(
    azure: Azure, make_vm: MakeVm
) -> None:
    vm = make_vm(policy=LATE)
    for stage in ("prepare", "recover"):
        vm.hook(stage + "/10-a")
    for kind in ("Freeze", "Redeploy"):
        azure.schedule(kind, hold=True)
    _show_by_turns(azure, vm, True, False, False)
    assert vm.ran("recover") == ["recover/10-a"]
    _show_by_turns(azure, vm, *[True] * 20)
    assert azure.requests("POST") == [] and len(vm.ran("prepare")) == 2
    vm.poll(after=61)
    assert len(azure.approvals()) == 2 and len(vm.ran("prepare")) == 4


def test_event_that_comes_back_during_the_recovery_of_another_one_is_not_approved(
    azure: Azure, make_vm: MakeVm
) -> None:
    vm = make_vm(policy=LATE)
    vm.hook("prepare/10-a")
    vm.hook("recover/10-a", HANGS)
    for kind in ("Freeze", "Redeploy"):
        azure.schedule(kind, hold=True)
    _show_by_turns(azure, vm, True, False, False, True)
    vm.poll_once(after=10)
    assert azure.requests("POST") == []
    vm.restart("kill")
    vm.poll_once(after=1)
    vm.release("recover/10-a")
    vm.poll_once(after=1)
    assert azure.requests("POST") == [] and vm.ran("recover") == ["recover/10-a"]
    vm.poll(after=61)
    assert len(azure.approvals()) == 2 and len(vm.ran("prepare")) == 4


def test_one_document_without_this_vm_ends_nothing(azure: Azure, vm: EngineHarness) -> None:
    azure.show(azure.entry())
    vm.poll()
    azure.show(azure.entry(Resources=["vm2"]))
    vm.poll_once(after=1)
    azure.show(azure.entry())
    vm.poll_once(after=1)
    assert vm.ran() == ["prepare/10-a"]
    azure.show(azure.entry(Resources=["vm2"]))
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
    vm.poll_once(after=1)
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
    for entries in ([azure.entry()], [], [], [azure.entry()]):
        azure.show(*entries)
        vm.poll_once(after=1)
    vm.restart("kill")
    vm.poll_once(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"]
    vm.release("recover/10-a")
    vm.settle()
    assert vm.engine.preparation_state(vm.record(azure.entry()["EventId"])) == "running"
