# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.4: approvals that get lost, are refused, are led by somebody, or must not be sent."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hook_runner.reporting import history
from hook_runner.reporting.status import is_healthy, to_text
from support.daemon.engine_harness import AFTER_PREPARE, Rig
from support.daemon.hook_scripts import FAILS, HANGS
from support.daemon.simulated_azure import Azure

MakeRig = Callable[..., Rig]


def posts(azure: Azure) -> int:
    return len(azure.requests("POST"))


def test_t62_a_lost_request_is_repeated(azure: Azure, me: Rig) -> None:
    azure.fault("lost-request", method="POST", **{"for": 3})
    event = azure.schedule("Reboot", hold=True)
    me.look()
    attempts = [me.record(event).approval_attempts]
    for after in (0, 1, 1, 1, 60):
        me.look(after=after)
        attempts.append(me.record(event).approval_attempts)
    assert attempts == [1, 1, 2, 2, 3, 3]
    assert azure.approvals() == [("vm1", event)] and me.ran() == ["prepare/10-a"]


@pytest.mark.parametrize("held", [True, False])
def test_t62_a_lost_answer_is_repeated_only_while_it_still_waits(azure: Azure, me: Rig, held: bool) -> None:
    azure.fault("lost-answer", method="POST", **{"for": 1})
    event = azure.schedule("Reboot", hold=held)
    me.look()
    lost = azure.approvals()
    me.look(after=2)
    me.look(after=2)
    # a connection that turns out to be closed is asked twice by the client itself
    assert set(lost) == {("vm1", event)} and azure.approvals() == lost + [("vm1", event)] * held
    assert azure.starts(event) == (not held) and me.ran("prepare") == ["prepare/10-a"]


@pytest.mark.parametrize("how", ["kill", "reboot"])
def test_t62_an_answer_that_nobody_waited_for_is_asked_for_again(azure: Azure, me: Rig, how: str) -> None:
    azure.fault("lost-answer", method="POST", **{"for": 1})
    event = azure.schedule("Reboot", hold=True)
    me.look()
    lost = azure.approvals()
    me.restart(how)
    me.look(after=5)
    assert azure.approvals() == [*lost, ("vm1", event)] and azure.requests("POST")
    assert me.record(event).approval == "accepted" and me.ran() == ["prepare/10-a"] * (2 if how == "reboot" else 1)


@pytest.mark.parametrize("kind", ["server-error", "unavailable", "too-many-requests", "gone", "reset"])
def test_t64_a_sick_service_is_asked_again_less_and_less_often(azure: Azure, me: Rig, kind: str) -> None:
    azure.fault(kind, method="POST", **{"for": 30})
    event = azure.schedule("Reboot", hold=True)
    me.look()
    for _second in range(40):
        me.look(after=1)
    moments = [request["moment"] for request in azure.requests("POST")]
    assert sorted({round(moment - moments[0]) for moment in moments}) == [0, 1, 3, 7, 15, 25, 35]
    assert azure.approvals() == [("vm1", event)]
    assert me.words(event).count("approval-failed") == 6


def test_t64_retry_after_is_kept(azure: Azure, me: Rig) -> None:
    azure.fault("too-many-requests", method="POST", requests=1, retry_after=7)
    azure.schedule("Reboot", hold=True)
    me.look()
    for _second in range(6):
        me.look(after=1)
    assert posts(azure) == 1
    me.look(after=1)
    assert posts(azure) == 2


def test_refused_approval_is_repeated_once_soon_and_then_seldom(azure: Azure, me: Rig) -> None:
    azure.fault("bad-request", method="POST")
    event = azure.schedule("Reboot", hold=True)
    me.look()
    assert posts(azure) == 1
    me.look(after=1)
    assert posts(azure) == 2
    for _second in range(29):
        me.look(after=1)
    assert posts(azure) == 2
    me.look(after=1)
    assert posts(azure) == 3 and me.record(event).approval == "refused"


