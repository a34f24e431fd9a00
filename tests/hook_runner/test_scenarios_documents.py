# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Section 8.2: odd documents, old versions and wrong clocks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Callable

import pytest
from rig import AFTER_PREPARE, Rig
from scripts import HANGS, IGNORES_TERM
from simulated_azure import Azure

MakeRig = Callable[..., Rig]

# approves whatever it may
ALWAYS = {"rules": [{"name": "always", "when": {}, "do": ["prepare", "approve"]}]}


@pytest.fixture
def me(make_rig: MakeRig) -> Rig:
    """A VM with a hook for each stage."""
    rig = make_rig()
    for stage in ("prepare", "emergency", "started", "recover"):
        rig.hook(stage + "/10-a")
    return rig


def test_t26_a_later_time_prepares_nothing_twice(azure: Azure, me: Rig) -> None:
    me.configure(policy="observe")
    event = azure.schedule("Reboot", notice=60)
    me.look()
    azure.change(event, notice="20m")
    me.look(after=1)
    me.look(after=100)
    assert me.ran() == ["prepare/10-a"]
    (told,) = me.status()["events"]
    assert told["seconds_left"] == pytest.approx(1100, abs=2)


def test_t26_a_later_time_gives_a_running_hook_longer(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", notice=60)
    me.look()
    azure.change(event, notice="20m")
    me.look(after=50)
    me.look(after=30)
    assert me.steps(event) == [("prepare/10-a", "running")]
    me.release("prepare/10-a")
    me.settle()
    assert me.steps(event) == [("prepare/10-a", "ok")] and azure.approvals() == [("vm1", event)]


@pytest.mark.parametrize("skipped", [True, False])
def test_t26_a_later_time_runs_what_only_lacked_time(azure: Azure, make_rig: MakeRig, skipped: bool) -> None:
    me = make_rig(hooks={"10-a": {"needs": 120 if skipped else 0}})
    me.hook("prepare/10-a", HANGS)
    me.hook("prepare/20-b")
    event = azure.schedule("Reboot", notice=60)
    me.look()
    if not skipped:
        me.look(after=55)
    assert me.steps(event)[0] == ("prepare/10-a", "skipped" if skipped else "timeout") and azure.approvals() == []
    azure.change(event, notice="20m")
    me.look(after=1)
    me.release("prepare/10-a")
    me.settle()
    assert me.ran()[-1] == "prepare/10-a" if skipped else me.ran().count("prepare/10-a") == 2
    assert me.steps(event)[-1][1] == "ok" and azure.approvals() == [("vm1", event)]


def test_t26_a_later_time_comes_as_the_hook_is_being_ended(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(kill_after=1.5)
    me.hook("prepare/10-a", IGNORES_TERM)
    event = azure.schedule("Reboot", notice=60)
    me.look()
    me.pass_time(55)
    me.poll()
    me.wait(lambda: me.marks("term"))
    azure.change(event, notice="20m")
    me.hook("prepare/10-a")
    me.look(after=1)
    assert me.steps(event) == [("prepare/10-a", "stopped"), ("prepare/10-a", "ok")] and azure.approvals() == [("vm1", event)]


def test_t26_what_was_left_out_may_be_left_out_often(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(hooks={"10-a": {"needs": 120}})
    me.hook("prepare/10-a")
    event = azure.schedule("Reboot", notice=60)
    for notice in (60, 65, 70, 75, 80):
        azure.change(event, notice=notice)
        me.look(after=1)
    assert me.ran() == []
    azure.change(event, notice=200)
    me.look(after=1)
    assert me.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_t27_an_earlier_time_shortens_the_plan_with_a_warning(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot")
    me.look()
    azure.change(event, notice="60s")
    me.look(after=10)
    assert "shortened" in me.words(event) and me.said("NotBefore has come nearer: 50 s are left") == 1
    me.look(after=44)
    assert me.steps(event) == [("prepare/10-a", "running")]
    me.look(after=1)
    assert me.steps(event) == [("prepare/10-a", "timeout")] and azure.approvals() == []


def test_t31_the_impossible_step_back_is_noted_and_changes_nothing(azure: Azure, me: Rig) -> None:
    event = azure.schedule("Reboot")
    me.look()
    me.look(after=2)
    azure.change(event, status="Scheduled", notice="10m")
    me.look()
    me.look(after=1)
    assert me.ran() == ["prepare/10-a", "started/10-a"] and len(azure.approvals()) == 1
    assert "anomaly" in me.words(event)
    azure.complete(event)
    me.look()
    assert me.ran("recover") == ["recover/10-a"] and me.record(event).outcome == "completed"


def test_t32_t34_the_incarnation_decides_nothing(azure: Azure, me: Rig) -> None:
    first = azure.schedule("Reboot", hold=True)
    me.look()
    azure.simulator.post("/incarnation", {"group": "web", "add": 278})
    me.look(after=1)
    assert me.ran() == ["prepare/10-a"]
    azure.simulator.post("/incarnation", {"group": "web", "to": 1})
    second = azure.schedule("Freeze", hold=True)
    me.look(after=1)
    assert [mark.event_id for mark in me.marks("begin")] == [first, second]


def test_t35_what_was_missed_is_recovered_from(azure: Azure, me: Rig) -> None:
    event = azure.schedule("Reboot", started_for=5)
    me.look()
    me.look(after=600)
    assert me.ran() == ["prepare/10-a", "recover/10-a"] and me.record(event).outcome == "cancelled-or-missed"
    assert me.said("its start was missed") == 1


ODD = {
    "type": {"EventType": "Hibernate"},
    "status": {"EventStatus": "Paused"},
    "source": {"EventSource": "Autoscaler"},
    "resource-type": {"ResourceType": "Disk"},
}


@pytest.mark.parametrize("what", ODD)
def test_t39_unknown_words_are_never_approved_by_themselves(azure: Azure, me: Rig, what: str) -> None:
    me.configure(policy=ALWAYS)
    azure.show(azure.entry(**{"EventSource": "User", **ODD[what]}))
    me.look()
    me.look(after=5)
    assert azure.requests("POST") == []
    # what nobody has ever heard of cannot be said to be about to begin
    assert me.ran() == ([] if what == "status" else ["prepare/10-a"])
    azure.show()
    me.look(after=5)
    assert me.ran("recover") == ["recover/10-a"] and me.engine.records == []


def test_t40_other_members_orders_and_letter_cases_are_tolerated(azure: Azure, me: Rig) -> None:
    spelt = azure.entry(EventStatus="sCHEDULED", EventType="reBOOT", EventSource="USER", Resources=["VM1"], Severity={"Of": ["all"]})
    azure.show(dict(reversed(list(spelt.items()))), Extra=None)
    me.look()
    event = spelt["EventId"]
    azure.show(azure.entry(EventId=event.lower(), EventStatus="STARTED", NotBefore=""))
    me.look()
    assert me.ran() == ["prepare/10-a", "started/10-a"]
    assert [mark.event_type for mark in me.marks("begin")] == ["Reboot", "Reboot"]


@pytest.mark.parametrize("version", ["2017-08-01", "2017-11-01", "2019-01-01", "2019-04-01", "2019-08-01"])
def test_t41_without_source_and_duration_the_documented_policy_approves_nothing(azure: Azure, me: Rig, version: str) -> None:
    me.configure(policy="documented", api_version=version)
    azure.schedule("Reboot", source="User")
    azure.schedule("Freeze", duration=5)
    me.look()
    me.look(after=5)
    has_source = version >= "2019-08-01"
    assert len(azure.requests("POST")) == has_source
    assert me.ran("prepare") == ["prepare/10-a"] * 2


def test_t42_the_preview_version_names_vms_with_an_underscore(azure: Azure, me: Rig) -> None:
    me.configure(api_version="2017-03-01")
    event = azure.schedule("Reboot")
    me.look()
    assert me.record(event).event.resources == ("_vm1",)
    assert me.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_a_version_that_is_not_there_is_followed_by_the_next(azure: Azure, me: Rig) -> None:
    me.configure(api_version=["2031-01-01", "2020-07-01"])
    event = azure.schedule("Reboot")
    me.look()
    assert me.ran() == []
    me.look(after=1)
    assert me.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


NOT_BEFORE: dict[str, tuple[Any, bool]] = {
    "iso": ("2096-11-21T12:00:00Z", True),
    "wrong-weekday": ("Mon, 20 Nov 2096 12:00:00 GMT", True),
    "absent": (None, False),
    "empty": ("", False),
    "no-date": ("soon", False),
    "no-such-day": ("Mon, 32 Foo 2026 10:00:00 GMT", False),
    "number": (17, False),
    "past": ("Mon, 19 Sep 2016 18:29:47 GMT", True),
    "year-9999": ("Fri, 31 Dec 9999 23:59:59 GMT", True),
}


@pytest.mark.parametrize("what", NOT_BEFORE)
def test_t44_whatever_the_date_is_the_event_is_dealt_with(azure: Azure, me: Rig, what: str) -> None:
    value, is_date = NOT_BEFORE[what]
    azure.show(azure.entry(NotBefore=value))
    me.look()
    me.look(after=5)
    event = azure.entry()["EventId"]
    assert (me.record(event).event.not_before is not None) == is_date
    # a time in the past leaves none; an unknown one may be now, which is no reason to do nothing
    assert me.steps(event) == [("prepare/10-a", "skipped" if what == "past" else "ok")]
    assert len(azure.requests("POST")) >= (what != "past")


@pytest.mark.parametrize("minutes", [20, -20, 60 * 24 * 400])
def test_t45_a_wrong_clock_of_the_host_does_not_matter(azure: Azure, make_rig: MakeRig, minutes: int) -> None:
    me = make_rig()
    me.wall_is_off = timedelta(minutes=minutes)
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", notice=120)
    me.look()
    assert (me.marks()[0].seconds_left, me.marks()[0].hook_seconds) == (120, 115)
    me.look(after=114)
    assert me.steps(event) == [("prepare/10-a", "running")]
    me.look(after=1)
    assert me.steps(event) == [("prepare/10-a", "timeout")]


@pytest.mark.parametrize("minutes", [20, -20, 60])
def test_t45_a_clock_that_is_set_while_a_hook_runs_does_not_matter(azure: Azure, make_rig: MakeRig, minutes: int) -> None:
    me = make_rig()
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", notice=120)
    me.look()
    me.wall_is_off = timedelta(minutes=minutes)
    me.look(after=114)
    assert me.steps(event) == [("prepare/10-a", "running")]
    me.look(after=1)
    assert me.steps(event) == [("prepare/10-a", "timeout")]


@pytest.mark.parametrize("minutes", [20, -20])
def test_t45_a_wrong_clock_ends_no_hook_that_outlived_a_restart(azure: Azure, make_rig: MakeRig, minutes: int) -> None:
    me = make_rig(hook_timeout=300)
    me.wall_is_off = timedelta(minutes=minutes)
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot")
    me.look()
    me.restart("kill")
    me.settle()
    me.look(after=200)
    assert me.steps(event) == [("prepare/10-a", "running")]
    me.look(after=101)
    assert me.steps(event) == [("prepare/10-a", "timeout")]


def test_an_entry_that_cannot_be_read_ends_nothing(azure: Azure, me: Rig) -> None:
    azure.show(azure.entry())
    me.look()
    azure.show({"EventType": "Reboot"})
    me.look(after=5)
    assert me.ran("recover") == [] and me.said("has no usable EventId") == 1
    azure.show()
    me.look(after=5)
    assert me.ran("recover") == ["recover/10-a"]


def test_policy_and_hooks_hold_for_the_shipped_default(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(policy=AFTER_PREPARE)
    event = azure.schedule("Reboot")
    me.look()
    assert azure.approvals() == [("vm1", event)], "no hooks at all: there is nothing that could fail"
    azure.complete(event)
    me.look()
    assert me.engine.records == [] and me.record(event).outcome == "cancelled-or-missed"
