# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.1: lives of events, as a client of the helper sees them."""

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


def approve(me: Observer) -> None:
    me.imds.approve(me.only().event_id)


def test_t01_prepare_approve_started_gone(simulate: Simulate) -> None:
    me = Observer(simulate(FREEZE))
    assert me.look() == []
    assert me.look(after=10) == ["appeared Freeze Scheduled mine"]
    assert me.decide(AFTER_PREPARE) == ("after_prepare", False)
    assert me.decide(AFTER_PREPARE, prepared="ok") == ("after_prepare", True)
    approve(me)
    assert me.look() == []
    assert me.look(after=2) == ["started Freeze Started mine"]
    assert me.only().not_before is None
    assert me.look(after=290) == []
    assert me.look(after=20) == ["gone Freeze Started mine"]
    assert me.look(after=60) == [] and me.errors == []


def test_t02_nobody_approves_and_it_starts_when_its_time_has_come(simulate: Simulate) -> None:
    azure = simulate(FREEZE)
    me = Observer(azure)
    me.look(after=10)
    assert me.decide(Policy.preset("observe")) == ("never", False)
    left = me.seconds_left()
    assert 899 <= left <= 901
    assert me.look(after=left - 2) == []
    assert me.look(after=3) == ["started Freeze Started mine"]
    assert me.look(after=310) == ["gone Freeze Started mine"]
    assert [line for line in azure.get("/log")["lines"] if line["what"] == "approval"] == []


def test_t03_cancelled_before_it_started(simulate: Simulate) -> None:
    me = Observer(simulate({**FREEZE, "cancel_after": "8m"}))
    me.look(after=10)
    assert me.look(after=490) == ["gone Freeze Scheduled mine"]


def test_t04_cancelled_although_approved(simulate: Simulate) -> None:
    me = Observer(simulate({**FREEZE, "hold": True, "cancel_after": "8m"}))
    me.look(after=10)
    approve(me)
    assert me.look(after=60) == []
    assert me.look(after=430) == ["gone Freeze Scheduled mine"]


