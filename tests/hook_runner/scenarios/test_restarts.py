# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.1 and 1.5: the daemon, or its host, starts anew in the middle of an event."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.daemon.engine_harness import Rig
from support.daemon.hook_scripts import HANGS
from support.daemon.simulated_azure import Azure

MakeRig = Callable[..., Rig]


def test_t11_a_reboot_during_prepare_runs_the_hook_again_and_loses_no_approval(azure: Azure, me: Rig) -> None:
    me.hook("prepare/20-b", HANGS)
    event = azure.schedule("Reboot")
    me.look()
    assert me.ran() == ["prepare/10-a", "prepare/20-b"] and azure.approvals() == []
    me.restart("reboot")
    me.look(after=30)
    assert me.ran() == ["prepare/10-a", "prepare/20-b", "prepare/10-a", "prepare/20-b"]
    me.release("prepare/20-b")
    me.look()
    assert me.steps(event) == [
        ("prepare/10-a", "ok"),
        ("prepare/20-b", "interrupted"),
        ("prepare/10-a", "ok"),
        ("prepare/20-b", "ok"),
    ]
    assert azure.approvals() == [("vm1", event)]


def test_t11_a_hook_that_may_not_run_again_does_not_and_counts_as_failed(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(hooks={"10-a": {"rerun": False}})
    me.hook("prepare/10-a", HANGS)
    me.hook("prepare/20-b")
    event = azure.schedule("Reboot")
    me.look()
    me.restart("reboot")
    me.look(after=30)
    assert me.ran() == ["prepare/10-a", "prepare/20-b"]
    assert me.engine.preparation_state(me.record(event)) == "failed" and azure.requests("POST") == []


@pytest.mark.parametrize("how", ["stop", "kill", "reboot"])
def test_t11_an_approval_that_is_due_after_the_restart_is_sent_then(azure: Azure, me: Rig, how: str) -> None:
    me.delivers = False
    event = azure.schedule("Reboot")
    me.look()
    assert me.record(event).approval == "sent" and azure.approvals() == []
    me.restart(how)
    me.delivers = True
    me.look(after=30)
    assert azure.approvals() == [("vm1", event)] and me.ran() == ["prepare/10-a"] * (2 if how == "reboot" else 1)
    me.look(after=5)
    assert len(azure.requests("POST")) == 1


@pytest.mark.parametrize("how", ["stop", "kill", "reboot"])
def test_t12_a_restart_while_started_waits_for_the_end(azure: Azure, me: Rig, how: str) -> None:
    event = azure.schedule("Reboot", started_for="5m")
    me.look()
    me.look(after=2)
    me.restart(how)
    me.look(after=60)
    me.look(after=60)
    assert me.ran() == ["prepare/10-a", "started/10-a"]
    me.look(after=200)
    me.look(after=60)
    assert me.ran() == ["prepare/10-a", "started/10-a", "recover/10-a"] and azure.approvals() == [("vm1", event)]
    assert me.record(event).outcome == "completed"


@pytest.mark.parametrize("seen_started, outcome", [(True, "completed"), (False, "cancelled-or-missed")])
def test_t13_gone_at_the_first_poll_after_a_reboot_is_recovered_from_once(
    azure: Azure, me: Rig, seen_started: bool, outcome: str
) -> None:
    event = azure.schedule("Reboot")
    me.look()
    if seen_started:
        me.look(after=2)
    azure.complete(event)
    me.restart("reboot")
    me.look(after=90)
    me.look(after=90)
    assert me.ran("recover") == ["recover/10-a"] and me.ran("prepare") == ["prepare/10-a"]
    assert me.record(event).outcome == outcome
    me.restart("reboot")
    me.look()
    assert me.ran("recover") == ["recover/10-a"]


def test_a_journal_that_is_lost_leads_to_no_second_run(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    me.look()
    me.journal.close()
    for file in Path(me.settings.journal).parent.iterdir():
        file.write_bytes(b"no journal" * 1000)
    me.restart("kill")
    me.look(after=1)
    me.release("prepare/10-a")
    me.settle()
    assert me.steps(event) == [("prepare/10-a", "ok")] and me.said("corrupt") >= 1
    assert me.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_the_deadline_of_a_hook_that_was_adopted_holds_before_imds_answers(
    azure: Azure, make_rig: MakeRig, tmp_path: Path
) -> None:
    me = make_rig()
    me.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", notice=60)
    me.look()
    me.clock.save(str(tmp_path / "clock"))
    azure.fault("reset")
    me.restart("kill")
    me.clock.restore(str(tmp_path / "clock"))
    me.look(after=50)
    assert me.steps(event) == [("prepare/10-a", "running")]
    me.look(after=7)
    assert me.steps(event) == [("prepare/10-a", "timeout")] and azure.approvals() == []


def test_preparation_whose_effect_persists_is_not_repeated_after_a_reboot(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(hooks={"10-a": {"persists": True}})
    me.delivers = False
    me.hook("prepare/10-a")
    me.hook("prepare/20-b")
    event = azure.schedule("Reboot", hold=True)
    me.look()
    me.restart("reboot")
    me.delivers = True
    me.look(after=1)
    assert me.ran() == ["prepare/10-a", "prepare/20-b", "prepare/20-b"] and azure.approvals() == [("vm1", event)]


def test_event_is_not_approved_after_a_reboot_before_it_is_prepared_again(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig()
    me.delivers = False
    me.hook("prepare/10-a")
    event = azure.schedule("Reboot", hold=True)
    me.look()
    me.restart("reboot")
    me.delivers = True
    me.hook("prepare/10-a", HANGS)
    me.look(after=1)
    assert azure.approvals() == [] and me.engine.preparation_state(me.record(event)) == "running"
    me.release("prepare/10-a")
    me.settle()
    assert azure.approvals() == [("vm1", event)]