def test_refused_approval_is_repeated_more_often_when_little_time_is_left(azure: Azure, me: Rig) -> None:
    azure.fault("bad-request", method="POST")
    azure.schedule("Preempt", notice=30, hold=True)
    me.look()
    for _second in range(12):
        me.look(after=1)
    assert posts(azure) == 4


def test_refused_approval_is_shown_in_status_and_history(azure: Azure, me: Rig) -> None:
    azure.fault("status", status=403, method="POST", route="scheduledevents")
    event = azure.schedule("Reboot", hold=True)
    me.look()
    (shown,) = me.status()["events"]
    assert shown["approval"] == "refused" and "403" in shown["approval_error"] and not is_healthy(me.status())
    assert "the approval failed" in to_text(me.status())
    (record,) = history.to_dict([me.record(event)])
    assert record["approval"]["state"] == "refused" and "403" in record["approval"]["error"]
    azure.heal()
    me.look(after=1)
    (shown,) = me.status()["events"]
    assert shown["approval"] == "accepted" and shown["approval_error"] is None and is_healthy(me.status())


def test_t64_nothing_is_repeated_when_its_time_has_come(azure: Azure, me: Rig) -> None:
    azure.fault("unavailable", method="POST")
    azure.schedule("Reboot", notice=40)
    me.look()
    for _second in range(39):
        me.look(after=1)
    before = posts(azure)
    # the service does not tell any more that it has started
    azure.fault("reset", method="GET")
    for _second in range(30):
        me.look(after=1)
    assert posts(azure) == before


def test_an_approval_is_repeated_only_after_another_look(azure: Azure, me: Rig) -> None:
    azure.fault("unavailable", method="POST", requests=1)
    azure.schedule("Reboot", hold=True)
    me.look()
    azure.fault("unavailable", method="GET", **{"for": 20})
    for _second in range(15):
        me.look(after=1)
    assert posts(azure) == 1, "it may have started, or be gone"
    me.look(after=10)
    assert posts(azure) == 2