@pytest.mark.parametrize("kind", ["Reboot", "Redeploy"])
def test_t06_t07_hardware_failure_is_first_seen_started(simulate: Simulate, kind: str) -> None:
    me = Observer(
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
    me.look()
    assert me.look(after=10) == [f"appeared {kind} Started mine"]
    assert me.decide(AFTER_PREPARE, prepared="ok") == ("after_prepare", False)
    assert me.only().source == "Platform"
    assert me.look(after=70) == [f"gone {kind} Started mine"]


def test_t08_automatic_approval_is_told_from_hardware_failure_by_its_source(simulate: Simulate) -> None:
    me = Observer(
        simulate(
            {"name": "one", "type": "Reboot", "resources": ["vm1"], "starts": "automatic_approval", "source": "User"}
        )
    )
    assert me.look() == ["appeared Reboot Started mine"]
    assert me.only().source == "User"
    assert me.decide(Policy.preset("documented")) == ("never", False)


def test_t10_a_second_short_impact_is_no_end(simulate: Simulate) -> None:
    me = Observer(simulate(shipped="second-impact"))
    seen = [note for _step in range(60) for note in me.look(after=30)]
    assert [note.split()[0] for note in seen] == ["appeared", "started", "gone"]


def test_t11_t12_a_client_that_starts_anew_knows_the_event_by_its_id(simulate: Simulate) -> None:
    azure = simulate(FREEZE)
    first = Observer(azure)
    first.look(after=10)
    again = Observer(azure)
    again.known = first.known
    assert again.look() == []
    approve(again)
    assert again.look(after=5) == ["started Freeze Started mine"]
    third = Observer(azure)
    third.known = again.known
    assert third.look() == []


def test_t13_t35_what_was_missed_is_told_as_gone(simulate: Simulate) -> None:
    azure = simulate(FREEZE)
    me = Observer(azure)
    me.look(after=10)
    incarnation = me.known.incarnation if me.known else None
    approve(me)
    assert me.look(after=600) == ["gone Freeze Scheduled mine"]
    assert me.known is not None and me.known.incarnation != incarnation


def test_t15_two_at_once_are_two(simulate: Simulate) -> None:
    me = Observer(simulate(FREEZE, {"name": "two", "type": "Redeploy", "resources": ["vm2"], "at": 10}))
    me.look()
    assert sorted(me.look(after=10)) == ["appeared Freeze Scheduled mine", "appeared Redeploy Scheduled of others"]


def test_t17_an_event_of_others_is_seen_but_not_approved(simulate: Simulate) -> None:
    me = Observer(simulate({**FREEZE, "resources": ["vm2"], "source": "User"}))
    assert me.look(after=10) == ["appeared Freeze Scheduled of others"]
    assert me.decide(Policy.preset("documented")) == ("never", False)
    assert me.decide(AFTER_PREPARE, prepared="ok") == ("never", False)


def test_t18_somebody_else_approves_for_both(simulate: Simulate) -> None:
    azure = simulate({**FREEZE, "resources": ["vm1", "vm2"]})
    me, other = Observer(azure), Observer(azure, "vm2")
    me.look(after=10)
    other.look()
    approve(other)
    assert me.look(after=2) == ["started Freeze Started mine"]


def test_t19_both_approve_in_the_same_moment(simulate: Simulate) -> None:
    azure = simulate({**FREEZE, "resources": ["vm1", "vm2"]})
    me, other = Observer(azure), Observer(azure, "vm2")
    me.look(after=10)
    other.look()
    before = me.known.incarnation if me.known else None
    approve(me)
    approve(other)
    me.look(after=2)
    assert me.known is not None and before is not None and me.known.incarnation == before + 1


def test_t20_approved_but_held_by_other_tenants(simulate: Simulate) -> None:
    me = Observer(simulate({**FREEZE, "hold": True}))
    me.look(after=10)
    approve(me)
    assert me.look(after=600) == []
    assert me.decide(Policy.preset("documented"), approved_by_us=True) == ("now", False)
    assert me.look(after=301) == ["started Freeze Started mine"]


def test_t21_the_next_fault_domain_comes_as_the_last_one_ends(simulate: Simulate) -> None:
    azure = simulate(
        {**FREEZE, "started_for": 60},
        {"name": "two", "type": "Freeze", "resources": ["vm2"], "after": "one", "at": 1},
    )
    me = Observer(azure)
    me.look(after=10)
    approve(me)
    assert me.look(after=2) == ["started Freeze Started mine"]
    assert me.look(after=65) == ["gone Freeze Started mine", "appeared Freeze Scheduled of others"]


def test_t22_a_preempt_leaves_thirty_seconds(simulate: Simulate) -> None:
    me = Observer(simulate({"name": "one", "type": "Preempt", "resources": ["vm1"]}))
    me.look()
    assert 28 <= me.seconds_left() <= 31
    short = Policy.from_rules([{"name": "short plan", "when": {"time_left": {"max": "30s"}}, "do": "emergency"}])
    me.look(after=2)
    assert me.decide(short) == ("never", False) and me.seconds_left() <= 30


def test_t24_a_terminate_is_approved_by_its_own_vm_only(simulate: Simulate) -> None:
    group = {"web": {"kind": "scale_set", "vms": {"web_1": {}, "web_2": {}}}}
    azure = simulate(
        {"name": "one", "type": "Terminate", "resources": ["web_1"], "batch": "scale-in"},
        {"name": "two", "type": "Terminate", "resources": ["web_2"], "batch": "scale-in"},
        groups=group,
    )
    first, second = Observer(azure, "web_1"), Observer(azure, "web_2")
    own = Policy.from_rules([{"name": "own", "when": {"only_me": True}, "do": "approve"}])
    for observer in (first, second):
        observer.look()
        assert observer.known is not None
        mine = [event for event in observer.known.events if observer.name in event.resources]
        observer.known = observer.known._replace(events=tuple(mine))
        assert observer.decide(own) == ("now", True)
    approve(second)
    assert second.look(after=10) == ["appeared Terminate Scheduled of others"]
    approve(first)
    assert "started Terminate Started mine" in second.look(after=10)


def test_t25_a_predicted_failure_waits_days(simulate: Simulate) -> None:
    me = Observer(simulate({"name": "one", "type": "Redeploy", "resources": ["vm1"], "notice": "5d"}))
    later = Policy.from_rules(
        [
            {"name": "later", "when": {"time_left": {"gt": "2h"}}, "do": ["notify", "hold"]},
            {"name": "now", "when": {}, "do": [{"approve": "after_prepare"}]},
        ]
    )
    me.look()
    assert me.decide(later, prepared="ok") == ("never", False)
    assert me.look(after=5 * 86400 - 7200) == []
    assert me.decide(later, prepared="ok") == ("after_prepare", True)


def test_t65_an_approval_that_is_raced_by_the_start_is_accepted(simulate: Simulate) -> None:
    me = Observer(simulate(FREEZE))
    me.look(after=10)
    me.azure.advance(1000)
    approve(me)
    assert me.look() == ["started Freeze Started mine"]


def test_t67_the_second_approves_when_the_leader_does_not(simulate: Simulate) -> None:
    azure = simulate({**FREEZE, "resources": ["vm1", "vm2"]})
    second = Observer(azure, "vm2")
    second.look(after=10)
    leading = Policy.from_rules(
        [{"name": "leader", "when": {"is_leader": {"strategy": "first", "takeover_after": "60s"}}, "do": "approve"}]
    )
    seen = second.known.server_time if second.known else None
    assert seen is not None
    assert second.decide(leading, first_seen=seen - timedelta(seconds=30)) == ("never", False)
    assert second.decide(leading, first_seen=seen - timedelta(seconds=60)) == ("now", True)


def test_an_id_that_is_over_cannot_be_approved(simulate: Simulate) -> None:
    me = Observer(simulate({**FREEZE, "cancel_after": 60}))
    me.look(after=10)
    over = me.only().event_id
    me.azure.advance(120)
    with pytest.raises(ImdsRefused):
        Imds(me.azure.endpoints["vm1"]).approve(over)
