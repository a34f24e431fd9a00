# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Which hooks the state machine begins and ends, and when a maintenance opens and closes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from azure_scheduled_events.document import ScheduledEvent
from hook_runner.records import FAILED, INTERRUPTED, STOPPED, TIMEOUT, Cause
from support.daemon.machine_driver import EPOCH, Driver, event, hook, rules

DRAIN, CHECKPOINT = hook("prepare/10-drain"), hook("prepare/20-checkpoint")
JOIN, NOTE = hook("recover/10-join"), hook("started/10-note")


def test_event_from_its_first_document_to_its_end() -> None:
    """T01."""
    vm = Driver(DRAIN, CHECKPOINT, NOTE, JOIN)
    vm.read(event())
    assert (vm.begun, vm.prepared(), vm.machine.phase) == (["prepare/10-drain"], "running", "preparing")
    vm.end_hook()
    vm.end_hook()
    vm.seconds(2, event())
    assert (vm.prepared(), vm.machine.phase, vm.sent) == ("ok", "prepared", ["e1"])
    vm.answer()
    vm.seconds(1, event(status="Started"))
    vm.end_hook()
    vm.seconds(4)
    assert vm.machine.phase == "recovering"
    vm.end_hook()
    assert vm.begun == ["prepare/10-drain", "prepare/20-checkpoint", "started/10-note", "recover/10-join"]
    (closed,) = vm.history
    assert (closed.outcome, closed.events[0].approval, vm.machine.records.maintenance) == (
        "completed",
        "accepted",
        None,
    )
    whats = [entry.what for entry in closed.timeline]
    for what in ("taken-up", "hook-started", "hook-ended", "prepared", "approval-sent", "approved", "started", "gone"):
        assert what in whats
    assert whats[-1] == "closed"
    assert closed.timeline[0].detail == "Reboot Scheduled by Platform, not before 2026-11-23T00:15:00Z"


@pytest.mark.parametrize(
    ("first", "second", "runs", "prepared"), [("Freeze", "Redeploy", 2, "running"), ("Redeploy", "Freeze", 1, "ok")]
)
def test_success_counts_for_an_event_that_is_not_more_severe(first: str, second: str, runs: int, prepared: str) -> None:
    vm = Driver(DRAIN)
    vm.read(event("e1", first))
    vm.end_hook()
    vm.seconds(1, event("e1", first), event("e2", second))
    assert (len(vm.begun), vm.prepared("e1"), vm.prepared("e2")) == (runs, "ok", prepared)


def test_event_whose_type_becomes_more_severe_is_prepared_again() -> None:
    vm = Driver(DRAIN)
    vm.read(event("e1", "Freeze"))
    vm.end_hook()
    vm.seconds(1, event("e1", "Redeploy"))
    assert (vm.begun, vm.prepared(), vm.sent) == (["prepare/10-drain"] * 2, "running", [])


def test_hook_that_its_event_needs_no_more_delays_no_approval() -> None:
    vm = Driver(DRAIN, hook("prepare/20-sync", types=("Terminate",)))
    vm.read(event("e1", "Terminate"))
    vm.end_hook()
    vm.seconds(1, event("e1", "Terminate"))
    assert (vm.begun, vm.prepared(), vm.sent) == (["prepare/10-drain", "prepare/20-sync"], "running", [])
    vm.seconds(2, event("e1", "Redeploy"))
    assert (vm.prepared(), vm.sent) == ("running", [])
    vm.seconds(2, event("e1", "Redeploy"))
    assert (vm.prepared(), vm.sent) == ("ok", ["e1"])


def test_hooks_of_the_most_urgent_event_begin_first_and_each_has_its_own_event() -> None:
    vm = Driver(hook("prepare/10-drain", types=("Freeze",)), hook("prepare/20-sync", types=("Redeploy",)))
    vm.read(event("e1", "Redeploy", not_before=300), event("e2", "Freeze"))
    vm.end_hook()
    expected = [("prepare/20-sync", vm.record("e1").number), ("prepare/10-drain", vm.record("e2").number)]
    assert [(run.title, run.event) for run in vm.runs] == expected


@pytest.mark.parametrize("state", [FAILED, TIMEOUT])
def test_hook_that_failed_is_not_repeated_for_its_event(state: str) -> None:
    vm = Driver(DRAIN, CHECKPOINT)
    vm.read(event())
    vm.end_hook(state)
    vm.end_hook()
    vm.seconds(3, event())
    assert (vm.begun, vm.prepared(), vm.sent) == (["prepare/10-drain", "prepare/20-checkpoint"], "failed", [])
    vm.seconds(1, event(), event("e2"))
    assert vm.begun[2:] == ["prepare/10-drain"]


