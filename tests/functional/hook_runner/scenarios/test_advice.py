# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Events that only advise (docs/policies.md, Advice), alone and beside interruptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.daemon.engine_harness import EngineHarness
from support.daemon.hook_scripts import HANGS
from support.daemon.simulated_azure import Azure

MakeVm = Callable[..., EngineHarness]

ADVICE = "SpotRebalanceRecommendation"
# approves whatever it may
ALWAYS = {"rules": [{"name": "always", "when": {}, "approve": "now"}]}


def test_advice_is_shown_and_starts_nothing(azure: Azure, vm: EngineHarness) -> None:
    vm.configure(policy=ALWAYS)
    azure.show(azure.entry(EventId="advice", EventType=ADVICE))
    vm.poll()
    vm.poll(after=60)
    assert vm.ran() == [] and azure.requests("POST") == []
    assert vm.record("advice").event.event_type == ADVICE
    azure.heal()
    preempt = azure.schedule("Preempt")
    listed = azure.entry(EventId=preempt, EventType="Preempt", NotBefore=azure.in_seconds(30))
    azure.show(azure.entry(EventId="advice", EventType=ADVICE), listed)
    vm.poll()
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", preempt)]
    azure.show()
    vm.poll(after=5)
    assert vm.ran("recover") == ["recover/10-a"]


def test_advice_is_followed_by_hooks_and_rules_that_name_it(azure: Azure, vm: EngineHarness) -> None:
    rule = {"name": "advice", "when": {"type": ADVICE}, "approve": "after_prepare"}
    vm.configure(policy={"rules": [rule]}, hooks={"10-a": {"types": [ADVICE]}})
    azure.show(azure.entry(EventId="advice", EventType=ADVICE))
    vm.poll()
    # the simulator does not know the event, and refuses
    assert vm.ran() == ["prepare/10-a"] and len(azure.requests("POST")) == 1


@pytest.mark.parametrize(
    "hooks",
    [{}, {"prepare/10-a": {"types": [ADVICE, "Preempt"]}}, {"10-a": {"types": ["Preempt"]}}],
    ids=["all types", "prepare hook with types", "both with types"],
)
def test_vm_is_recovered_although_its_event_only_advises_since(
    azure: Azure, vm: EngineHarness, hooks: dict[str, Any]
) -> None:
    vm.configure(hooks=hooks)
    azure.show(azure.entry(EventType="Preempt"))
    vm.poll()
    azure.show(azure.entry(EventType=ADVICE))
    vm.poll(after=5)
    azure.show()
    vm.poll(after=5)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"]


def test_prepare_hook_alone_names_the_advice_and_its_pair_recovers(azure: Azure, vm: EngineHarness) -> None:
    vm.configure(hooks={"prepare/10-a": {"types": [ADVICE]}})
    azure.show(azure.entry(EventType=ADVICE))
    vm.poll()
    azure.show()
    vm.poll(after=5)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"]


@pytest.mark.parametrize("not_before", [0, 60])
def test_advice_takes_no_time_of_an_interruption(azure: Azure, make_vm: MakeVm, not_before: int) -> None:
    vm = make_vm(hooks={"10-a": {"types": [ADVICE, "Preempt"]}})
    vm.hook("prepare/10-a", HANGS)
    preempt = azure.entry(EventId="preempt", EventType="Preempt", NotBefore=azure.in_seconds(900))
    azure.show(preempt)
    vm.poll()
    near = azure.in_seconds(not_before) if not_before else ""
    azure.show(preempt, azure.entry(EventId="advice", EventType=ADVICE, NotBefore=near))
    vm.poll(after=1)
    vm.poll(after=120)
    assert "shortened" not in vm.timeline("preempt")
    assert [mark.event_id for mark in vm.marks("begin")] == ["preempt"]


def test_hook_that_runs_for_an_advice_runs_again_for_a_preempt(azure: Azure, make_vm: MakeVm) -> None:
    vm = make_vm(hooks={"10-a": {"types": [ADVICE, "Preempt"]}})
    vm.hook("prepare/10-a", HANGS)
    advice = azure.entry(EventId="advice", EventType=ADVICE, NotBefore="")
    azure.show(advice)
    vm.poll()
    azure.show(advice, azure.entry(EventId="preempt", EventType="Preempt", NotBefore=azure.in_seconds(30)))
    vm.poll(after=1)
    vm.hook("prepare/10-a")
    vm.release("prepare/10-a")
    vm.settle()
    assert [mark.event_id for mark in vm.marks("begin")] == ["advice", "preempt"]
    assert vm.steps("preempt") == [("prepare/10-a", "ok")] == vm.steps("advice")


def test_rule_that_holds_everything_holds_an_advice(azure: Azure, vm: EngineHarness) -> None:
    rules = [{"name": "nothing by itself", "when": {}, "hold": True}, {"when": {"type": ADVICE}, "approve": "now"}]
    vm.configure(policy={"rules": rules}, hooks={"10-a": {"types": [ADVICE]}})
    azure.show(azure.entry(EventType=ADVICE))
    vm.poll()
    vm.poll(after=60)
    assert vm.ran() == [] and azure.requests("POST") == []
