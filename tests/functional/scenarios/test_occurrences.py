# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.1: occurrences of events, as a client of the helper sees them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from azure_scheduled_events import Imds, ImdsRefused, Policy
from support.observer import Observer
from support.simulator_process import Simulator

Simulate = Callable[..., Simulator]

FREEZE: dict[str, Any] = {
    "name": "one",
    "type": "Freeze",
    "resources": ["vm1"],
    "at": 10,
    "duration": 5,
    "started_for": "5m",
}
AFTER_PREPARE = Policy.from_rules(
    [{"name": "mine", "when": {"concerns_me": True}, "do": ["prepare", {"approve": "after_prepare"}]}]
)


def approve(vm: Observer) -> None:
    vm.imds.approve(vm.single_event().event_id)


def test_freeze_prepared_and_approved_starts_and_is_gone(simulate: Simulate) -> None:
    """T01."""
    vm = Observer(simulate(FREEZE))
    assert vm.poll() == []
    assert vm.poll(after=10) == ["appeared Freeze Scheduled mine"]
    assert vm.decide(AFTER_PREPARE) == ("after_prepare", False)
    assert vm.decide(AFTER_PREPARE, prepared="ok") == ("after_prepare", True)
    approve(vm)
    assert vm.poll() == []
    assert vm.poll(after=2) == ["started Freeze Started mine"]
    assert vm.single_event().not_before is None
    assert vm.poll(after=290) == []
    assert vm.poll(after=20) == ["gone Freeze Started mine"]
    assert vm.poll(after=60) == [] and vm.errors == []


def test_event_without_approval_starts_at_not_before(simulate: Simulate) -> None:
    """T02."""
    azure = simulate(FREEZE)
    vm = Observer(azure)
    vm.poll(after=10)
    assert vm.decide(Policy.preset("observe")) == ("never", False)
    left = vm.seconds_left()
    assert 899 <= left <= 901
    assert vm.poll(after=left - 2) == []
    assert vm.poll(after=3) == ["started Freeze Started mine"]
    assert vm.poll(after=310) == ["gone Freeze Started mine"]
    assert [line for line in azure.get("/log")["lines"] if line["what"] == "approval"] == []


def test_event_cancelled_before_its_start_is_gone(simulate: Simulate) -> None:
    """T03."""
    vm = Observer(simulate({**FREEZE, "cancel_after": "8m"}))
    vm.poll(after=10)
    assert vm.poll(after=490) == ["gone Freeze Scheduled mine"]


def test_event_cancelled_after_its_approval_is_gone(simulate: Simulate) -> None:
    """T04."""
    vm = Observer(simulate({**FREEZE, "hold": True, "cancel_after": "8m"}))
    vm.poll(after=10)
    approve(vm)
    assert vm.poll(after=60) == []
    assert vm.poll(after=430) == ["gone Freeze Scheduled mine"]


@pytest.mark.parametrize("kind", ["Reboot", "Redeploy"])
def test_hardware_failure_appears_as_started(simulate: Simulate, kind: str) -> None:
    """T06, T07."""
    vm = Observer(
        simulate(
            {
                "name": "one",
                "type": kind,
                "resources": ["vm1"],
                "at": 10,
                "starts": "hardware_failure",
                "started_for": 60,
            }
        )
    )
    vm.poll()
    assert vm.poll(after=10) == [f"appeared {kind} Started mine"]
    assert vm.decide(AFTER_PREPARE, prepared="ok") == ("after_prepare", False)
    assert vm.single_event().source == "Platform"
    assert vm.poll(after=70) == [f"gone {kind} Started mine"]


def test_automatic_approval_differs_from_hardware_failure_by_its_source(simulate: Simulate) -> None:
    """T08."""
    vm = Observer(
        simulate(
            {"name": "one", "type": "Reboot", "resources": ["vm1"], "starts": "automatic_approval", "source": "User"}
        )
    )
    assert vm.poll() == ["appeared Reboot Started mine"]
    assert vm.single_event().source == "User"
    assert vm.decide(Policy.preset("documented")) == ("never", False)


