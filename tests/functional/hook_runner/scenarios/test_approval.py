# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.4: approvals that are lost, refused, withheld, or left to a leader."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hook_runner.reporting import history
from hook_runner.reporting.status import is_healthy, to_text
from support.daemon.engine_harness import AFTER_PREPARE, EngineHarness
from support.daemon.hook_scripts import FAILS, HANGS
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., EngineHarness]


def posts(azure: Azure) -> int:
    return len(azure.requests("POST"))


def test_t62_a_lost_request_is_repeated(azure: Azure, vm: EngineHarness) -> None:
    azure.fault("lost-request", method="POST", **{"for": 3})
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    attempts = [vm.record(event).approval_attempts]
    for after in (0, 1, 1, 1, 60):
        vm.poll(after=after)
        attempts.append(vm.record(event).approval_attempts)
    assert attempts == [1, 1, 2, 2, 3, 3]
    assert azure.approvals() == [("vm1", event)] and vm.ran() == ["prepare/10-a"]


@pytest.mark.parametrize("held", [True, False])
def test_t62_a_lost_answer_is_repeated_only_while_it_still_waits(azure: Azure, vm: EngineHarness, held: bool) -> None:
    azure.fault("lost-answer", method="POST", **{"for": 1})
    event = azure.schedule("Reboot", hold=held)
    vm.poll()
    lost = azure.approvals()
    vm.poll(after=2)
    vm.poll(after=2)
    # a connection that turns out to be closed is asked twice by the client itself
    assert set(lost) == {("vm1", event)} and azure.approvals() == lost + [("vm1", event)] * held
    assert azure.starts(event) == (not held) and vm.ran("prepare") == ["prepare/10-a"]


@pytest.mark.parametrize("how", ["kill", "reboot"])
def test_t62_approval_with_a_lost_answer_is_repeated(azure: Azure, vm: EngineHarness, how: str) -> None:
    azure.fault("lost-answer", method="POST", **{"for": 1})
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    lost = azure.approvals()
    vm.restart(how)
    vm.poll(after=5)
    assert azure.approvals() == [*lost, ("vm1", event)] and azure.requests("POST")
    assert vm.record(event).approval == "accepted" and vm.ran() == ["prepare/10-a"] * (2 if how == "reboot" else 1)


@pytest.mark.parametrize("kind", ["server-error", "unavailable", "too-many-requests", "gone", "reset"])
def test_t64_failing_service_is_polled_less_and_less_often(azure: Azure, vm: EngineHarness, kind: str) -> None:
    azure.fault(kind, method="POST", **{"for": 30})
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    for _second in range(40):
        vm.poll(after=1)
    moments = [request["moment"] for request in azure.requests("POST")]
    assert sorted({round(moment - moments[0]) for moment in moments}) == [0, 1, 3, 7, 15, 25, 35]
    assert azure.approvals() == [("vm1", event)]
    assert vm.timeline(event).count("approval-failed") == 6


def test_t64_retry_after_is_kept(azure: Azure, vm: EngineHarness) -> None:
    azure.fault("too-many-requests", method="POST", requests=1, retry_after=7)
    azure.schedule("Reboot", hold=True)
    vm.poll()
    for _second in range(6):
        vm.poll(after=1)
    assert posts(azure) == 1
    vm.poll(after=1)
    assert posts(azure) == 2


def test_refused_approval_is_repeated_once_soon_and_then_seldom(azure: Azure, vm: EngineHarness) -> None:
    azure.fault("bad-request", method="POST")
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    assert posts(azure) == 1
    vm.poll(after=1)
    assert posts(azure) == 2
    for _second in range(29):
        vm.poll(after=1)
    assert posts(azure) == 2
    vm.poll(after=1)
    assert posts(azure) == 3 and vm.record(event).approval == "refused"


def test_refused_approval_is_repeated_more_often_when_little_time_is_left(azure: Azure, vm: EngineHarness) -> None:
    azure.fault("bad-request", method="POST")
    azure.schedule("Preempt", notice=30, hold=True)
    vm.poll()
    for _second in range(12):
        vm.poll(after=1)
    assert posts(azure) == 4