def test_hook_that_stops_its_stage_lets_no_later_one_run() -> None:
    vm = Driver(hook("prepare/10-drain", on_failure="stop"), CHECKPOINT)
    vm.read(event())
    vm.end_hook(FAILED)
    vm.seconds(2, event())
    assert (vm.begun, vm.prepared()) == (["prepare/10-drain"], "failed")


def test_failure_that_is_ignored_counts_for_its_event_alone() -> None:
    vm = Driver(hook("prepare/10-drain", on_failure="ignore"))
    vm.read(event())
    vm.end_hook(FAILED)
    assert vm.prepared() == "ok"
    vm.seconds(1, event(), event("e2", "Freeze"))
    assert vm.begun == ["prepare/10-drain"] * 2


@pytest.mark.parametrize(("on_failure", "prepared", "sent"), [("continue", "failed", []), ("ignore", "ok", ["e1"])])
@pytest.mark.parametrize(("rerun", "times"), [(True, 3), (False, 1)])
def test_interrupted_hook_runs_three_times_at_most_or_once_if_it_must_not_run_again(
    rerun: bool, times: int, on_failure: str, prepared: str, sent: list[str]
) -> None:
    vm = Driver(hook("prepare/10-drain", rerun=rerun, on_failure=on_failure))
    vm.read(event())
    for _ in range(times):
        assert (vm.prepared(), vm.sent) == ("running", [])
        vm.end_hook(INTERRUPTED)
        vm.seconds(1, event())
    assert (len(vm.begun), vm.prepared(), vm.sent) == (times, prepared, sent)


def test_preempt_ends_a_drain_in_the_first_half_of_its_time() -> None:
    vm = Driver(hook("prepare/10-drain", timeout=20), hook("prepare/05-stop", types=("Preempt",)))
    vm.read(event("e1", "Freeze"))
    vm.seconds(1, event("e1", "Freeze"), event("e2", "Preempt", not_before=31))
    assert vm.ended == []
    vm.seconds(15, event("e1", "Freeze"), event("e2", "Preempt", not_before=31))
    assert vm.ended == [("prepare/10-drain", 5.0)]
    # TERM after 7.5 of 25 seconds, and KILL after 5 more
    assert vm.runs[0].ending is Cause.MORE_URGENT
    vm.end_hook(FAILED)
    assert vm.begun[1:] == ["prepare/05-stop"]


def test_preempt_ends_at_once_a_hook_that_may_last_longer_than_it() -> None:
    vm = Driver(DRAIN)
    vm.read(event("e1", "Freeze"))
    vm.seconds(1, event("e1", "Freeze"), event("e2", "Preempt", not_before=31))
    assert vm.ended == [("prepare/10-drain", 5.0)]
    vm.end_hook(FAILED)
    vm.end_hook()
    # the success for the Preempt counts for the Freeze
    assert (vm.prepared("e1"), vm.prepared("e2"), len(vm.begun)) == ("ok", "ok", 2)


def test_hook_that_ignores_term_is_killed_sooner_for_a_preempt() -> None:
    vm = Driver(hook("prepare/10-drain", timeout=3600), kill_after=60)
    vm.read(event())
    vm.seconds(4)
    vm.seconds(3, event("e2", "Preempt", not_before=vm.at + 31))
    assert vm.ended == [("prepare/10-drain", 60), ("prepare/10-drain", 7.5)]


def test_event_whose_hooks_need_most_of_its_time_gets_it() -> None:
    needy = hook("prepare/05-stop", types=("Redeploy",), needs=80, timeout=80)
    vm = Driver(hook("prepare/10-drain", timeout=60), needy)
    events = event("e1", "Freeze"), event("e2", "Redeploy", not_before=106)
    vm.read(events[0])
    vm.seconds(15, *events)
    assert vm.ended == []
    vm.seconds(2, *events)
    assert vm.ended == [("prepare/10-drain", 5.0)]
    vm.end_hook(FAILED)
    assert vm.begun[1:] == ["prepare/05-stop"]


def test_hook_ends_with_its_event_unless_another_one_needs_it() -> None:
    vm = Driver(DRAIN)
    vm.read(event("e1", "Redeploy"), event("e2", "Freeze", not_before=950))
    vm.seconds(4, event("e2", "Freeze", not_before=950))
    assert vm.ended == []
    vm.seconds(4)
    assert vm.ended == [("prepare/10-drain", 5.0)]


