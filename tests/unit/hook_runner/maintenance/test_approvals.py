# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""When the state machine approves an event, and what it says when it does not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.errors import ImdsError
from hook_runner.hooks.discovery import Hook
from hook_runner.records import ACCEPTED, FAILED, REFUSED, SENT
from support.daemon.machine_driver import Driver, event, hook, rules

DRAIN = hook("prepare/10-drain")
NOW = rules({"approve": "now"})


def test_approval_is_on_the_disk_before_it_is_sent() -> None:
    vm = Driver()
    vm.seconds(1, event())
    assert vm.reason() == "one_document"
    vm.is_full = True
    vm.seconds(2, event())
    assert (vm.sent, vm.record().approval, vm.reason()) == ([], "", "not_durable")
    vm.is_full = False
    vm.seconds(2, event())
    assert vm.sent == ["e1"]
    assert vm.written[1] is not None and vm.written[1].events[0].approval == SENT


@pytest.mark.parametrize("asks", [False, True], ids=["rule", "operator-asks-too"])
@pytest.mark.parametrize("hooks", [(DRAIN,), (hook("prepare/10-drain", on_failure="stop"), hook("prepare/20-later"))])
def test_failed_preparation_is_approved_only_if_the_rule_says_so(hooks: tuple[Hook, ...], asks: bool) -> None:
    """T68."""
    for more, sent in (({}, []), ({"on_failure": "approve"}, ["e1"])):
        vm = Driver(*hooks, policy=rules({"approve": {"when": "after_prepare", **more}}))
        vm.read(event())
        assert not asks or vm.ask().accepted
        vm.end_hook(FAILED)
        vm.seconds(2, event())
        assert vm.sent == sent and not vm.record().approval_by.startswith("asked for")


def test_nothing_is_approved_between_a_failed_poll_and_the_next_document() -> None:
    vm = Driver(DRAIN)
    vm.seconds(2, event())
    vm.machine.approvals.poll_failed()
    vm.end_hook()
    assert (vm.sent, vm.reason()) == ([], "no_answer")
    vm.seconds(1, event())
    assert vm.sent == ["e1"]


UNAVAILABLE = ImdsError("answered 503", status=503)
BUSY = ImdsError("answered 429", status=429, retry_after=7.0)
FORBIDDEN = ImdsError("answered 403", status=403, retryable=False)


@pytest.mark.parametrize(
    ("error", "not_before", "moments"),
    [
        (UNAVAILABLE, 900, [0, 1, 3, 7, 15, 25, 35]),
        (UNAVAILABLE, 20, [0, 1, 3, 7, 15]),
        (BUSY, 900, [0, 7, 14, 21, 28, 35]),
        (FORBIDDEN, 900, [0, 1, 31]),
        (FORBIDDEN, 30, [0, 1, 6, 11, 16, 21, 26]),
    ],
    ids=["unavailable", "until-not-before", "retry-after", "refused", "refused-in-short-time"],
)
def test_request_that_failed_is_sent_again(error: ImdsError, not_before: float, moments: list[int]) -> None:
    vm = Driver()
    sent_at: list[float] = []
    while vm.at < 40:
        vm.seconds(1, event(not_before=not_before))
        if len(vm.sent) > len(sent_at):
            sent_at.append(vm.at)
            vm.answer(error=error)
            assert (vm.reason(), vm.record().approval_error) == ("request_failed", str(error))
    assert [at - sent_at[0] for at in sent_at] == moments


def test_request_that_succeeds_after_a_refusal_is_the_last_one_also_after_a_restart() -> None:
    """T20: other tenants hold the event."""
    vm = Driver()
    vm.seconds(2, event())
    vm.answer(error=FORBIDDEN)
    assert (vm.record().approval, vm.record().approval_error) == (REFUSED, str(FORBIDDEN))
    vm.seconds(1, event())
    vm.answer()
    vm.seconds(40, event())
    record = vm.record()
    assert (len(vm.sent), record.approval, record.approval_error, vm.reason()) == (2, ACCEPTED, "", "accepted")
    for boot in ("boot-1", "boot-2"):
        vm = vm.restarted(boot)
        vm.seconds(40, event())
        assert vm.sent == [], boot


def test_accepted_approval_is_not_repeated_by_the_preparation_after_a_reboot() -> None:
    vm = Driver(DRAIN)
    vm.seconds(2, event())
    vm.end_hook()
    vm.answer()
    vm.seconds(2, event())
    vm = vm.restarted("boot-2")
    vm.seconds(2, event())
    vm.end_hook()
    vm.seconds(2, event())
    assert (vm.begun, vm.prepared(), vm.sent) == (["prepare/10-drain"], "ok", [])