def test_refused_approval_is_shown_in_status_and_history(azure: Azure, vm: EngineHarness) -> None:
    azure.fault("status", status=403, method="POST", route="scheduledevents")
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    (shown,) = vm.status()["events"]
    assert shown["approval"] == "refused" and "403" in shown["approval_error"] and not is_healthy(vm.status())
    assert "the approval failed" in to_text(vm.status())
    (record,) = history.to_dict([vm.record(event)])
    assert record["approval"]["state"] == "refused" and "403" in record["approval"]["error"]
    azure.heal()
    vm.poll(after=1)
    (shown,) = vm.status()["events"]
    assert shown["approval"] == "accepted" and shown["approval_error"] is None and is_healthy(vm.status())


def test_t64_nothing_is_repeated_when_its_time_has_come(azure: Azure, vm: EngineHarness) -> None:
    azure.fault("unavailable", method="POST")
    azure.schedule("Reboot", notice=40)
    vm.poll()
    for _second in range(39):
        vm.poll(after=1)
    before = posts(azure)
    # IMDS does not list the started event any more
    azure.fault("reset", method="GET")
    for _second in range(30):
        vm.poll(after=1)
    assert posts(azure) == before


def test_an_approval_is_repeated_only_after_another_look(azure: Azure, vm: EngineHarness) -> None:
    azure.fault("unavailable", method="POST", requests=1)
    azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.fault("unavailable", method="GET", **{"for": 20})
    for _second in range(15):
        vm.poll(after=1)
    assert posts(azure) == 1, "it may have started, or be gone"
    vm.poll(after=10)
    assert posts(azure) == 2