def test_second_impact_does_not_end_the_event(simulate: Simulate) -> None:
    """T10."""
    vm = Observer(simulate(shipped="second-impact"))
    seen = [note for _step in range(60) for note in vm.poll(after=30)]
    assert [note.split()[0] for note in seen] == ["appeared", "started", "gone"]


def test_restarted_client_recognises_the_event_by_its_id(simulate: Simulate) -> None:
    """T11, T12."""
    azure = simulate(FREEZE)
    first = Observer(azure)
    first.poll(after=10)
    again = Observer(azure)
    again.known = first.known
    assert again.poll() == []
    approve(again)
    assert again.poll(after=5) == ["started Freeze Started mine"]
    third = Observer(azure)
    third.known = again.known
    assert third.poll() == []


def test_event_whose_start_was_missed_is_reported_as_gone(simulate: Simulate) -> None:
    """T13, T35."""
    azure = simulate(FREEZE)
    vm = Observer(azure)
    vm.poll(after=10)
    incarnation = vm.known.incarnation if vm.known else None
    approve(vm)
    assert vm.poll(after=600) == ["gone Freeze Scheduled mine"]
    assert vm.known is not None and vm.known.incarnation != incarnation


def test_two_events_at_once_are_reported_separately(simulate: Simulate) -> None:
    """T15."""
    vm = Observer(simulate(FREEZE, {"name": "two", "type": "Redeploy", "resources": ["vm2"], "at": 10}))
    vm.poll()
    assert sorted(vm.poll(after=10)) == ["appeared Freeze Scheduled mine", "appeared Redeploy Scheduled of others"]


def test_event_of_another_vm_is_reported_but_not_approved(simulate: Simulate) -> None:
    """T17."""
    vm = Observer(simulate({**FREEZE, "resources": ["vm2"], "source": "User"}))
    assert vm.poll(after=10) == ["appeared Freeze Scheduled of others"]
    assert vm.decide(Policy.preset("documented")) == ("never", False)
    assert vm.decide(AFTER_PREPARE, prepared="ok") == ("never", False)


def test_approval_by_another_vm_starts_the_event(simulate: Simulate) -> None:
    """T18."""
    azure = simulate({**FREEZE, "resources": ["vm1", "vm2"]})
    vm, other = Observer(azure), Observer(azure, "vm2")
    vm.poll(after=10)
    other.poll()
    approve(other)
    assert vm.poll(after=2) == ["started Freeze Started mine"]


def test_approvals_of_two_vms_cause_one_transition(simulate: Simulate) -> None:
    """T19."""
    azure = simulate({**FREEZE, "resources": ["vm1", "vm2"]})
    vm, other = Observer(azure), Observer(azure, "vm2")
    vm.poll(after=10)
    other.poll()
    before = vm.known.incarnation if vm.known else None
    approve(vm)
    approve(other)
    vm.poll(after=2)
    assert vm.known is not None and before is not None and vm.known.incarnation == before + 1


def test_approved_event_held_by_other_tenants_starts_at_not_before(simulate: Simulate) -> None:
    """T20."""
    vm = Observer(simulate({**FREEZE, "hold": True}))
    vm.poll(after=10)
    approve(vm)
    assert vm.poll(after=600) == []
    assert vm.decide(Policy.preset("documented"), approved_by_us=True) == ("now", False)
    assert vm.poll(after=301) == ["started Freeze Started mine"]


def test_next_fault_domain_follows_the_end_of_the_last_one(simulate: Simulate) -> None:
    """T21."""
    azure = simulate(
        {**FREEZE, "started_for": 60},
        {"name": "two", "type": "Freeze", "resources": ["vm2"], "after": "one", "at": 1},
    )
    vm = Observer(azure)
    vm.poll(after=10)
    approve(vm)
    assert vm.poll(after=2) == ["started Freeze Started mine"]
    assert vm.poll(after=65) == ["gone Freeze Started mine", "appeared Freeze Scheduled of others"]


