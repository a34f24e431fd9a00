# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A pause: the daemon watches, recovers and records, but begins no prepare hook and approves nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hook_runner.lifecycle.pause import moment
from support.daemon.daemon_process import Daemon
from support.daemon.engine_harness import Rig
from support.daemon.hook_scripts import HANGS
from support.daemon.simulated_azure import Azure

MakeDaemon = Callable[..., Daemon]
MakeRig = Callable[..., Rig]

NOON = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)


def pause(me: Rig, seconds: float = 0, reason: str = "") -> None:
    me.engine.pausing.begin("root", me.clock.now() + timedelta(seconds=seconds) if seconds else None, reason)


@pytest.mark.parametrize(
    "text, meant",
    [
        ("30m", {"seconds": 1800}),
        ("2h", {"seconds": 7200}),
        ("90", {"seconds": 90}),
        ("18:00", {"until": "2026-11-21T18:00:00Z"}),
        ("12:00", {"until": "2026-11-22T12:00:00Z"}),
        ("6:05", {"until": "2026-11-22T06:05:00Z"}),
        ("2026-11-21T18:00:00Z", {"until": "2026-11-21T18:00:00Z"}),
        ("2026-11-21 18:00", {"until": "2026-11-21T18:00:00Z"}),
        ("2026-11-21T18:00:00+02:00", {"until": "2026-11-21T16:00:00Z"}),
    ],
)
def test_a_time_is_a_span_a_time_of_day_or_a_date(text: str, meant: dict[str, Any]) -> None:
    assert moment(text, NOON) == meant


