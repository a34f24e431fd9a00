# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Documents of backends that do not agree: an absence counts when good documents with it span two seconds."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from support.daemon.hook_scripts import HANGS
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


@pytest.mark.parametrize("seed", range(5))
def test_random_documents_end_the_event_once_at_most(azure: Azure, vm: RunnerHarness, seed: int) -> None:
    choose = random.Random(seed)
    azure.schedule("Freeze", hold=True)
    _show_by_turns(azure, vm, *(choose.random() < 0.5 for _poll in range(40)))
    prepared, approved, recovered = _counts(azure, vm)
    assert recovered <= 1 and 1 <= approved <= prepared <= recovered + 1


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


def test_event_that_comes_back_during_a_recovery_is_approved_after_another_preparation(
    azure: Azure, make_vm: MakeVm
) -> None:
    vm = make_vm(policy=LATE, hooks={"10-a": {"timeout": 60}})
    vm.hook("prepare/10-a")
    vm.hook("recover/10-a", HANGS)
    for kind in ("Freeze", "Redeploy"):
        azure.schedule(kind, hold=True)
    _show_by_turns(azure, vm, True, False, False, False, True)
    vm.restart("kill")
    vm.poll_once(after=10)
    vm.poll_once(after=1)
    assert azure.requests("POST") == [] and vm.ran() == ["prepare/10-a", "recover/10-a"]
    vm.release("recover/10-a")
    vm.poll_once(after=1)
    assert len(azure.approvals()) == 2 and vm.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"]


def test_one_document_without_this_vm_ends_nothing(azure: Azure, vm: RunnerHarness) -> None:
    azure.show(azure.entry())
    vm.poll()
    for names in (["vm2"], ["vm1"], ["vm2"], ["vm2"]):
        azure.show(azure.entry(Resources=names))
        vm.poll_once(after=1)
        assert vm.ran() == ["prepare/10-a"]
    vm.poll_once(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"]


@pytest.mark.parametrize("resources", [None, 17, [], {}, [None]])
def test_resources_that_cannot_be_read_are_unknown(azure: Azure, vm: RunnerHarness, resources: object) -> None:
    vm.hook("prepare/10-a", HANGS)
    azure.show(azure.entry())
    vm.poll()
    azure.show({**azure.entry(), "Resources": resources})
    for _poll in range(4):
        vm.poll_once(after=1)
    assert vm.ran() == ["prepare/10-a"] and vm.running()
    vm.release("prepare/10-a")
    vm.settle()
    # it is unknown which VMs an approval would release
    assert azure.requests("POST") == []
    azure.show(azure.entry())
    vm.poll(after=1)
    assert len(azure.requests("POST")) == 1


def test_approval_is_not_sent_while_the_event_is_missing(azure: Azure, vm: RunnerHarness) -> None:
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
