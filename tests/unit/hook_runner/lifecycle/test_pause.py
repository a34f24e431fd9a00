# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A pause: the daemon polls, recovers and records, but begins no prepare hook and approves nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from hook_runner.lifecycle.pause import moment
from support.daemon.daemon_process import DaemonProcess
from support.daemon.engine_harness import EngineHarness
from support.daemon.hook_scripts import HANGS
from support.daemon.simulated_azure import Azure

MakeDaemon = Callable[..., DaemonProcess]
MakeVm = Callable[..., EngineHarness]


def pause(vm: EngineHarness, seconds: float = 0, reason: str = "") -> None:
    vm.engine.pausing.begin("root", vm.clock.now() + timedelta(seconds=seconds) if seconds else None, reason)
    vm.store.write()


@pytest.mark.parametrize(
    "text, meant",
    [
        ("30m", {"seconds": 1800}),
        ("2h", {"seconds": 7200}),
        ("90", {"seconds": 90}),
        ("2026-11-21T18:00:00Z", {"until": "2026-11-21T18:00:00Z"}),
        ("2026-11-21 18:00", {"until": "2026-11-21T18:00:00Z"}),
        ("2026-11-21T18:00:00+02:00", {"until": "2026-11-21T16:00:00Z"}),
    ],
)
def test_moment_takes_a_duration_or_a_date(text: str, meant: dict[str, Any]) -> None:
    assert moment(text) == meant


@pytest.mark.parametrize("text", ["", "soon", "0", "-5m", "18:00", "2026-13-01T00:00:00Z", "2026-11-21"])
def test_moment_refuses_a_text_that_is_not_a_time(text: str) -> None:
    with pytest.raises(ValueError, match="expected a time such as 30m, 2h or 2026"):
        moment(text)


def test_while_paused_nothing_is_prepared_and_nothing_is_approved(vm: EngineHarness, azure: Azure) -> None:
    vm.poll()
    pause(vm)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    vm.poll(60)
    assert vm.ran() == [] and azure.requests("POST") == []
    (record,) = vm.engine.records
    assert "no prepare hook begins: the daemon is paused by root" in record.waiting_for
    assert vm.engine.pausing.end("root")
    vm.poll()
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", event)]


def test_a_hook_that_runs_goes_on_and_the_next_one_does_not_begin(vm: EngineHarness, azure: Azure) -> None:
    vm.hook("prepare/10-a", HANGS)
    vm.hook("prepare/20-b")
    azure.schedule("Reboot", hold=True)
    vm.poll()
    pause(vm)
    vm.poll()
    vm.release("prepare/10-a")
    vm.poll()
    assert vm.ran() == ["prepare/10-a"] and azure.requests("POST") == []
    vm.engine.pausing.end("root")
    vm.poll()
    assert vm.ran() == ["prepare/10-a", "prepare/20-b"] and len(azure.approvals()) == 1


def test_a_hook_that_runs_keeps_its_deadline(vm: EngineHarness, azure: Azure) -> None:
    vm.hook("prepare/10-a", HANGS)
    vm.configure(hooks={"10-a": {"timeout": 30}})
    azure.schedule("Reboot", hold=True)
    vm.poll()
    pause(vm)
    vm.poll(31)
    assert [step.state for _record, step in vm.ended] == ["timeout"]


@pytest.mark.parametrize("when_started", ["stop", "finish"])
def test_recovery_goes_on_and_so_do_the_hooks_of_a_start(vm: EngineHarness, azure: Azure, when_started: str) -> None:
    vm.configure(when_started=when_started)
    vm.hook("prepare/20-b", HANGS)
    event = azure.schedule("Freeze", started_for=600)
    vm.poll()
    pause(vm)
    azure.approve(event)
    vm.poll(2)
    assert azure.status(event) == "Started"
    if when_started == "finish":
        vm.release("prepare/20-b")
    vm.poll()
    azure.complete(event)
    vm.poll()
    assert vm.ran("started") and vm.ran("recover") and vm.engine.records == []


def test_pause_ends_by_itself_by_the_servers_clock(vm: EngineHarness, azure: Azure) -> None:
    vm.wall_offset = timedelta(hours=5)
    vm.poll()
    pause(vm, 60)
    azure.schedule("Reboot", hold=True)
    vm.poll(59)
    assert vm.ran() == []
    vm.poll(2)
    assert vm.ran() == ["prepare/10-a"] and vm.engine.pausing.current() is None
    assert vm.log.getvalue().count("is over: its time has passed") == 1