def test_start_ends_prepare_hooks_and_runs_those_of_the_start_once() -> None:
    """T18: another VM of the event may have approved it."""
    vm = Driver(DRAIN, NOTE)
    vm.read(event())
    vm.seconds(1, event(status="Started"))
    assert vm.ended == [("prepare/10-drain", 5.0)]
    vm.end_hook(FAILED)
    vm.end_hook(FAILED)
    vm.seconds(3, event(status="Started"))
    assert vm.begun == ["prepare/10-drain", "started/10-note"]
    assert [run.state for run in vm.runs] == [STOPPED, FAILED]


def test_start_waits_for_all_prepare_hooks_if_they_finish_before_a_reboot() -> None:
    vm = Driver(DRAIN, CHECKPOINT, NOTE, when_started="finish")
    vm.read(event())
    vm.seconds(1, event(status="Started"))
    vm.end_hook()
    rebooted = vm.restarted("boot-2", when_started="finish")
    vm.end_hook()
    assert vm.begun == ["prepare/10-drain", "prepare/20-checkpoint", "started/10-note"]
    assert vm.ended == []
    rebooted.machine.runs.lost(rebooted.runs[-1].number, rebooted.now)
    rebooted.read(event(status="Started"))
    assert (rebooted.begun, rebooted.record().prepared) == (["started/10-note"], "failed")


def test_prepare_hook_that_was_refused_is_no_preparation_before_an_event_without_notice() -> None:
    refused = hook("prepare/10-drain", problem="other users could change it")
    vm = Driver(refused, NOTE, hook("emergency/10-flush"))
    vm.read(event())
    vm.read(event(), event("e2", status="Started"))
    assert vm.begun == ["emergency/10-flush"]


def test_event_without_notice_runs_emergency_hooks_if_nothing_is_prepared() -> None:
    hooks = (DRAIN, NOTE, hook("emergency/10-flush"))
    vm = Driver(*hooks)
    vm.read(event(status="Started"))
    assert vm.begun == ["emergency/10-flush"]
    vm = Driver(*hooks)
    vm.read(event())
    vm.end_hook()
    vm.seconds(1, event(), event("e2", status="Started"))
    assert vm.begun == ["prepare/10-drain", "started/10-note"]


@pytest.mark.parametrize("vms", [["vm2"], ["vm1", "vm2"]], ids=["joins", "comes-back"])
def test_vm_in_a_started_event_without_preparation_runs_the_emergency_hooks(vms: list[str]) -> None:
    vm = Driver(NOTE, hook("emergency/10-flush"))
    vm.seconds(1, event(vms=vms))
    vm.seconds(3, event(vms=["vm2"]))
    vm.seconds(1, event(vms=["vm1", "vm2"], status="Started"))
    assert vm.begun == ["emergency/10-flush"]


def test_event_that_is_late_leaves_half_a_minute() -> None:
    vm = Driver(DRAIN, at=100)
    vm.read(event(not_before=50))
    assert (vm.runs[0].limit - EPOCH).total_seconds() == 130


def test_hook_without_the_time_that_it_needs_does_not_run() -> None:
    vm = Driver(hook("prepare/10-drain", needs=60, rerun=False))
    vm.read(event(not_before=50))
    assert (vm.begun, vm.prepared()) == ([], "failed")
    assert any("it needs 60 s" in line for line in vm.logged())
    vm.seconds(1, event(not_before=3600))
    assert vm.begun == ["prepare/10-drain"]


def test_hook_that_not_before_ended_runs_again_when_it_moves() -> None:
    vm = Driver(DRAIN)
    vm.read(event(not_before=60))
    vm.seconds(56, event(not_before=60))
    # KILL comes before NotBefore, too
    assert vm.ended == [("prepare/10-drain", 1.0)] and vm.records.maintenance is not None
    why = [entry.detail for entry in vm.records.maintenance.timeline if entry.what == "hook-ending"]
    assert why == ["prepare/10-drain: its event is about to start"]
    vm.end_hook(FAILED)
    assert vm.prepared() == "failed"
    vm.seconds(1, event(not_before=600))
    assert len(vm.begun) == 2


def test_hook_that_a_wrong_clock_ended_runs_again_when_it_is_right() -> None:
    vm = Driver(DRAIN)
    vm.read(event())
    vm.seconds(1, event(), step=900)
    assert [title for title, _seconds in vm.ended] == ["prepare/10-drain"]
    vm.end_hook(FAILED)
    vm.at -= 900
    vm.seconds(1, event())
    assert vm.begun == ["prepare/10-drain"] * 2


def test_hook_that_systemd_ended_at_not_before_runs_again_when_it_moves() -> None:
    vm = Driver(DRAIN)
    vm.read(event(not_before=60))
    vm.seconds(54, event(not_before=60))
    vm.end_hook(TIMEOUT)
    assert vm.prepared() == "failed"
    vm.seconds(1, event(not_before=600))
    assert len(vm.begun) == 2