def test_t65_nothing_is_sent_for_what_has_started(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(policy={"rules": [{"when": {}, "approve": "now"}]})
    azure.schedule("Reboot", starts="automatic_approval")
    vm.poll()
    vm.poll(after=5)
    assert posts(azure) == 0


def test_t65_a_race_with_the_start_is_harmless(azure: Azure, vm: EngineHarness) -> None:
    event = azure.schedule("Reboot", notice=60)
    vm.delivers_approvals = False
    vm.poll()
    vm.delivers_approvals = True
    azure.advance(61)
    vm.imds.approve([event])
    vm.engine.approval_answered(vm.record(event).id, None)
    vm.poll()
    assert vm.ran() == ["prepare/10-a", "started/10-a"]


def test_t67_the_first_leads_and_the_next_takes_over(azure: Azure, make_vm: MakeVm) -> None:
    vms = {name: make_vm(name, leader="first", takeover_after=60) for name in ("vm1", "vm2", "vm3")}
    event = azure.schedule("Reboot", "vm3", "vm1", "vm2", hold=True)
    for name in ("vm2", "vm3"):
        vms[name].poll()
    assert azure.approvals() == []
    assert "vm1 leads; this VM takes over in 60 s" in vms["vm2"].status()["events"][0]["reason"]
    vms["vm2"].poll(after=59)
    assert azure.approvals() == []
    vms["vm3"]._elapsed = vms["vm2"]._elapsed
    vms["vm3"].poll()
    vms["vm2"].poll(after=1)
    assert azure.approvals() == [("vm2", event)]
    # the second in the row was down as well, as far as the third knows
    vms["vm3"]._elapsed = vms["vm2"]._elapsed
    vms["vm3"].poll(after=59)
    assert len(azure.approvals()) == 1
    vms["vm3"].poll(after=1)
    assert azure.approvals() == [("vm2", event), ("vm3", event)]


def test_t67_the_leader_approves_at_once(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm("vm1", leader="first")
    event = azure.schedule("Reboot", "VM1".lower(), "vm2")
    vm.poll()
    assert azure.approvals() == [("vm1", event)]


@pytest.mark.parametrize(
    "leader, why", [("self-only", "would release other VMs too"), ("external", "an external leader approves it")]
)
def test_others_are_not_released_unless_wanted(azure: Azure, make_vm: MakeVm, leader: str, why: str) -> None:
    vm = make_vm(leader=leader)
    vm.hook("prepare/10-a")
    shared = azure.schedule("Reboot", "vm1", "vm2", hold=True)
    own = azure.schedule("Freeze", "vm1", hold=True)
    for _minute in range(10):
        vm.poll(after=60)
    assert azure.approvals() == [("vm1", own)]
    shown = {event["event_id"]: event for event in vm.status()["events"]}
    assert shown[shared]["prepared"] == "ok" and why in shown[shared]["reason"]


def test_t68_a_failed_preparation_approves_nothing_and_is_recovered_from(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("prepare/10-a", FAILS)
    vm.hook("prepare/20-b")
    event = azure.schedule("Reboot", notice=60, started_for=60)
    vm.poll()
    assert vm.steps(event) == [("prepare/10-a", "failed"), ("prepare/20-b", "ok")]
    vm.poll(after=61)
    assert posts(azure) == 0 and vm.ran()[-1] == "started/10-a"
    vm.poll(after=61)
    assert vm.ran("recover") == ["recover/10-a"] and posts(azure) == 0
    assert vm.record(event).steps[0].reason == "exit status 3"


def test_t68_a_policy_may_approve_a_failed_preparation(azure: Azure, make_vm: MakeVm) -> None:
    rule = {
        "when": {"concerns_me": True},
        "approve": {"when": "after_prepare", "on_failure": "approve"},
    }
    vm = make_vm(policy={"rules": [rule]})
    vm.hook("prepare/10-a", FAILS)
    event = azure.schedule("Reboot")
    vm.poll()
    assert azure.approvals() == [("vm1", event)]


def test_t69_another_client_approves_during_prepare(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", started_for=60)
    vm.poll()
    azure.approve(event)
    vm.poll(after=2)
    assert vm.steps(event) == [("prepare/10-a", "stopped"), ("started/10-a", "ok")] and posts(azure) == 0
    assert "shortened" not in vm.timeline(event), "it has started, which is more than that"
    vm.poll(after=60)
    assert vm.ran("recover") == ["recover/10-a"]


def test_t71_a_dry_run_does_everything_but_approve(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(dry_run=True, policy=AFTER_PREPARE)
    for stage in ("prepare", "started", "recover"):
        vm.hook(stage + "/10-a")
    event = azure.schedule("Reboot", notice=60, started_for=60)
    for _look in range(6):
        vm.poll(after=30)
    assert vm.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"] and posts(azure) == 0
    assert vm.timeline(event).count("dry-run") == 1 and vm.status()["dry_run"] is True


def test_approval_is_not_repeated_for_an_event_that_is_over(azure: Azure, vm: EngineHarness) -> None:
    vm.delivers_approvals = False
    event = azure.schedule("Reboot")
    vm.poll()
    azure.cancel(event)
    vm.delivers_approvals = True
    for record in vm.engine.records:
        record.attempt.in_flight = False
    vm.poll(after=5)
    assert posts(azure) == 0 and vm.record(event).outcome == "unknown"


@pytest.mark.parametrize("change", [{"type": "Redeploy"}, {"source": "User"}, {"duration": 600}])
def test_an_event_that_changes_before_its_approval_is_judged_again(
    azure: Azure, make_vm: MakeVm, change: dict[str, object]
) -> None:
    rules = [
        {"when": {"type": "Freeze", "source": "Platform", "duration": {"lt": 9}}, "approve": "now"},
        {"when": {}},
    ]
    vm = make_vm(policy={"rules": rules})
    azure.fault("unavailable", method="POST", requests=1)
    event = azure.schedule("Freeze", duration=5)
    vm.poll()
    azure.change(event, **change)
    vm.poll(after=5)
    assert posts(azure) == 1 and vm.record(event).approval == ""
    assert "approval-withdrawn" in vm.timeline(event)
