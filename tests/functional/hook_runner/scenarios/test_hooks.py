# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hook runs: their settings, limits and input."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from support.daemon.engine_harness import EngineHarness
from support.daemon.hook_scripts import FAILS, HANGS, IGNORES_TERM, KEEPS_INPUT, TALKS, is_alive
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., EngineHarness]


def test_hooks_run_one_after_the_other_by_name(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    for name in ("9-z", "10-b", "10-a", "A", "a"):
        vm.hook("prepare/" + name)
    azure.schedule("Reboot")
    vm.poll()
    assert vm.ran() == ["prepare/10-a", "prepare/10-b", "prepare/9-z", "prepare/A", "prepare/a"]
    assert [mark.what for mark in vm.marks()] == ["begin", "end"] * 5


def test_types_choose_the_hooks(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(hooks={"10-a": {"types": ["Reboot"]}, "recover/20-b": {"types": ["Freeze"]}})
    for hook in ("prepare/10-a", "prepare/20-b", "recover/10-a", "recover/20-b"):
        vm.hook(hook)
    event = azure.schedule("Freeze", hold=True)
    vm.poll()
    azure.complete(event)
    vm.poll()
    assert vm.ran() == ["prepare/20-b", "recover/20-b"]


@pytest.mark.parametrize("reaction, ran, approved", [("continue", 2, False), ("stop", 1, False), ("ignore", 2, True)])
def test_on_failure_decides_about_the_rest(
    azure: Azure, make_vm: MakeVm, reaction: str, ran: int, approved: bool
) -> None:
    vm = make_vm(hooks={"10-a": {"on_failure": reaction}})
    vm.hook("prepare/10-a", FAILS)
    vm.hook("prepare/20-b")
    azure.schedule("Reboot")
    vm.poll()
    assert len(vm.ran()) == ran and bool(azure.approvals()) == approved


@pytest.mark.parametrize("needs, runs", [(40, True), (70, False)])
def test_a_hook_that_needs_more_time_is_left_out(azure: Azure, make_vm: MakeVm, needs: int, runs: bool) -> None:
    vm = make_vm(hooks={"prepare/10-a": {"needs": needs}})
    vm.hook("prepare/10-a")
    vm.hook("prepare/20-b")
    event = azure.schedule("Reboot", notice=60)
    vm.poll()
    assert vm.steps(event) == [("prepare/10-a", "ok" if runs else "skipped"), ("prepare/20-b", "ok")]
    # a hook that was left out is not done, and is not taken for it
    assert bool(azure.approvals()) == runs


def test_a_hook_gets_its_own_time_out(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(hooks={"10-a": {"timeout": 30}})
    vm.hook("prepare/10-a", HANGS)
    vm.hook("prepare/20-b")
    event = azure.schedule("Reboot")
    vm.poll()
    assert vm.marks()[0].hook_seconds == 30
    vm.poll(after=29)
    assert vm.ran() == ["prepare/10-a"]
    vm.poll(after=1)
    assert vm.steps(event) == [("prepare/10-a", "timeout"), ("prepare/20-b", "ok")]
    assert "longer than its 30 s" in vm.record(event).steps[0].reason


@pytest.mark.parametrize("stage", ["emergency", "started", "recover"])
def test_other_stages_have_time_outs_too(azure: Azure, make_vm: MakeVm, stage: str) -> None:
    vm = make_vm(hooks={"10-a": {"timeout": 30}})
    vm.hook(stage + "/10-a", HANGS)
    how = {"starts": "automatic_approval"} if stage == "emergency" else {}
    event = azure.schedule("Reboot", started_for=3600 if stage != "recover" else 1, **how)
    vm.poll()
    vm.poll(after=5)
    vm.poll()
    assert vm.ran() == [stage + "/10-a"]
    vm.poll(after=31)
    assert vm.steps(event) == [(stage + "/10-a", "timeout")]


def test_what_ignores_term_is_killed_with_all_it_started(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(hooks={"10-a": {"timeout": 30}}, kill_after=0.2)
    vm.hook("prepare/10-a", '(trap "" TERM; exec sleep 1000) & echo $! > "$MARKS.child"; ' + IGNORES_TERM)
    event = azure.schedule("Reboot")
    vm.poll()
    vm.poll(after=30)
    assert vm.steps(event) == [("prepare/10-a", "timeout")] and vm.record(event).steps[0].exit_status == -9
    child = int((vm.folder / "marks.child").read_text())
    vm.wait(lambda: not is_alive(child))


@pytest.mark.parametrize("action", ["stop", "finish"])
def test_when_started_decides_about_a_preparation_that_still_runs(azure: Azure, make_vm: MakeVm, action: str) -> None:
    vm = make_vm(when_started=action)
    for hook in ("prepare/20-b", "started/10-a", "recover/10-a"):
        vm.hook(hook)
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", started_for=600)
    vm.poll()
    azure.approve(event)
    vm.poll(after=2)
    if action == "finish":
        assert vm.steps(event) == [("prepare/10-a", "running")]
        vm.release("prepare/10-a")
        vm.settle()
    assert vm.steps(event)[0] == ("prepare/10-a", "ok" if action == "finish" else "stopped")
    assert vm.ran()[-1] == "started/10-a" and azure.requests("POST") == []


def test_finish_lets_a_preparation_go_on_after_the_start_until_the_end_of_the_event(
    azure: Azure, make_vm: MakeVm
) -> None:
    vm = make_vm(when_started="finish")
    vm.hook("prepare/10-a", HANGS)
    vm.hook("recover/10-a")
    event = azure.schedule("Reboot", notice=60, started_for=60)
    vm.poll()
    azure.approve(event)
    vm.poll(after=20)
    assert vm.steps(event) == [("prepare/10-a", "running")]
    azure.complete(event)
    vm.poll()
    assert vm.steps(event) == [("prepare/10-a", "stopped"), ("recover/10-a", "ok")]


@pytest.mark.parametrize("which", ["hook", "folder"])
def test_a_hook_that_others_can_write_is_not_run_and_counts_as_failed(
    azure: Azure, make_vm: MakeVm, which: str
) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a")
    vm.hook("prepare/20-b")
    (vm.hooks_directory / "prepare" / ("10-a" if which == "hook" else "")).chmod(0o777)
    event = azure.schedule("Reboot")
    vm.poll()
    assert vm.ran() == (["prepare/20-b"] if which == "hook" else []) and azure.requests("POST") == []
    assert vm.steps(event)[0][1] == "failed" and "can be written by others" in vm.record(event).steps[0].reason


def test_a_hook_that_cannot_be_started_has_failed(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a")
    (vm.hooks_directory / "prepare/10-a").write_text("#!/no/such/interpreter\n")
    vm.hook("prepare/20-b")
    event = azure.schedule("Reboot")
    vm.poll()
    assert vm.steps(event) == [("prepare/10-a", "failed"), ("prepare/20-b", "ok")] and azure.requests("POST") == []
    assert "interpreter" in vm.record(event).steps[0].reason


def test_the_timeline_keeps_what_hooks_print(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a", TALKS)
    event = azure.schedule("Reboot")
    vm.poll()
    assert vm.record(event).steps[0].output == f"speaking of {event}\nand of trouble\n"


def test_hook_gets_the_event_by_environment_and_by_stdin(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    vm.hook("recover/10-a", KEEPS_INPUT)
    vm.hook("prepare/10-a", KEEPS_INPUT)
    event = azure.schedule(
        "Reboot", "vm1", "vm2", description="Host server is undergoing maintenance.", source="User", duration=9
    )
    vm.poll()
    given = json.loads((vm.folder / "marks.input.prepare.10-a").read_text())
    assert given["event_id"] == event and given["resources"] == ["vm1", "vm2"] and given["stage"] == "prepare"
    assert given["seconds_left"] == 900 and given["resource_name"] == "vm1"
    lines = (vm.folder / "marks.environment.prepare.10-a").read_text().splitlines()
    found = dict(line.split("=", 1) for line in lines)
    expected = {
        "EVENT_ID": event,
        "EVENT_TYPE": "Reboot",
        "EVENT_STATUS": "Scheduled",
        "EVENT_SOURCE": "User",
        "EVENT_RESOURCES": "vm1 vm2",
        "EVENT_DESCRIPTION": "Host server is undergoing maintenance.",
        "EVENT_SECONDS_LEFT": "900",
        "EVENT_DURATION": "9",
        "EVENT_STAGE": "prepare",
        "EVENT_OUTCOME": "",
        "EVENT_RESOURCE": "vm1",
        "HOOK_SECONDS": "600",
    }
    assert expected.items() <= found.items()
    # the shell adds some of its own
    others = {
        "EVENT_NOT_BEFORE",
        "EVENT_FIRST_SEEN",
        "EVENT_RESOURCE_TYPE",
        "PATH",
        "LANG",
        "HOME",
        "MARKS",
        "PWD",
        "_",
        "SHLVL",
        "OLDPWD",
    }
    assert set(found) - set(expected) <= others
    azure.complete(event)
    vm.poll()
    assert json.loads((vm.folder / "marks.input.recover.10-a").read_text())["outcome"] == "unknown"


def test_whatever_names_hold_they_do_no_harm(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a", KEEPS_INPUT)
    evil = "$(touch /tmp/x)\n; rm -rf ../.. \u202e\ud800 \u0000 \x1b[2J"
    azure.show(azure.entry(EventId="../../" + evil, Description=evil, Resources=["vm1", evil], EventSource="User"))
    vm.poll()
    vm.poll(after=1)
    (record,) = vm.engine.records
    assert [step.state for step in record.steps] == ["ok"]
    variables = (vm.folder / "marks.environment.prepare.10-a").read_text().splitlines()
    assert [line for line in variables if "=" not in line] == []
    assert "\x1b" not in vm.log.getvalue() and "\x00" not in vm.log.getvalue()
    assert [
        line
        for line in vm.log.getvalue().splitlines()
        if line.split()[0] not in ("info", "notice", "warning", "error", "debug")
    ] == []
    assert json.loads((vm.folder / "marks.input.prepare.10-a").read_text())["resources"][0] == "vm1"


def test_no_hooks_at_all_is_no_trouble(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    event = azure.schedule("Reboot", started_for=30)
    vm.poll()
    assert azure.approvals() == [("vm1", event)]
    vm.poll(after=2)
    vm.poll(after=31)
    assert vm.engine.records == [] and vm.record(event).outcome == "completed" and vm.record(event).steps == []


def test_a_reload_brings_other_hooks_and_leaves_what_runs(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    vm.hook("prepare/20-b")
    vm.configure(policy="observe")
    vm.reload()
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"]
    vm.release("prepare/10-a")
    vm.settle()
    assert vm.ran() == ["prepare/10-a", "prepare/20-b"] and azure.requests("POST") == []
    assert [state for _hook, state in vm.steps(event)] == ["ok", "ok"]