@pytest.mark.parametrize("passed", [True, False], ids=["passed", "near"])
def test_hook_ends_when_not_before_comes_near_or_has_passed_since(passed: bool) -> None:
    vm = Driver(DRAIN)
    vm.read(event())
    vm.seconds(100, event(not_before=100 if passed else 104), step=100)
    assert [title for title, _seconds in vm.ended] == ["prepare/10-drain"]


def test_time_in_a_started_event_is_no_deadline() -> None:
    vm = Driver(DRAIN, when_started="finish")
    vm.read(event(not_before=100))
    vm.seconds(110, event(status="Started")._replace(not_before=EPOCH + timedelta(seconds=100)))
    assert vm.ended == []


@pytest.mark.parametrize("runs_on", [True, False], ids=["runs", "ended"])
@pytest.mark.parametrize("types", [None, ("Freeze",)], ids=["removed", "other-types"])
def test_failure_stays_when_its_hook_goes_away(types: tuple[str, ...] | None, runs_on: bool) -> None:
    vm = Driver(DRAIN)
    vm.read(event())
    if not runs_on:
        vm.end_hook(FAILED)
    hooks = {**vm.host.hooks, "prepare": () if types is None else (hook("prepare/10-drain", types=types),)}
    vm.machine.reconfigure(vm.host._replace(hooks=hooks), vm.now)
    vm.seconds(2, event())
    if runs_on:
        assert vm.prepared() == "running"
        vm.end_hook(FAILED)
    assert (vm.prepared(), vm.sent) == ("failed", [])


ADVICE = event("advice", "SpotRebalanceRecommendation", not_before=60)


def test_advice_is_taken_up_only_if_a_hook_names_it_and_then_undone() -> None:
    vm = Driver(DRAIN, JOIN)
    vm.seconds(2, ADVICE)
    assert (vm.begun, vm.machine.records.maintenance) == ([], None)
    vm = Driver(hook("prepare/10-drain", types=("SpotRebalanceRecommendation",)), JOIN)
    vm.read(ADVICE)
    vm.end_hook()
    vm.seconds(4)
    assert vm.begun == ["prepare/10-drain", "recover/10-join"]


def test_advice_is_not_approved_and_delays_no_recovery() -> None:
    vm = Driver(DRAIN, JOIN, policy=rules({"approve": "now"}))
    vm.seconds(2, ADVICE, event("e2", "Preempt"))
    vm.end_hook()
    vm.seconds(4, ADVICE)
    assert (vm.begun, vm.sent) == (["prepare/10-drain", "recover/10-join"], ["e2"])


def test_vm_is_recovered_although_its_event_only_advises_since() -> None:
    vm = Driver(DRAIN, JOIN)
    vm.read(event("e1", "Preempt"))
    vm.end_hook()
    vm.seconds(2, event("e1", "SpotRebalanceRecommendation"))
    vm.seconds(4)
    assert vm.begun == ["prepare/10-drain", "recover/10-join"]


def test_advice_takes_no_time_of_an_interruption() -> None:
    vm = Driver(hook("prepare/10-drain", types=("SpotRebalanceRecommendation", "Preempt")))
    vm.read(event("e1", "Preempt"))
    vm.seconds(120, event("e1", "Preempt"), ADVICE, step=10)
    assert (vm.begun, vm.ended) == (["prepare/10-drain"], [])


@pytest.mark.parametrize(
    ("given", "begun"),
    [(event(event_type="Hibernate"), ["prepare/10-drain"]), (event(status="Paused"), [])],
    ids=["type", "status"],
)
def test_hooks_run_for_an_unknown_type_and_wait_for_a_known_status(given: ScheduledEvent, begun: list[str]) -> None:
    vm = Driver(DRAIN, JOIN)
    vm.read(given)
    if begun:
        vm.end_hook()
    vm.seconds(4)
    assert vm.begun == [*begun, "recover/10-join"]


def test_hook_begins_only_while_the_last_document_lists_its_event() -> None:
    vm = Driver(DRAIN, CHECKPOINT)
    vm.read(event())
    vm.seconds(1)
    vm.end_hook()
    assert vm.begun == ["prepare/10-drain"]
    vm.seconds(1, event())
    assert vm.begun == ["prepare/10-drain", "prepare/20-checkpoint"]