def test_preempt_leaves_thirty_seconds(simulate: Simulate) -> None:
    """T22."""
    vm = Observer(simulate({"name": "one", "type": "Preempt", "resources": ["vm1"]}))
    vm.poll()
    assert 28 <= vm.seconds_left() <= 31
    short = Policy.from_rules([{"name": "short plan", "when": {"time_left": {"max": "30s"}}, "do": "emergency"}])
    vm.poll(after=2)
    assert vm.decide(short) == ("never", False) and vm.seconds_left() <= 30


def test_terminate_is_approved_by_its_own_vm_only(simulate: Simulate) -> None:
    """T24."""
    group = {"web": {"kind": "scale_set", "vms": {"web_1": {}, "web_2": {}}}}
    azure = simulate(
        {"name": "one", "type": "Terminate", "resources": ["web_1"], "batch": "scale-in"},
        {"name": "two", "type": "Terminate", "resources": ["web_2"], "batch": "scale-in"},
        groups=group,
    )
    first, second = Observer(azure, "web_1"), Observer(azure, "web_2")
    own = Policy.from_rules([{"name": "own", "when": {"only_me": True}, "do": "approve"}])
    for observer in (first, second):
        observer.poll()
        assert observer.known is not None
        mine = [event for event in observer.known.events if observer.name in event.resources]
        observer.known = observer.known._replace(events=tuple(mine))
        assert observer.decide(own) == ("now", True)
    approve(second)
    assert second.poll(after=10) == ["appeared Terminate Scheduled of others"]
    approve(first)
    assert "started Terminate Started mine" in second.poll(after=10)


def test_predicted_failure_waits_days(simulate: Simulate) -> None:
    """T25."""
    vm = Observer(simulate({"name": "one", "type": "Redeploy", "resources": ["vm1"], "notice": "5d"}))
    later = Policy.from_rules(
        [
            {"name": "later", "when": {"time_left": {"gt": "2h"}}, "do": ["notify", "hold"]},
            {"name": "now", "when": {}, "do": [{"approve": "after_prepare"}]},
        ]
    )
    vm.poll()
    assert vm.decide(later, prepared="ok") == ("never", False)
    assert vm.poll(after=5 * 86400 - 7200) == []
    assert vm.decide(later, prepared="ok") == ("after_prepare", True)


def test_approval_after_the_start_is_accepted(simulate: Simulate) -> None:
    """T65."""
    vm = Observer(simulate(FREEZE))
    vm.poll(after=10)
    vm.azure.advance(1000)
    approve(vm)
    assert vm.poll() == ["started Freeze Started mine"]


def test_second_vm_approves_when_the_leader_does_not(simulate: Simulate) -> None:
    """T67."""
    azure = simulate({**FREEZE, "resources": ["vm1", "vm2"]})
    second = Observer(azure, "vm2")
    second.poll(after=10)
    leading = Policy.from_rules(
        [{"name": "leader", "when": {"is_leader": {"strategy": "first", "takeover_after": "60s"}}, "do": "approve"}]
    )
    seen = second.known.server_time if second.known else None
    assert seen is not None
    assert second.decide(leading, first_seen=seen - timedelta(seconds=30)) == ("never", False)
    assert second.decide(leading, first_seen=seen - timedelta(seconds=60)) == ("now", True)


def test_approval_of_an_event_that_is_over_is_refused(simulate: Simulate) -> None:
    vm = Observer(simulate({**FREEZE, "cancel_after": 60}))
    vm.poll(after=10)
    over = vm.single_event().event_id
    vm.azure.advance(120)
    with pytest.raises(ImdsRefused):
        Imds(vm.azure.endpoints["vm1"]).approve(over)
