# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Events that only advise (docs/policies.md, Advice), alone and beside interruptions."""

from __future__ import annotations

from support.daemon.hook_scripts import HANGS
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure

ADVICE = "SpotRebalanceRecommendation"


def test_advice_is_shown_and_starts_nothing(azure: Azure, vm: RunnerHarness) -> None:
    vm.configure(policy={"rules": [{"name": "always", "when": {}, "approve": "now"}]})
    advice = azure.entry(EventId="advice", EventType=ADVICE)
    azure.show(advice)
    vm.poll()
    vm.poll(after=60)
    assert vm.ran() == [] and azure.requests("POST") == []
    assert [each["event_type"] for each in vm.status()["events"]] == [ADVICE]
    azure.heal()
    preempt = azure.schedule("Preempt")
    listed = azure.entry(EventId=preempt, EventType="Preempt", NotBefore=azure.in_seconds(30))
    azure.show(advice, listed)
    vm.poll()
    assert vm.ran() == ["prepare/10-a"] and azure.approvals() == [("vm1", preempt)]
    azure.show(advice)
    vm.poll(after=5)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"]


def test_vm_is_recovered_although_its_event_only_advises_since(azure: Azure, vm: RunnerHarness) -> None:
    azure.show(azure.entry(EventType="Preempt"))
    vm.poll()
    azure.show(azure.entry(EventType=ADVICE))
    vm.poll(after=5)
    azure.show()
    vm.poll(after=5)
    assert vm.ran() == ["prepare/10-a", "recover/10-a"]


def test_advice_takes_no_time_of_an_interruption(azure: Azure, vm: RunnerHarness) -> None:
    vm.configure(hooks={"10-a": {"types": [ADVICE, "Preempt"]}})
    vm.hook("prepare/10-a", HANGS)
    preempt = azure.entry(EventId="preempt", EventType="Preempt", NotBefore=azure.in_seconds(900))
    azure.show(preempt)
    vm.poll()
    azure.show(preempt, azure.entry(EventId="advice", EventType=ADVICE, NotBefore=azure.in_seconds(60)))
    vm.poll(after=1)
    vm.poll(after=120)
    assert vm.steps("preempt") == [("prepare/10-a", "running")]
