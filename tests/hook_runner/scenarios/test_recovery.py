# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Recovery: after all events that need it, once, also when it was cut short; and runs that outlive the daemon."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from azure_scheduled_events import ImdsRefused
from hook_runner.reporting.metrics import Metrics
from hook_runner.reporting.status import is_healthy, to_text
from support.daemon.engine_harness import Rig
from support.daemon.hook_scripts import FAILS, HANGS
from support.daemon.simulated_azure import Azure

MakeRig = Callable[..., Rig]


@pytest.mark.parametrize("restarted", [False, True])
def test_recover_waits_for_all_events_that_prepared_the_same_hook_and_runs_once(
    azure: Azure, me: Rig, restarted: bool
) -> None:
    first, second, third = (azure.schedule("Freeze", hold=True) for _event in range(3))
    me.look()
    assert me.ran() == ["prepare/10-a"] * 3
    azure.complete(first)
    me.look()
    if restarted:
        me.restart("reboot")
    azure.complete(second)
    me.look(after=60)
    assert me.ran("recover") == []
    assert f"waits for the end of event {third}" in me.status()["events"][0]["waiting"]
    azure.complete(third)
    me.look(after=1)
    me.look(after=1)
    assert me.ran("recover") == ["recover/10-a"] and me.engine.records == []
    assert sorted(me.steps(event)[-1][1] for event in (first, second, third)) == ["ok", "skipped", "skipped"]