def test_event_that_changes_before_its_approval_is_judged_again() -> None:
    vm = Driver(policy=rules({"when": {"type": "Freeze"}, "approve": "now"}, {"approve": "manual"}))
    vm.seconds(2, event(event_type="Freeze"))
    vm.answer(error=UNAVAILABLE)
    vm.seconds(5, event(event_type="Redeploy"))
    assert (vm.sent, vm.reason()) == (["e1"], "manual")


def test_approval_now_does_not_wait_for_hooks() -> None:
    vm = Driver(DRAIN, policy=NOW)
    vm.seconds(2, event())
    assert (vm.sent, vm.prepared()) == (["e1"], "running")


@pytest.mark.parametrize(
    ("approve", "seconds"), [({"when": "after_prepare", "time_left": "5m"}, 600), ({"delay": "30s"}, 31)], ids=str
)
def test_approval_at_a_time_that_a_restart_does_not_move(approve: dict[str, str], seconds: int) -> None:
    vm = Driver(policy=rules({"approve": approve}))
    vm.seconds(2, event())
    vm = vm.restarted("boot-2")
    vm.seconds(seconds - vm.at - 1, event())
    assert vm.sent == []
    vm.seconds(1, event())
    assert vm.sent == ["e1"]


def test_approval_waits_until_a_less_severe_type_is_confirmed() -> None:
    vm = Driver(policy=rules({"when": {"type": "Freeze"}, "approve": "manual"}, {"approve": {"delay": "30s"}}))
    vm.seconds(30, event())
    for seconds, reason in ((1, "type_unconfirmed"), (2, "manual")):
        vm.seconds(seconds, event(event_type="Freeze"))
        assert (vm.sent, vm.reason()) == ([], reason)


def test_clock_that_is_set_back_a_little_does_not_end_the_pause_after_a_refusal() -> None:
    """Otherwise the approval would be noted by one tick, and withheld by the next one."""
    vm = Driver()
    vm.seconds(2, event())
    vm.answer(error=ImdsError("refused", retryable=False))
    vm.at -= 0.1
    vm.read(event())
    assert (vm.sent, vm.reason(), vm.record().approval) == (["e1"], "request_waits", REFUSED)


def test_operator_repeats_a_refused_approval_at_once() -> None:
    vm = Driver()
    for sent in (1, 2):
        vm.seconds(2, event())
        vm.answer(error=FORBIDDEN)
        assert len(vm.sent) == sent
    vm.seconds(2, event())
    assert (len(vm.sent), vm.reason()) == (2, "request_waits")
    answer = vm.ask()
    assert (answer.accepted, answer.withheld, len(vm.sent)) == (True, False, 3)


def test_operator_does_not_repeat_a_failed_approval_after_not_before() -> None:
    vm = Driver()
    vm.seconds(2, event())
    vm.answer(error=FORBIDDEN)
    vm.at += 3600
    vm.read(event())
    vm.ask()
    assert (vm.sent, vm.reason()) == (["e1"], "not_before_passed")


def test_events_are_approved_one_after_the_other() -> None:
    vm = Driver()
    vm.seconds(2, event("e1"), event("e2"))
    assert (vm.sent, vm.reason("e2")) == (["e1"], "in_flight")
    vm.answer()
    assert vm.sent == ["e1", "e2"]


def test_approval_waits_for_the_answer_to_that_of_an_event_that_is_gone() -> None:
    vm = Driver()
    vm.seconds(2, event("e1"), event("e2"))
    vm.seconds(3, event("e2"))
    assert (vm.sent, vm.reason("e2")) == (["e1"], "in_flight")
    vm.answer(error=UNAVAILABLE)
    assert (vm.sent, vm.reason("e2")) == (["e1"], "request_failed")
    vm.seconds(1, event("e2"))
    assert vm.sent == ["e1", "e2"]


def test_request_that_was_withheld_is_decided_again() -> None:
    vm = Driver()
    vm.seconds(2, event())
    vm.machine.approvals.withheld("e1", vm.now)
    assert vm.record().approval == ""
    vm.act()
    assert vm.sent == ["e1", "e1"]


def test_event_of_several_vms_is_approved_by_the_leader_in_turn() -> None:
    both = event(vms=["vm1", "VM0"])
    vm = Driver()
    vm.seconds(90, both)
    assert (vm.sent, vm.reason()) == ([], "others_affected")
    vm = Driver(leader="first")
    vm.seconds(60, both)
    assert vm.sent == []
    vm.seconds(2, both)
    assert vm.sent == ["e1"]
    vm = Driver(leader="first", takeover_after=20)
    vm.seconds(40, event(vms=["vm1", "VM0", "other"]))
    assert vm.sent == []
    assert "other leads; this VM takes over in" in vm.reason_text()
    vm.seconds(2, event(vms=["vm1", "VM0", "other"]))
    assert vm.sent == ["e1"]
    vm = Driver(leader="external")
    vm.seconds(90, both)
    assert vm.sent == []
    assert "an external leader approves it" in vm.reason_text()


