# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Recovery: after all events that need it, once, also when it was cut short; and runs that outlive the daemon."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from azure_scheduled_events import ImdsRefused
from hook_runner.reporting.metrics import Metrics
from hook_runner.reporting.status import is_healthy, to_text
from support.daemon.engine_harness import AFTER_PREPARE, EngineHarness
from support.daemon.hook_scripts import FAILS, HANGS
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., EngineHarness]


@pytest.mark.parametrize("restarted", [False, True])
def test_recover_waits_for_all_events_that_prepared_the_same_hook_and_runs_once(
    azure: Azure, vm: EngineHarness, restarted: bool
) -> None:
    first, second, third = (azure.schedule("Freeze", hold=True) for _event in range(3))
    vm.poll()
    assert vm.ran() == ["prepare/10-a"] * 3
    azure.complete(first)
    vm.poll()
    if restarted:
        vm.restart("reboot")
    azure.complete(second)
    vm.poll(after=60)
    assert vm.ran("recover") == []
    assert f"waits for the end of event {third}" in vm.status()["events"][0]["waiting"]
    azure.complete(third)
    vm.poll(after=1)
    vm.poll(after=1)
    assert vm.ran("recover") == ["recover/10-a"] and vm.engine.records == []
    assert sorted(vm.steps(event)[-1][1] for event in (first, second, third)) == ["ok", "skipped", "skipped"]


