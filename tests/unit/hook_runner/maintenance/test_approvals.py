# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""When the state machine approves an event, and what it says when it does not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.errors import ImdsError
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


def test_hooks_run_while_the_disk_is_full() -> None:
    vm = Driver(DRAIN)
    vm.is_full = True
    vm.read(event())
    vm.end_hook()
    vm.seconds(3, event())
    assert (vm.begun, vm.prepared(), vm.sent) == (["prepare/10-drain"], "ok", [])


def test_failed_preparation_is_approved_only_if_the_rule_says_so() -> None:
    policy = rules({"approve": {"when": "after_prepare", "on_failure": "approve"}})
    for given, sent in ((None, []), (policy, ["e1"])):
        vm = Driver(DRAIN, policy=given) if given else Driver(DRAIN)
        vm.read(event())
        vm.end_hook(FAILED)
        vm.seconds(2, event())
        assert vm.sent == sent


def test_failed_preparation_that_stops_its_stage_is_approved_if_the_rule_says_so() -> None:
    policy = rules({"approve": {"when": "after_prepare", "on_failure": "approve"}})
    vm = Driver(hook("prepare/10-drain", on_failure="stop"), hook("prepare/20-later"), policy=policy)
    vm.read(event())
    vm.end_hook(FAILED)
    vm.seconds(2, event())
    assert vm.sent == ["e1"]


def test_nothing_is_approved_between_a_failed_poll_and_the_next_document() -> None:
    vm = Driver(DRAIN)
    vm.seconds(2, event())
    vm.machine.poll_failed()
    vm.end_hook()
    assert (vm.sent, vm.reason()) == ([], "no_answer")
    vm.seconds(1, event())
    assert vm.sent == ["e1"]


def test_request_that_failed_is_sent_again_after_the_next_document() -> None:
    vm = Driver()
    vm.seconds(2, event())
    vm.answer(error=ImdsError("timed out", retryable=True))
    assert (vm.sent, vm.reason()) == (["e1"], "request_failed")
    vm.seconds(1, event())
    assert vm.sent == ["e1", "e1"]
    vm.answer(error=ImdsError("refused", retryable=False))
    vm.seconds(25, event())
    assert (len(vm.sent), vm.reason()) == (2, "request_waits")
    vm.seconds(10, event())
    vm.answer()
    vm.seconds(9, event())
    assert (len(vm.sent), vm.record().approval, vm.reason()) == (3, ACCEPTED, "accepted")


def test_clock_that_is_set_back_a_little_does_not_end_the_pause_after_a_refusal() -> None:
    """Otherwise the approval would be noted by one tick, and withheld by the next one."""
    vm = Driver()
    vm.seconds(2, event())
    vm.answer(error=ImdsError("refused", retryable=False))
    vm.at -= 0.1
    vm.read(event())
    assert (vm.sent, vm.reason(), vm.record().approval) == (["e1"], "request_waits", REFUSED)


def test_events_are_approved_one_after_the_other() -> None:
    vm = Driver()
    vm.seconds(2, event("e1"), event("e2"))
    assert (vm.sent, vm.reason("e2")) == (["e1"], "in_flight")
    vm.answer()
    assert vm.sent == ["e1", "e2"]


def test_request_that_was_withheld_is_decided_again() -> None:
    vm = Driver()
    vm.seconds(2, event())
    vm.machine.approval_withheld("e1", vm.now)
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
    vm = Driver(leader="external")
    vm.seconds(90, both)
    assert vm.sent == []


def test_leader_does_not_approve_while_a_vm_may_have_left_the_event() -> None:
    vm = Driver(DRAIN, leader="first")
    vm.seconds(2, event(vms=["vm1", "vm2"]))
    vm.seconds(1, event(vms=["vm1"]))
    vm.end_hook()
    assert (vm.sent, vm.reason()) == ([], "leaving")
    vm.seconds(3, event(vms=["vm1"]))
    assert vm.sent == ["e1"]


def test_event_with_unreadable_vms_is_not_approved() -> None:
    vm = Driver()
    vm.seconds(1, event())
    vm.seconds(3, event(vms=[]), doubtful=("e1",))
    assert (vm.sent, vm.reason()) == ([], "unreadable")
    answer = vm.ask(force=True)
    assert answer is not None and not answer.accepted


def test_gate_that_is_closed_is_named() -> None:
    vm = Driver(policy=rules({"when": {"gate": "go"}, "approve": "now"}))
    vm.gates = {"go": False}
    vm.seconds(3, event())
    reason = vm.machine.reason(vm.record())
    assert vm.sent == [] and reason is not None and reason.text.endswith("closed gates: go")
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
    answer = vm.ask(force=True)
    assert answer is not None and not answer.accepted


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


def test_pause_whose_end_has_passed_is_refused() -> None:
    vm = Driver()
    assert not vm.machine.pause("operator", vm.now, "", vm.now).accepted
    assert vm.machine.pause("operator", None, "", vm.now).accepted
    assert vm.machine.resume("operator", vm.now).accepted
    assert vm.records.state.pause is None


# -- operators


def test_operator_approves_when_the_preparation_is_done() -> None:
    vm = Driver(DRAIN, policy=rules({"approve": "manual"}))
    vm.seconds(2, event())
    answer = vm.ask()
    assert answer is not None and answer.accepted
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
        (event(event_type="Hibernate"), {}),
        (event(status="Started"), {"force": True, "release_others": True}),
    ],
    ids=["others", "not-this-vm", "unknown-type", "started"],
)
def test_operator_is_refused_without_the_word_that_is_needed(given: ScheduledEvent, options: dict[str, Any]) -> None:
    vm = Driver(policy=rules({"approve": "manual"}))
    vm.seconds(2, given)
    answer = vm.ask(**options)
    assert answer is not None and not answer.accepted
    assert vm.sent == []


def test_operator_approves_an_event_of_other_vms_by_force() -> None:
    vm = Driver(DRAIN)
    vm.seconds(2, event(vms=["vm2"]))
    vm.ask(force=True, release_others=True)
    assert (vm.sent, vm.begun) == (["e1"], [])
    vm.answer()
    vm.seconds(4)
    assert vm.records.state.past[0].approval_by == "asked for by operator"


def test_operator_who_asks_for_an_event_that_is_over_gets_no_answer() -> None:
    vm = Driver()
    vm.seconds(2, event())
    vm.seconds(4)
    assert vm.ask() is None


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