@pytest.mark.parametrize("text", ["", "soon", "0", "-5m", "24:00", "12:60", "2026-13-01T00:00:00Z", "2026-11-21"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a time such as 30m, 2h, 18:00"):
        moment(text, NOON)


def test_while_paused_nothing_is_prepared_and_nothing_is_approved(me: Rig, azure: Azure) -> None:
    me.look()
    pause(me)
    event = azure.schedule("Reboot", hold=True)
    me.look()
    me.look(60)
    assert me.ran() == [] and azure.requests("POST") == []
    (record,) = me.engine.records
    assert "no prepare hook begins: the daemon is paused by root" in record.waiting_for
    assert me.engine.pausing.end("root")
    me.look()
    assert me.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_a_hook_that_runs_goes_on_and_the_next_one_does_not_begin(me: Rig, azure: Azure) -> None:
    me.hook("prepare/10-a", HANGS)
    me.hook("prepare/20-b")
    azure.schedule("Reboot", hold=True)
    me.look()
    pause(me)
    me.look()
    me.release("prepare/10-a")
    me.look()
    assert me.ran() == ["prepare/10-a"] and azure.requests("POST") == []
    me.engine.pausing.end("root")
    me.look()
    assert me.ran() == ["prepare/10-a", "prepare/20-b"] and len(azure.approvals()) == 1


def test_a_hook_that_runs_keeps_its_deadline(me: Rig, azure: Azure) -> None:
    me.hook("prepare/10-a", HANGS)
    me.configure(hook_timeout=30)
    azure.schedule("Reboot", hold=True)
    me.look()
    pause(me)
    me.look(31)
    assert [step.state for _record, step in me.ended] == ["timeout"]


@pytest.mark.parametrize("when_started", ["stop", "finish"])
def test_recovery_goes_on_and_so_do_the_hooks_of_a_start(me: Rig, azure: Azure, when_started: str) -> None:
    me.configure(when_started=when_started)
    me.hook("prepare/20-b", HANGS)
    event = azure.schedule("Freeze", started_for=600)
    me.look()
    pause(me)
    azure.approve(event)
    me.look(2)
    assert azure.status(event) == "Started"
    if when_started == "finish":
        me.release("prepare/20-b")
    me.look()
    azure.complete(event)
    me.look()
    assert me.ran("started") and me.ran("recover") and me.engine.records == []


def test_it_ends_by_itself_by_the_servers_clock(me: Rig, azure: Azure) -> None:
    me.wall_is_off = timedelta(hours=5)
    me.look()
    pause(me, 60)
    azure.schedule("Reboot", hold=True)
    me.look(59)
    assert me.ran() == []
    me.look(2)
    assert me.ran() == ["prepare/10-a"] and me.engine.pausing.current() is None
    assert me.log.getvalue().count("is over: its time has passed") == 1


@pytest.mark.parametrize("how", ["stop", "kill", "reboot"])
def test_it_outlives_a_restart_and_its_time_passes_meanwhile(me: Rig, azure: Azure, how: str) -> None:
    me.look()
    pause(me, 60, "a change of the cluster")
    azure.schedule("Reboot", hold=True)
    me.restart(how)
    me.look(30)
    found = me.engine.pausing.current()
    assert me.ran() == [] and found is not None and (found.by, found.reason) == ("root", "a change of the cluster")
    me.pass_time(60)
    me.restart(how)
    me.look()
    assert me.ran() == ["prepare/10-a"]


def test_a_wrong_clock_of_the_host_does_not_end_it_at_a_restart(me: Rig, azure: Azure) -> None:
    me.look()
    pause(me, 3600)
    azure.schedule("Reboot", hold=True)
    me.wall_is_off = timedelta(days=365)
    me.restart("reboot")
    me.engine.tick()
    me.look()
    assert me.ran() == [] and me.engine.pausing.current() is not None


def test_a_person_approves_by_force_only(me: Rig, azure: Azure) -> None:
    event = azure.schedule("Reboot", hold=True)
    me.delivers = False
    me.configure(policy="observe")
    me.look()
    pause(me)
    asked = me.engine.approve_manually(event, "anna", False, False)
    assert asked is not None and not asked.accepted and "paused by root" in asked.text and "--force" in asked.text
    me.delivers = True
    asked = me.engine.approve_manually(event, "anna", True, False)
    assert asked is not None and asked.accepted
    me.look()
    assert azure.approvals() == [("vm1", event)]


def test_an_approval_that_waits_for_its_preparation_waits_for_the_end_of_the_pause(me: Rig, azure: Azure) -> None:
    me.hook("prepare/10-a", HANGS)
    me.configure(policy="observe")
    event = azure.schedule("Reboot", hold=True)
    me.look()
    me.engine.approve_manually(event, "anna", False, False)
    pause(me)
    me.release("prepare/10-a")
    me.look()
    assert azure.requests("POST") == []
    me.engine.pausing.end("root")
    me.look()
    assert azure.approvals() == [("vm1", event)]


def test_the_verbs_pause_and_resume(azure: Azure, make_daemon: MakeDaemon) -> None:
    me = make_daemon()
    file = me.rig.folder / "our.prom"
    me.rig.configure(metrics_file=str(file))
    assert me.command("pause").returncode == me.command("resume").returncode == 3
    me.start(first="from hook_runner.service import daemon; daemon.METRICS_INTERVAL = 0.1")
    code, data = me.data("status")
    assert (code, data["paused"]) == (0, None)
    code, data = me.data("pause", "--until", "2h", "--reason", "a change of the cluster")
    assert (code, data["accepted"]) == (0, True)
    code, status = me.data("status")
    assert (
        code == 1 and status["paused"] == data["paused"] and set(data["paused"]) == {"since", "until", "by", "reason"}
    )
    assert data["paused"]["reason"] == "a change of the cluster"
    assert me.command("status").stdout.startswith("PAUSED     the daemon is paused by ")
    me.wait(lambda: file.exists() and "azure_scheduled_events_paused 1.0" in file.read_text())
    me.wait(lambda: me.times("STATUS=paused; watching as vm1: no events"))
    me.stop(9)
    me.start(until="STATUS=paused; watching")
    assert me.data("status")[1]["paused"] == data["paused"]
    assert me.data("resume") == (0, {"accepted": True, "text": "resumed", "paused": None})
    assert me.command("resume").stdout == "the daemon is not paused\n"
    assert me.data("status")[0] == 0
    code, data = me.data("pause", "--until", "2020-01-01T00:00:00Z")
    assert (code, data["accepted"], data["paused"]) == (1, False, None) and "has passed" in data["text"]
    wrong = me.command("pause", "--until", "soon")
    assert wrong.returncode == 2 and "expected a time such as 30m" in wrong.stderr


def test_the_version_is_that_of_the_collection_and_of_the_daemon(azure: Azure, make_daemon: MakeDaemon) -> None:
    me = make_daemon().start()
    version = me.data("status")[1]["version"]
    assert me.command("--version").stdout == f"azure-scheduled-events {version}\n"