def test_recover_does_not_wait_for_events_that_did_not_prepare_its_hook(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(hooks={"10-a": {"types": ["Reboot"]}, "20-b": {"types": ["Freeze"]}})
    for hook in ("prepare/10-a", "prepare/20-b", "recover/10-a", "recover/20-b"):
        vm.hook(hook)
    first = azure.schedule("Reboot", hold=True)
    azure.schedule("Freeze", hold=True)
    vm.poll()
    azure.complete(first)
    vm.poll()
    assert vm.ran("recover") == ["recover/10-a"]


def test_recover_of_another_number_does_not_wait_for_events_without_its_pair(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(hooks={"21-haproxy": {"types": ["Freeze"]}})
    for name in ("prepare/21-haproxy", "prepare/22-nginx", "recover/79-haproxy"):
        vm.hook(name)
    freeze = azure.schedule("Freeze", hold=True)
    vm.poll()
    azure.schedule("Reboot", hold=True)
    vm.poll(after=1)
    azure.complete(freeze)
    vm.poll(after=1)
    # the reboot is prepared by nginx, and not by haproxy
    assert vm.ran("recover") == ["recover/79-haproxy"]


def test_recover_waits_for_an_event_whose_hook_has_a_new_number_since(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(hooks={"22-haproxy": {"types": ["Freeze"]}})
    vm.hook("prepare/21-haproxy")
    vm.hook("recover/79-haproxy")
    reboot = azure.schedule("Reboot", hold=True)
    vm.poll()
    freeze = azure.schedule("Freeze", hold=True)
    vm.poll(after=1)
    (vm.hooks_directory / "prepare" / "21-haproxy").rename(vm.hooks_directory / "prepare" / "22-haproxy")
    vm.reload()
    azure.complete(freeze)
    vm.poll(after=1)
    assert vm.ran("recover") == []
    azure.complete(reboot)
    vm.poll(after=1)
    assert vm.ran("recover") == ["recover/79-haproxy"]


def test_prepare_waits_for_a_running_recover_of_its_pair_only(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm()
    for name in ("prepare/21-haproxy", "prepare/22-nginx", "recover/78-nginx"):
        vm.hook(name)
    vm.hook("recover/79-haproxy", HANGS)
    azure.complete(_scheduled(azure, vm))
    vm.poll(after=1)
    second = _scheduled(azure, vm)
    assert vm.ran("prepare").count("prepare/21-haproxy") == 1 and ("vm1", second) not in azure.approvals()
    vm.release("recover/79-haproxy")
    vm.poll(after=1)
    assert vm.ran("prepare").count("prepare/21-haproxy") == 2


def _scheduled(azure: Azure, vm: EngineHarness) -> str:
    event = azure.schedule("Reboot", hold=True)
    vm.poll(after=1)
    return event


def test_a_recovery_that_was_cut_short_is_run_again(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("recover/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    azure.complete(event)
    vm.poll()
    vm.restart("reboot")
    vm.poll(after=30)
    vm.release("recover/10-a")
    vm.settle()
    assert vm.steps(event)[1:] == [("recover/10-a", "interrupted"), ("recover/10-a", "ok")] and vm.engine.records == []


def test_hooks_survive_a_restart_of_the_daemon(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    vm.restart("kill")
    vm.poll(after=30)
    assert vm.ran() == ["prepare/10-a"] and "hook-adopted" in vm.timeline(event)
    vm.release("prepare/10-a")
    vm.settle()
    assert vm.steps(event) == [("prepare/10-a", "ok")] and azure.approvals() == [("vm1", event)]


def test_a_hook_that_ended_while_no_daemon_lived_is_accounted_for(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    vm.release("prepare/10-a", 4)
    vm.restart("kill")
    vm.poll(after=30)
    assert vm.steps(event) == [("prepare/10-a", "failed")] and vm.record(event).steps[0].exit_status == 4
    assert vm.ran() == ["prepare/10-a"] and azure.requests("POST") == []


def test_recovery_runs_although_the_preparation_failed(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("prepare/10-a", FAILS)
    event = azure.schedule("Reboot", cancel_after=60)
    vm.poll()
    vm.poll(after=61)
    assert vm.steps(event) == [("prepare/10-a", "failed"), ("recover/10-a", "ok")]


def test_recovery_that_fails_for_long_keeps_few_outputs(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("recover/10-a", "echo trouble; " + FAILS)
    event = azure.schedule("Reboot", cancel_after=60)
    vm.poll()
    vm.poll(after=61)
    for _attempt in range(11):
        vm.poll(after=601)
    vm.restart("kill")
    runs = vm.record(event).runs_in_stage("recover")
    assert [bool(run.output) for run in runs] == [True] + [False] * 6 + [True] * 5
    assert {run.state for run in runs} == {"failed"}


def test_failed_recovery_is_repeated_with_growing_pauses_until_it_succeeds(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("recover/10-a", FAILS)
    event = azure.schedule("Reboot", cancel_after=60)
    vm.poll()
    vm.poll(after=61)
    for seconds, runs in ((9, 1), (1, 2), (19, 2), (1, 3)):
        vm.poll(after=seconds)
        assert len(vm.ran("recover")) == runs
    (shown,) = vm.status()["events"]
    assert shown["not_recovered"] == ["10-a"] and 0 < shown["next_attempt"] <= 40 and not is_healthy(vm.status())
    assert "NOT RECOVERED" in to_text(vm.status())
    vm.restart("kill")
    vm.poll(after=1)
    assert len(vm.ran("recover")) == 3 and vm.status()["events"][0]["not_recovered"] == ["10-a"]
    vm.hook("recover/10-a")
    vm.poll(after=40)
    assert len(vm.ran("recover")) == 4 and vm.record(event).closed_at is not None and is_healthy(vm.status())
    assert vm.times_logged("closed: recovered; outcome") == 1


def test_failed_recovery_is_repeated_at_most_every_ten_minutes_without_end(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("recover/10-a", FAILS)
    azure.schedule("Reboot", cancel_after=60)
    vm.poll()
    vm.poll(after=61)
    for _attempt in range(30):
        vm.poll(after=600)
    assert len(vm.ran("recover")) == 31


def test_recovery_is_repeated_at_once_when_an_operator_asks_for_it(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("recover/10-a", FAILS)
    event = azure.schedule("Reboot", cancel_after=60)
    vm.poll()
    vm.poll(after=61)
    vm.hook("recover/10-a")
    asked = vm.engine.recover_manually(event.lower(), "root", give_up=False)
    vm.settle()
    assert asked is not None and asked.accepted and vm.ran("recover") == ["recover/10-a"] * 2
    assert vm.record(event).closed_at is not None and vm.engine.recover_manually(event, "root", give_up=False) is None


def test_recovery_that_an_operator_gives_up_is_closed_with_its_failure(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("recover/10-a", FAILS)
    event = azure.schedule("Reboot", cancel_after=60)
    vm.poll()
    early = vm.engine.recover_manually(event, "root", give_up=True)
    vm.poll(after=61)
    late = vm.engine.recover_manually(event, "root", give_up=True)
    assert early is not None and not early.accepted and late is not None and late.accepted
    vm.restart("kill")
    vm.poll(after=3600)
    assert vm.ran("recover") == ["recover/10-a"] and vm.record(event).closed_at is not None
    assert vm.timeline(event)[-3:] == ["given-up", "hook-ended", "closed"]


@pytest.mark.parametrize("how", ["kill", "reboot"])
def test_recovery_that_is_always_interrupted_is_not_given_up(azure: Azure, vm: EngineHarness, how: str) -> None:
    vm.hook("recover/10-a", HANGS)
    event = azure.schedule("Reboot", cancel_after=60)
    vm.poll()
    vm.poll(after=61)
    for _attempt in range(4):
        vm.end_processes()
        vm.restart(how)
        vm.poll(after=1)
        vm.poll(after=700)
    assert len(vm.ran("recover")) == 5 and vm.record(event).closed_at is None
    vm.release("recover/10-a")
    vm.settle()
    assert vm.record(event).closed_at is not None


def test_failed_recovery_waits_for_the_next_event_and_serves_both(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("recover/10-a", FAILS)
    first = azure.schedule("Reboot", cancel_after=60)
    vm.poll()
    vm.poll(after=61)
    second = azure.schedule("Reboot", cancel_after=60)
    vm.hook("recover/10-a")
    vm.poll(after=30)
    assert vm.ran("recover") == ["recover/10-a"] and vm.ran("prepare") == ["prepare/10-a"] * 2
    due_in = vm.engine.due_in()
    assert due_in is not None and due_in >= 1
    vm.poll(after=31)
    vm.poll(after=1)
    assert vm.ran("recover") == ["recover/10-a"] * 2
    assert all(vm.record(event).closed_at is not None for event in (first, second))


def test_an_id_that_comes_back_during_its_recovery_waits_for_that(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("recover/10-a", HANGS)
    azure.show(azure.entry())
    vm.poll()
    azure.show()
    vm.poll(after=1)
    azure.show(azure.entry())
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"]
    vm.release("recover/10-a")
    vm.settle()
    assert vm.ran() == ["prepare/10-a", "recover/10-a", "prepare/10-a"]
    assert [record.occurrence for record in vm.engine.records] == [2]


def test_failed_recovery_waits_while_its_id_is_listed_again_although_the_reboot_undid_the_preparation(
    azure: Azure, vm: EngineHarness
) -> None:
    vm.hook("recover/10-a", FAILS)
    azure.show(azure.entry())
    vm.poll()
    azure.show()
    vm.poll(after=1)
    azure.show(azure.entry())
    vm.poll(after=89)
    before = vm.ran("recover")
    assert vm.ran()[-1] == "prepare/10-a" and [record.occurrence for record in vm.engine.records] == [1, 2]
    vm.hook("recover/10-a")
    vm.restart("reboot")
    azure.show(azure.entry(EventStatus="Started", NotBefore=""))
    vm.poll(after=700)
    assert vm.ran("recover") == before
    azure.show()
    vm.poll(after=1)
    assert vm.ran("recover") == [*before, "recover/10-a"] and vm.engine.records == []


def test_id_that_comes_back_after_a_reboot_is_prepared_again(azure: Azure, vm: EngineHarness) -> None:
    vm.configure(policy=AFTER_PREPARE)
    other = azure.entry(EventId="other", NotBefore=azure.in_seconds(900), Resources=["vm1", "vm2"])
    azure.show(other, azure.entry(EventId="back", NotBefore=azure.in_seconds(900), Resources=["vm1", "vm2"]))
    vm.poll()
    azure.show(other)
    vm.poll(after=1)
    assert vm.ran() == ["prepare/10-a"] * 2  # the recovery waits for the other event
    vm.restart("reboot")
    azure.show(other, azure.entry(EventId="back", NotBefore=azure.in_seconds(900)))
    vm.poll(after=10)
    assert vm.ran() == ["prepare/10-a"] * 4


def test_recovery_by_a_refused_hook_stays_open(azure: Azure, vm: EngineHarness) -> None:
    (vm.hooks_directory / "recover/10-a").chmod(0o777)
    event = azure.schedule("Reboot", cancel_after=60)
    vm.poll()
    vm.poll(after=61)
    assert vm.steps(event)[-1] == ("recover/10-a", "failed") and vm.status()["events"][0]["not_recovered"] == ["10-a"]


def test_run_whose_unit_is_stopped_is_repeated_but_not_for_ever(azure: Azure, vm: EngineHarness) -> None:
    vm.hook("prepare/10-a", HANGS)
    event = azure.schedule("Reboot", hold=True)
    vm.poll()
    for attempt in range(1, 4):
        assert vm.ran() == ["prepare/10-a"] * attempt
        vm.end_processes()
        vm.poll(after=1)
    assert [state for _hook, state in vm.steps(event)] == ["interrupted"] * 3
    assert vm.engine.preparation_state(vm.record(event)) == "failed" and azure.requests("POST") == []


def test_metrics_count_refused_approvals_and_events_that_are_not_recovered_from(
    azure: Azure, vm: EngineHarness
) -> None:
    vm.hook("recover/10-a", FAILS)
    azure.schedule("Reboot", cancel_after=60)
    vm.poll()
    vm.poll(after=61)
    metrics = Metrics()
    metrics.approval_answered(None)
    metrics.approval_answered(ImdsRefused("no", "", 403, retryable=False))
    metrics.update(vm.engine, vm.health)
    lines = metrics.as_text().decode().splitlines()
    assert "azure_scheduled_events_not_recovered 1.0" in lines
    for result in ("accepted", "status-403"):
        assert f'azure_scheduled_events_approval_answers_total{{result="{result}"}} 1.0' in lines