def test_event_that_the_policy_holds_runs_no_hook_until_it_does_not() -> None:
    vm = Driver(DRAIN, JOIN, policy=rules({"when": {"time_left": {"gt": 100}}, "hold": True}, {"approve": "now"}))
    vm.seconds(2, event(not_before=200))
    assert (vm.begun, vm.prepared(), vm.reason()) == ([], "none", "held")
    vm.seconds(100, event(not_before=200))
    assert vm.begun == ["prepare/10-drain"]
    vm.end_hook()
    vm.seconds(2, event(not_before=900))
    assert vm.prepared() == "ok"


def test_held_event_is_not_taken_up_while_the_last_document_lacks_this_vm() -> None:
    vm = Driver(DRAIN, policy=rules({"when": {"time_left": {"gt": 100}}, "hold": True}, {"approve": "now"}))
    vm.seconds(99, event(vms=["vm1", "vm2"], not_before=200), step=33)
    vm.seconds(1, event(vms=["vm2"], not_before=200))
    assert vm.records.maintenance is None
    vm.seconds(1, event(vms=["vm1", "vm2"], not_before=200))
    assert vm.begun == ["prepare/10-drain"]


def test_held_event_that_ends_causes_no_recovery() -> None:
    vm = Driver(DRAIN, JOIN, policy=rules({"hold": True}))
    vm.seconds(2, event())
    vm.seconds(4)
    assert (vm.begun, vm.history) == ([], [])
    assert [record.key for record in vm.records.state.past] == ["e1"]


def test_held_event_delays_no_recovery_and_is_recovered_from_when_it_starts() -> None:
    vm = Driver(DRAIN, NOTE, JOIN, hook("emergency/10"), policy=rules({"when": {"type": "Freeze"}, "hold": True}, {}))
    held = event("held", "Freeze")
    vm.read(held, event("e2"))
    vm.end_hook()
    vm.seconds(4, held)
    vm.end_hook()
    assert vm.begun == ["prepare/10-drain", "recover/10-join"]
    vm.seconds(1, event("held", "Freeze", "Started"))
    vm.end_hook()
    vm.seconds(4)
    assert vm.begun[2:] == ["started/10-note", "recover/10-join"]


def test_vm_that_leaves_an_event_recovers_and_prepares_again_only_when_it_is_back() -> None:
    vm = Driver(DRAIN, JOIN)
    vm.seconds(1, event(vms=["vm1", "vm2"]))
    vm.end_hook()
    vm.seconds(4, event(vms=["vm2"]))
    assert vm.begun == ["prepare/10-drain", "recover/10-join"]
    assert vm.record().number == 0
    vm.end_hook()
    vm = vm.restarted()
    vm.seconds(3, event(vms=["vm2"]), event("e2", vms=["vm3"]))
    assert vm.begun == []
    vm.seconds(1, event(vms=["vm1", "vm2"]), event("e2", vms=["vm3"]))
    assert vm.begun == ["prepare/10-drain"]


def test_preparation_is_not_judged_before_the_first_document() -> None:
    vm = Driver(hook("prepare/10-drain", needs=60.0))
    vm.read(event())
    vm = vm.restarted("boot-2")
    vm.wait(890)
    assert (vm.record().prepared, vm.begun) == ("running", [])


def test_nothing_happens_while_the_own_name_is_unknown() -> None:
    vm = Driver(DRAIN, JOIN)
    vm.read(event())
    vm.end_hook()
    vm = vm.restarted(own_name="")
    vm.seconds(3, event())
    vm.seconds(3, event("e2", "Redeploy"))
    assert vm.begun == []
    assert vm.machine.phase == "recovering"
    vm.machine.reconfigure(vm.host._replace(own_name="vm1"), vm.now)
    vm.act()
    assert vm.begun == ["prepare/10-drain"]


def test_preparation_that_the_start_of_the_event_ended_has_failed() -> None:
    vm = Driver(DRAIN, CHECKPOINT)
    vm.read(event())
    vm.end_hook()
    vm.seconds(1, event(status="Started"))
    vm.end_hook(FAILED)
    assert vm.prepared() == "failed"
    unprepared = Driver(DRAIN)
    unprepared.seconds(1, event(status="Started"))
    assert unprepared.prepared() == "none"


def test_reason_of_a_failed_preparation_names_the_hook_and_why() -> None:
    vm = Driver(hook("prepare/20-backup", needs=600.0))
    vm.seconds(2, event(not_before=300.0))
    assert "prepare/20-backup: too little time is left" in vm.reason_text()


def test_time_limit_of_less_than_a_second_is_no_lack_of_time() -> None:
    vm = Driver(hook("prepare/10-drain", timeout=0.5))
    vm.read(event(not_before=60))
    assert vm.begun == ["prepare/10-drain"]