def test_leader_does_not_approve_while_a_vm_may_have_left_the_event() -> None:
    vm = Driver(DRAIN, leader="first")
    vm.seconds(2, event(vms=["vm1", "vm2"]))
    vm.seconds(1, event(vms=["vm1"]))
    vm.end_hook()
    assert (vm.sent, vm.reason()) == ([], "leaving")
    vm.seconds(3, event(vms=["vm1"]))
    assert vm.sent == ["e1"]


def test_event_that_the_last_document_lacks_is_not_approved() -> None:
    vm = Driver(DRAIN)
    vm.seconds(2, event())
    vm.seconds(1)
    vm.end_hook()
    assert (vm.sent, vm.reason()) == ([], "not_listed")
    vm.seconds(1, event())
    assert vm.sent == ["e1"]


def test_event_with_unreadable_vms_is_not_approved() -> None:
    vm = Driver()
    vm.seconds(1, event())
    vm.seconds(3, event(vms=[]), doubtful=("e1",))
    assert (vm.sent, vm.reason()) == ([], "unreadable")
    assert not vm.ask(force=True).accepted


def test_gate_that_is_closed_is_named() -> None:
    vm = Driver(policy=rules({"when": {"gate": "go"}, "approve": "now"}))
    vm.gates = {"go": False}
    vm.seconds(3, event())
    assert vm.sent == [] and vm.reason_text().endswith("closed gates: go")
    vm.gates = {"go": True}
    vm.act()
    assert vm.sent == ["e1"]


def test_policy_that_changes_its_mind_while_hooks_run_decides_at_the_end() -> None:
    vm = Driver(DRAIN)
    vm.seconds(2, event())
    settings = vm.host.settings._replace(policy=rules({"approve": "manual"}))
    vm.machine.reconfigure(vm.host._replace(settings=settings), vm.now)
    vm.end_hook()
    assert (vm.sent, vm.reason()) == ([], "manual")


def test_dry_run_runs_hooks_and_approves_nothing() -> None:
    vm = Driver(DRAIN, dry_run=True)
    vm.read(event())
    vm.end_hook()
    vm.seconds(2, event())
    assert (vm.begun, vm.sent, vm.reason()) == (["prepare/10-drain"], [], "dry_run")
    assert vm.whats().count("dry-run") == 1
    assert not vm.ask(force=True).accepted


def test_dry_run_of_a_policy_that_approves_now_is_noted_once_while_a_hook_runs() -> None:
    vm = Driver(DRAIN, policy=NOW, dry_run=True)
    vm.seconds(3, event())
    assert (vm.begun, vm.reason(), vm.whats().count("dry-run")) == (["prepare/10-drain"], "hook_runs", 1)


def test_pause_begins_no_prepare_hook_and_approves_nothing() -> None:
    vm = Driver(DRAIN)
    vm.machine.pause("operator", vm.now + timedelta(seconds=60), "work", vm.now)
    vm.seconds(3, event())
    assert (vm.begun, vm.prepared(), vm.reason()) == ([], "none", "paused")
    vm = vm.restarted()
    vm.seconds(3, event())
    assert vm.begun == []
    vm.seconds(60, event())
    assert vm.begun == ["prepare/10-drain"]


@pytest.mark.parametrize("when_started", ["stop", "finish"])
def test_pause_lets_hooks_run_that_have_begun_and_those_of_the_start_and_of_the_recovery(when_started: str) -> None:
    vm = Driver(
        DRAIN, hook("prepare/20-later"), hook("started/10-note"), hook("recover/10-join"), when_started=when_started
    )
    vm.seconds(2, event())
    vm.machine.pause("operator", None, "", vm.now)
    vm.seconds(1, event())
    assert vm.ended == []
    vm.end_hook()
    vm.seconds(2, event(status="Started"))
    vm.end_hook()
    vm.seconds(4)
    assert (vm.begun, vm.sent) == (["prepare/10-drain", "started/10-note", "recover/10-join"], [])


def test_pause_ends_no_hook_for_a_more_urgent_event() -> None:
    vm = Driver(DRAIN)
    vm.read(event("e1", "Freeze"))
    vm.machine.pause("operator", None, "", vm.now)
    vm.seconds(20, event("e1", "Freeze"), event("e2", "Preempt", not_before=40))
    assert (vm.begun, vm.ended) == (["prepare/10-drain"], [])


