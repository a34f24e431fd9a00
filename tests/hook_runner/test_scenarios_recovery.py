# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Recovery: after all events that need it, once, also when it was cut short; and runs that outlive the daemon."""

from __future__ import annotations

from typing import Callable

import pytest
from rig import Rig
from scripts import FAILS, HANGS
from simulated_azure import Azure

MakeRig = Callable[..., Rig]


@pytest.mark.parametrize("restarted", [False, True])
def test_recover_waits_for_all_events_that_prepared_the_same_hook_and_runs_once(azure: Azure, me: Rig, restarted: bool) -> None:
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
    assert "waits for the end of event %s" % third in me.status()["events"][0]["waiting"]
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


def test_a_failed_recovery_is_told_and_not_repeated(azure: Azure, me: Rig) -> None:
    me.hook("recover/10-a", FAILS)
    event = azure.schedule("Reboot", cancel_after=60)
    me.look()
    me.look(after=61)
    me.restart("kill")
    me.look(after=61)
    assert me.ran("recover") == ["recover/10-a"] and me.said("recovered, but for 10-a") == 1
    assert me.record(event).closed_at is not None


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
    assert me.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"]
    assert [record.life for record in me.engine.records] == [2]


def test_a_recovery_that_is_refused_is_told(azure: Azure, me: Rig) -> None:
    (me.hooks_directory / "recover/10-a").chmod(0o777)
    event = azure.schedule("Reboot", cancel_after=60)
    me.look()
    me.look(after=61)
    assert me.steps(event)[-1] == ("recover/10-a", "failed") and me.said("recovered, but for 10-a") == 1


def test_a_run_whose_keeper_is_killed_is_run_again_but_not_for_ever(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    me.look()
    for attempt in range(1, 4):
        assert me.ran() == ["prepare/10-a"] * attempt
        me.end_processes()
        me.look(after=1)
    assert [state for _hook, state in me.steps(event)] == ["interrupted"] * 3
    assert me.engine.prepared(me.record(event)) == "failed" and azure.requests("POST") == []