@pytest.mark.parametrize("how", ["kill", "reboot"])
def test_pause_outlives_a_restart_and_its_time_passes_meanwhile(vm: EngineHarness, azure: Azure, how: str) -> None:
    vm.poll()
    pause(vm, 60, "a change of the cluster")
    azure.schedule("Reboot", hold=True)
    vm.restart(how)
    vm.poll(30)
    found = vm.engine.pausing.current()
    assert vm.ran() == [] and found is not None and (found.by, found.reason) == ("root", "a change of the cluster")
    vm.pass_time(60)
    vm.restart(how)
    vm.poll()
    assert vm.ran() == ["prepare/10-a"]


def test_wrong_clock_of_the_host_does_not_end_a_pause_at_a_restart(vm: EngineHarness, azure: Azure) -> None:
    vm.poll()
    pause(vm, 3600)
    azure.schedule("Reboot", hold=True)
    vm.wall_offset = timedelta(days=365)
    vm.restart("reboot")
    vm.engine.tick()
    vm.poll()
    assert vm.ran() == [] and vm.engine.pausing.current() is not None


def test_manual_approval_while_paused_needs_force(vm: EngineHarness, azure: Azure) -> None:
    event = azure.schedule("Reboot", hold=True)
    vm.delivers_approvals = False
    vm.configure(policy="observe")
    vm.poll()
    pause(vm)
    asked = vm.engine.approve_manually(event, "anna", False, False)
    assert asked is not None and not asked.accepted and "paused by root" in asked.text and "--force" in asked.text
    vm.delivers_approvals = True
    asked = vm.engine.approve_manually(event, "anna", True, False)
    assert asked is not None and asked.accepted
    vm.poll()
    assert azure.approvals() == [("vm1", event)]


def test_approval_that_waits_for_its_preparation_waits_for_the_end_of_the_pause(
    vm: EngineHarness, azure: Azure
) -> None:
    vm.hook("prepare/10-a", HANGS)
    vm.configure(policy="observe")
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    vm.engine.approve_manually(event, "anna", False, False)
    pause(vm)
    vm.release("prepare/10-a")
    vm.poll()
    assert azure.requests("POST") == []
    vm.engine.pausing.end("root")
    vm.poll()
    assert azure.approvals() == [("vm1", event)]


def test_the_verbs_pause_and_resume(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    file = vm.harness.folder / "our.prom"
    vm.harness.configure(metrics_file=str(file))
    assert vm.command("pause").returncode == vm.command("resume").returncode == 3
    vm.start(first="from hook_runner.service import metrics_output; metrics_output.METRICS_INTERVAL = 0.1")
    code, data = vm.data("status")
    assert (code, data["paused"]) == (0, None)
    code, data = vm.data("pause", "--until", "2h", "--reason", "a change\n\x1b[2J")
    assert (code, data["accepted"]) == (0, True)
    code, status = vm.data("status")
    assert (
        code == 1 and status["paused"] == data["paused"] and set(data["paused"]) == {"since", "until", "by", "reason"}
    )
    assert data["paused"]["reason"] == "a change??[2J"
    assert vm.command("status").stdout.startswith("PAUSED     the daemon is paused by ")
    vm.wait(lambda: file.exists() and "azure_scheduled_events_paused 1.0" in file.read_text())
    vm.wait(lambda: vm.times_notified("STATUS=paused; watching as vm1: no events"))
    vm.stop(9)
    vm.start(until="STATUS=paused; watching")
    assert vm.data("status")[1]["paused"] == data["paused"]
    assert vm.data("resume") == (0, {"accepted": True, "text": "resumed", "paused": None})
    assert vm.command("resume").stdout == "the daemon is not paused\n"
    assert vm.data("status")[0] == 0
    code, data = vm.data("pause", "--until", "2020-01-01T00:00:00Z")
    assert (code, data["accepted"], data["paused"]) == (1, False, None) and "has passed" in data["text"]
    wrong = vm.command("pause", "--until", "soon")
    assert wrong.returncode == 2 and "expected a time such as 30m" in wrong.stderr


def test_the_version_is_that_of_the_collection_and_of_the_daemon(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon().start()
    version = vm.data("status")[1]["version"]
    assert vm.command("--version").stdout == f"azure-scheduled-events {version}\n"