def test_recover_does_not_wait_for_events_that_did_not_prepare_its_hook(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(hooks={"10-a": {"types": ["Reboot"]}, "20-b": {"types": ["Freeze"]}})
    for hook in ("prepare/10-a", "prepare/20-b", "recover/10-a", "recover/20-b"):
        me.hook(hook)
    first = azure.schedule("Reboot", hold=True)
    azure.schedule("Freeze", hold=True)
    me.look()
    azure.complete(first)
    me.look()
    assert me.ran("recover") == ["recover/10-a"]


def test_a_recovery_that_was_cut_short_is_run_again(azure: Azure, me: Rig) -> None:
    me.hook("recover/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    me.look()
    azure.complete(event)
    me.look()
    me.restart("reboot")
    me.look(after=30)
    me.release("recover/10-a")
    me.settle()
    assert me.steps(event)[1:] == [("recover/10-a", "interrupted"), ("recover/10-a", "ok")] and me.engine.records == []


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_hooks_survive_a_restart_of_the_daemon(azure: Azure, me: Rig, how: str) -> None:
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    me.look()
    me.restart(how)
    me.look(after=30)
    assert me.ran() == ["prepare/10-a"] and "hook-adopted" in me.words(event)
    me.release("prepare/10-a")
    me.settle()
    assert me.steps(event) == [("prepare/10-a", "ok")] and azure.approvals() == [("vm1", event)]


def test_a_hook_that_ended_while_no_daemon_lived_is_accounted_for(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    me.look()
    me.journal.close()
    me.release("prepare/10-a", 4)
    me.restart("kill")
    me.look(after=30)
    assert me.steps(event) == [("prepare/10-a", "failed")] and me.record(event).steps[0].exit_status == 4
    assert me.ran() == ["prepare/10-a"] and azure.requests("POST") == []


def test_recovery_runs_although_the_preparation_failed(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", FAILS)
    event = azure.schedule("Reboot", cancel_after=60)
    me.look()
    me.look(after=61)
    assert me.steps(event) == [("prepare/10-a", "failed"), ("recover/10-a", "ok")]


def test_recovery_that_fails_for_long_keeps_few_outputs(azure: Azure, me: Rig) -> None:
    me.hook("recover/10-a", "echo trouble; " + FAILS)
    event = azure.schedule("Reboot", cancel_after=60)
    me.look()
    me.look(after=61)
    for _attempt in range(11):
        me.look(after=601)
    me.restart("kill")
    runs = me.record(event).runs_in_stage("recover")
    assert [bool(run.output) for run in runs] == [True] + [False] * 6 + [True] * 5
    assert {run.state for run in runs} == {"failed"}


def test_failed_recovery_is_repeated_with_growing_pauses_until_it_succeeds(azure: Azure, me: Rig) -> None:
    me.hook("recover/10-a", FAILS)
    event = azure.schedule("Reboot", cancel_after=60)
    me.look()
    me.look(after=61)
    for seconds, runs in ((9, 1), (1, 2), (19, 2), (1, 3)):
        me.look(after=seconds)
        assert len(me.ran("recover")) == runs
    (shown,) = me.status()["events"]
    assert shown["not_recovered"] == ["10-a"] and 0 < shown["next_attempt"] <= 40 and not is_healthy(me.status())
    assert "NOT RECOVERED" in to_text(me.status())
    me.restart("kill")
    me.look(after=1)
    assert len(me.ran("recover")) == 3 and me.status()["events"][0]["not_recovered"] == ["10-a"]
    me.hook("recover/10-a")
    me.look(after=40)
    assert len(me.ran("recover")) == 4 and me.record(event).closed_at is not None and is_healthy(me.status())
    assert me.said("closed: recovered; outcome") == 1


def test_failed_recovery_is_repeated_at_most_every_ten_minutes_without_end(azure: Azure, me: Rig) -> None:
    me.hook("recover/10-a", FAILS)
    azure.schedule("Reboot", cancel_after=60)
    me.look()
    me.look(after=61)
    for _attempt in range(30):
        me.look(after=600)
    assert len(me.ran("recover")) == 31


def test_recovery_is_repeated_at_once_when_an_operator_asks_for_it(azure: Azure, me: Rig) -> None:
    me.hook("recover/10-a", FAILS)
    event = azure.schedule("Reboot", cancel_after=60)
    me.look()
    me.look(after=61)
    me.hook("recover/10-a")
    asked = me.engine.recover_manually(event.lower(), "root", give_up=False)
    me.settle()
    assert asked is not None and asked.accepted and me.ran("recover") == ["recover/10-a"] * 2
    assert me.record(event).closed_at is not None and me.engine.recover_manually(event, "root", give_up=False) is None


def test_recovery_that_an_operator_gives_up_is_closed_with_its_failure(azure: Azure, me: Rig) -> None:
    me.hook("recover/10-a", FAILS)
    event = azure.schedule("Reboot", cancel_after=60)
    me.look()
    early = me.engine.recover_manually(event, "root", give_up=True)
    me.look(after=61)
    late = me.engine.recover_manually(event, "root", give_up=True)
    assert early is not None and not early.accepted and late is not None and late.accepted
    me.restart("kill")
    me.look(after=3600)
    assert me.ran("recover") == ["recover/10-a"] and me.record(event).closed_at is not None
    assert me.words(event)[-3:] == ["given-up", "hook-ended", "closed"]


@pytest.mark.parametrize("how", ["kill", "reboot"])
def test_recovery_that_is_always_interrupted_is_not_given_up(azure: Azure, me: Rig, how: str) -> None:
    me.hook("recover/10-a", HANGS)
    event = azure.schedule("Reboot", cancel_after=60)
    me.look()
    me.look(after=61)
    for _attempt in range(4):
        me.end_processes()
        me.restart(how)
        me.look(after=1)
        me.look(after=700)
    assert len(me.ran("recover")) == 5 and me.record(event).closed_at is None
    me.release("recover/10-a")
    me.settle()
    assert me.record(event).closed_at is not None


def test_failed_recovery_waits_for_the_next_event_and_serves_both(azure: Azure, me: Rig) -> None:
    me.hook("recover/10-a", FAILS)
    first = azure.schedule("Reboot", cancel_after=60)
    me.look()
    me.look(after=61)
    second = azure.schedule("Reboot", cancel_after=60)
    me.hook("recover/10-a")
    me.look(after=30)
    assert me.ran("recover") == ["recover/10-a"] and me.ran("prepare") == ["prepare/10-a"] * 2
    due_in = me.engine.due_in()
    assert due_in is not None and due_in >= 1
    me.look(after=31)
    me.look(after=1)
    assert me.ran("recover") == ["recover/10-a"] * 2
    assert all(me.record(event).closed_at is not None for event in (first, second))


def test_an_id_that_comes_back_during_its_recovery_waits_for_that(azure: Azure, me: Rig) -> None:
    me.hook("recover/10-a", HANGS)
    azure.show(azure.entry())
    me.look()
    azure.show()
    me.look(after=1)
    azure.show(azure.entry())
    me.look(after=1)
    assert me.ran() == ["prepare/10-a", "recover/10-a"]
    me.release("recover/10-a")
    me.settle()
    assert (
        me.ran() == ["prepare/10-a", "recover/10-a"] and me.engine.preparation_state(me.engine.records[0]) == "running"
    )
    me.look(after=60)
    assert me.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"]
    assert [record.occurrence for record in me.engine.records] == [1]


def test_recovery_by_a_refused_hook_stays_open(azure: Azure, me: Rig) -> None:
    (me.hooks_directory / "recover/10-a").chmod(0o777)
    event = azure.schedule("Reboot", cancel_after=60)
    me.look()
    me.look(after=61)
    assert me.steps(event)[-1] == ("recover/10-a", "failed") and me.status()["events"][0]["not_recovered"] == ["10-a"]


def test_a_run_whose_keeper_is_killed_is_run_again_but_not_for_ever(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    me.look()
    for attempt in range(1, 4):
        assert me.ran() == ["prepare/10-a"] * attempt
        me.end_processes()
        me.look(after=1)
    assert [state for _hook, state in me.steps(event)] == ["interrupted"] * 3
    assert me.engine.preparation_state(me.record(event)) == "failed" and azure.requests("POST") == []


def test_metrics_count_refused_approvals_and_events_that_are_not_recovered_from(azure: Azure, me: Rig) -> None:
    me.hook("recover/10-a", FAILS)
    azure.schedule("Reboot", cancel_after=60)
    me.look()
    me.look(after=61)
    metrics = Metrics(str(me.folder / "metrics.prom"))
    metrics.approval_answered(None)
    metrics.approval_answered(ImdsRefused("no", "", 403, retryable=False))
    metrics.write(me.engine, me.health, False)
    lines = (me.folder / "metrics.prom").read_text().splitlines()
    assert "azure_scheduled_events_not_recovered 1.0" in lines
    for result in ("accepted", "status-403"):
        assert f'azure_scheduled_events_approval_answers_total{{result="{result}"}} 1.0' in lines