def test_operator_approves_during_a_pause_only_by_force() -> None:
    vm = Driver(policy=rules({"approve": "manual"}))
    vm.seconds(2, event())
    vm.machine.pause("root", None, "", vm.now)
    answer = vm.ask()
    assert not answer.accepted and "--force" in answer.text
    vm.ask(force=True)
    assert vm.sent == ["e1"]


def test_pause_whose_end_has_passed_is_refused() -> None:
    vm = Driver()
    assert not vm.machine.pause("operator", vm.now, "", vm.now).accepted
    assert vm.machine.pause("operator", None, "", vm.now).accepted
    assert vm.machine.resume("operator").accepted
    assert vm.records.state.pause is None


# -- operators


def test_operator_approves_when_the_preparation_is_done() -> None:
    vm = Driver(DRAIN, policy=rules({"approve": "manual"}))
    vm.seconds(2, event())
    assert vm.ask().accepted
    assert vm.sent == []
    vm.end_hook()
    assert (vm.sent, vm.record().approval_by) == (["e1"], "asked for by operator")


def test_operator_takes_up_an_event_that_the_policy_holds() -> None:
    vm = Driver(DRAIN, policy=rules({"hold": True}))
    vm.seconds(2, event())
    vm.ask()
    assert vm.begun == ["prepare/10-drain"]


def test_operator_who_forces_need_not_wait_for_hooks_or_the_disk() -> None:
    vm = Driver(DRAIN, policy=rules({"approve": "manual"}))
    vm.seconds(2, event())
    vm.is_full = True
    vm.ask(force=True)
    assert vm.sent == ["e1"]


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (event(vms=["vm1", "vm2"]), {"force": True}),
        (event(vms=["vm2"]), {"release_others": True}),
        (event(status="Started"), {"force": True, "release_others": True}),
    ],
    ids=["others", "not-this-vm", "started"],
)
def test_operator_is_refused_without_the_word_that_is_needed(given: ScheduledEvent, options: dict[str, Any]) -> None:
    vm = Driver(policy=rules({"approve": "manual"}))
    vm.seconds(2, given)
    assert not vm.ask(**options).accepted
    assert vm.sent == []


UNKNOWN = {
    "type": event(event_type="Hibernate"),
    "status": event(status="Paused"),
    "source": event()._replace(source="Robot"),
    "resource-type": event()._replace(resource_type="Disk"),
}


@pytest.mark.parametrize("given", UNKNOWN.values(), ids=UNKNOWN)
def test_event_with_an_unknown_value_is_approved_only_by_an_operator_who_forces(given: ScheduledEvent) -> None:
    vm = Driver(policy=NOW)
    vm.seconds(3, given)
    assert vm.sent == []
    assert not vm.ask().accepted
    vm.ask(force=True)
    assert vm.sent == ["e1"]


def test_operator_approves_an_event_of_other_vms_by_force() -> None:
    vm = Driver(DRAIN)
    vm.seconds(2, event(vms=["vm2"]))
    vm.ask(force=True, release_others=True)
    assert (vm.sent, vm.begun) == (["e1"], [])
    vm.answer()
    vm.seconds(4)
    assert vm.records.state.past[0].approval_by == "asked for by operator"


@pytest.mark.parametrize("changed", [event(vms=["vm1", "vm2"]), event(event_type="Redeploy")], ids=["vms", "type"])
def test_request_is_void_when_a_vm_joins_or_the_type_changes(changed: ScheduledEvent) -> None:
    vm = Driver(DRAIN, policy=rules({"approve": "manual"}))
    vm.seconds(2, event())
    vm.ask(release_others=True)
    vm.seconds(1, changed)
    vm.end_hook()
    vm.seconds(2, changed)
    assert (vm.sent, vm.record().requested) == ([], None)
    assert "approval-withdrawn" in vm.whats()


def test_request_outlives_a_restart() -> None:
    vm = Driver(DRAIN, policy=rules({"approve": "manual"}))
    vm.seconds(2, event())
    vm.ask()
    vm.end_hook()
    assert vm.sent == ["e1"]
    vm = vm.restarted()
    vm.seconds(2, event())
    assert vm.sent == ["e1"]


def test_log_has_a_line_when_the_reason_to_wait_changes() -> None:
    vm = Driver(DRAIN, policy=rules({"approve": "manual"}))
    vm.seconds(10, event())
    assert vm.whats().count("waits") == 1
    vm.end_hook()
    vm.seconds(10, event())
    assert vm.whats().count("waits") == 1
