# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.4: approvals that are lost, refused, withheld, or left to a leader."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hook_runner.reporting.status import is_healthy
from support.daemon.hook_scripts import FAILS
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., RunnerHarness]


def posts_after(azure: Azure, vm: RunnerHarness, seconds: int) -> list[int]:
    """Poll each second; return the seconds at which the daemon asked for the approval, from the first request."""
    for _second in range(seconds):
        vm.poll(after=1)
    moments = [request["moment"] for request in azure.requests("POST")]
    return sorted({round(moment - moments[0]) for moment in moments})


def test_t62_a_lost_request_is_repeated(azure: Azure, vm: RunnerHarness) -> None:
    azure.fault("lost-request", method="POST", **{"for": 3})
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    assert posts_after(azure, vm, 60) == [0, 1, 3]
    assert azure.approvals() == [("vm1", event)] and vm.ran() == ["prepare/10-a"]


@pytest.mark.parametrize("held", [True, False])
def test_t62_a_lost_answer_is_repeated_only_while_it_still_waits(azure: Azure, vm: RunnerHarness, held: bool) -> None:
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
def test_t62_approval_with_a_lost_answer_is_repeated(azure: Azure, vm: RunnerHarness, how: str) -> None:
    azure.fault("lost-answer", method="POST", **{"for": 1})
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    lost = azure.approvals()
    vm.restart(how)
    vm.poll(after=5)
    assert azure.approvals() == [*lost, ("vm1", event)]
    assert vm.record(event).approval == "accepted" and vm.ran() == ["prepare/10-a"] * (2 if how == "reboot" else 1)


@pytest.mark.parametrize("kind", ["unavailable", "too-many-requests", "gone", "reset"])
def test_t64_failing_service_is_asked_less_and_less_often(azure: Azure, vm: RunnerHarness, kind: str) -> None:
    azure.fault(kind, method="POST", **{"for": 30})
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    assert posts_after(azure, vm, 40) == [0, 1, 3, 7, 15, 25, 35]
    assert azure.approvals() == [("vm1", event)] and vm.timeline(event).count("approval-failed") == 6


def test_t64_retry_after_is_kept(azure: Azure, vm: RunnerHarness) -> None:
    azure.fault("too-many-requests", method="POST", requests=1, retry_after=7)
    azure.schedule("Reboot", hold=True)
    vm.poll()
    assert posts_after(azure, vm, 10) == [0, 7]


@pytest.mark.parametrize("notice, posts", [(900, [0, 1, 31]), (30, [0, 1, 6, 11])])
def test_refused_approval_is_repeated_once_soon_and_then_seldom(
    azure: Azure, vm: RunnerHarness, notice: int, posts: list[int]
) -> None:
    azure.fault("bad-request", method="POST")
    event = azure.schedule("Preempt", notice=notice, hold=True)
    vm.poll()
    assert posts_after(azure, vm, posts[-1] + 1) == posts and vm.record(event).approval == "refused"


def test_refused_approval_is_shown_until_it_is_taken(azure: Azure, vm: RunnerHarness) -> None:
    azure.fault("status", status=403, method="POST", route="scheduledevents")
    azure.schedule("Reboot", hold=True)
    vm.poll()
    (shown,) = vm.status()["events"]
    assert shown["approval"] == "refused" and "403" in shown["approval_error"]
    azure.heal()
    vm.poll(after=1)
    (shown,) = vm.status()["events"]
    assert shown["approval"] == "accepted" and shown["approval_error"] is None


def test_t64_nothing_is_repeated_when_its_time_has_come(azure: Azure, vm: RunnerHarness) -> None:
    azure.fault("unavailable", method="POST")
    azure.schedule("Reboot", notice=40)
    vm.poll()
    before = posts_after(azure, vm, 39)
    # IMDS does not list the started event any more
    azure.fault("reset", method="GET")
    assert posts_after(azure, vm, 30) == before


def test_t67_the_first_by_name_leads_and_the_next_takes_over(azure: Azure, make_vm: MakeVm) -> None:
    vms = {name: make_vm(name, leader="first", takeover_after=60) for name in ("vm2", "vm3")}
    event = azure.schedule("Reboot", "vm3", "vm1", "vm2", hold=True)
    for vm in vms.values():
        vm.poll()
    assert azure.approvals() == []
    assert "vm1 leads; this VM takes over in 60 s" in vms["vm2"].status()["events"][0]["reason"]
    for after, name in ((59, ""), (1, "vm2"), (59, ""), (1, "vm3")):
        azure.advance(after)
        before = azure.approvals()
        for vm in vms.values():
            vm._elapsed += after
            vm.poll()
        assert azure.approvals() == [*before, *([(name, event)] if name else [])]


@pytest.mark.parametrize(
    "leader, why", [("self-only", "leader is self-only"), ("external", "an external leader approves it")]
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


def test_t68_a_failed_preparation_approves_nothing_and_is_recovered_from(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("prepare/10-a", FAILS)
    vm.hook("prepare/20-b")
    event = azure.schedule("Reboot", notice=60, started_for=60)
    vm.poll()
    assert vm.steps(event) == [("prepare/10-a", "failed"), ("prepare/20-b", "ok")]
    vm.poll(after=61)
    vm.poll(after=61)
    assert vm.ran()[2:] == ["started/10-a", "recover/10-a"] and azure.requests("POST") == []
    assert vm.maintenance(event).runs[0].reason == "exit status 3"


@pytest.mark.parametrize("change", [{"type": "Redeploy"}, {"source": "User"}, {"duration": 600}])
def test_an_event_that_changes_before_its_approval_is_judged_again(
    azure: Azure, make_vm: MakeVm, change: dict[str, object]
) -> None:
    rule = {"when": {"type": "Freeze", "source": "Platform", "duration": {"lt": 9}}, "approve": "now"}
    vm = make_vm(policy={"rules": [rule, {"when": {}}]})
    azure.fault("unavailable", method="POST", requests=1)
    event = azure.schedule("Freeze", duration=5)
    vm.poll()
    azure.change(event, **change)
    vm.poll(after=5)
    assert len(azure.requests("POST")) == 1 and not is_healthy({**vm.status(), "configuration": {"differs": []}})