def test_t65_nothing_is_sent_for_what_has_started(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(policy={"rules": [{"when": {}, "do": ["approve"]}]})
    azure.schedule("Reboot", starts="automatic_approval")
    me.look()
    me.look(after=5)
    assert posts(azure) == 0


def test_t65_a_race_with_the_start_is_harmless(azure: Azure, me: Rig) -> None:
    event = azure.schedule("Reboot", notice=60)
    me.delivers = False
    me.look()
    me.delivers = True
    azure.advance(61)
    me.imds.approve([event])
    me.engine.approval_answered(me.record(event).id, None)
    me.look()
    assert me.ran() == ["prepare/10-a", "started/10-a"]


def test_t67_the_first_leads_and_the_next_takes_over(azure: Azure, make_rig: MakeRig) -> None:
    rigs = {name: make_rig(name, leader="first", takeover_after=60) for name in ("vm1", "vm2", "vm3")}
    event = azure.schedule("Reboot", "vm3", "vm1", "vm2", hold=True)
    for name in ("vm1", "vm2"):
        rigs[name].look()
    assert azure.approvals() == []
    assert "vm3 leads; this VM takes over in 60 s" in rigs["vm1"].status()["events"][0]["reason"]
    rigs["vm1"].look(after=59)
    assert azure.approvals() == []
    rigs["vm2"]._elapsed = rigs["vm1"]._elapsed
    rigs["vm2"].look()
    rigs["vm1"].look(after=1)
    assert azure.approvals() == [("vm1", event)]
    # the second in the row was down as well, as far as the third knows
    rigs["vm2"]._elapsed = rigs["vm1"]._elapsed
    rigs["vm2"].look(after=59)
    assert len(azure.approvals()) == 1
    rigs["vm2"].look(after=1)
    assert azure.approvals() == [("vm1", event), ("vm2", event)]


def test_t67_the_leader_approves_at_once(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig("vm1", leader="first")
    event = azure.schedule("Reboot", "VM1".lower(), "vm2")
    me.look()
    assert azure.approvals() == [("vm1", event)]


@pytest.mark.parametrize(
    "leader, why", [("self-only", "would release other VMs too"), ("external", "an external leader approves it")]
)
def test_others_are_not_released_unless_wanted(azure: Azure, make_rig: MakeRig, leader: str, why: str) -> None:
    me = make_rig(leader=leader)
    me.hook("prepare/10-a")
    shared = azure.schedule("Reboot", "vm1", "vm2", hold=True)
    own = azure.schedule("Freeze", "vm1", hold=True)
    for _minute in range(10):
        me.look(after=60)
    assert azure.approvals() == [("vm1", own)]
    told = {event["event_id"]: event for event in me.status()["events"]}
    assert told[shared]["prepared"] == "ok" and why in told[shared]["reason"]


def test_t68_a_failed_preparation_approves_nothing_and_is_recovered_from(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", FAILS)
    me.hook("prepare/20-b")
    event = azure.schedule("Reboot", notice=60, started_for=60)
    me.look()
    assert me.steps(event) == [("prepare/10-a", "failed"), ("prepare/20-b", "ok")]
    me.look(after=61)
    assert posts(azure) == 0 and me.ran()[-1] == "started/10-a"
    me.look(after=61)
    assert me.ran("recover") == ["recover/10-a"] and posts(azure) == 0
    assert me.record(event).steps[0].reason == "exit status 3"


def test_t68_a_policy_may_approve_a_failed_preparation(azure: Azure, make_rig: MakeRig) -> None:
    rule = {
        "when": {"concerns_me": True},
        "do": ["prepare", {"approve": {"when": "after_prepare", "on_failure": "approve"}}],
    }
    me = make_rig(policy={"rules": [rule]})
    me.hook("prepare/10-a", FAILS)
    event = azure.schedule("Reboot")
    me.look()
    assert azure.approvals() == [("vm1", event)]


def test_t69_somebody_else_approves_during_prepare(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", started_for=60)
    me.look()
    azure.approve(event)
    me.look(after=2)
    assert me.steps(event) == [("prepare/10-a", "stopped"), ("started/10-a", "ok")] and posts(azure) == 0
    assert "shortened" not in me.words(event), "it has started, which is more than that"
    me.look(after=60)
    assert me.ran("recover") == ["recover/10-a"]


def test_t71_a_dry_run_does_everything_but_approve(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(dry_run=True, policy=AFTER_PREPARE)
    for stage in ("prepare", "started", "recover"):
        me.hook(stage + "/10-a")
    event = azure.schedule("Reboot", notice=60, started_for=60)
    for _look in range(6):
        me.look(after=30)
    assert me.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"] and posts(azure) == 0
    assert me.words(event).count("dry-run") == 1 and me.status()["dry_run"] is True


def test_an_event_that_is_over_meanwhile_is_not_asked_for_again(azure: Azure, me: Rig) -> None:
    me.delivers = False
    event = azure.schedule("Reboot")
    me.look()
    azure.cancel(event)
    me.delivers = True
    for record in me.engine.records:
        record.attempt.in_flight = False
    me.look(after=5)
    assert posts(azure) == 0 and me.record(event).outcome == "cancelled-or-missed"


@pytest.mark.parametrize("change", [{"type": "Redeploy"}, {"source": "User"}, {"duration": 600}])
def test_an_event_that_changes_before_its_approval_is_judged_again(
    azure: Azure, make_rig: MakeRig, change: dict[str, object]
) -> None:
    rules = [
        {"when": {"type": "Freeze", "source": "Platform", "duration": {"lt": 9}}, "do": ["approve"]},
        {"when": {}, "do": ["log"]},
    ]
    me = make_rig(policy={"rules": rules})
    azure.fault("unavailable", method="POST", requests=1)
    event = azure.schedule("Freeze", duration=5)
    me.look()
    azure.change(event, **change)
    me.look(after=5)
    assert posts(azure) == 1 and me.record(event).approval == ""
    assert "approval-withdrawn" in me.words(event)
