# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/reference/scheduled-events.md 8.4: approvals that are lost, refused or withheld."""

from __future__ import annotations

import pytest

from support.daemon.hook_scripts import FAILS
from support.daemon.runner_harness import RunnerHarness
from support.daemon.simulated_azure import Azure


@pytest.mark.parametrize("held", [True, False])
def test_t62_a_lost_answer_is_repeated_only_while_it_still_waits(azure: Azure, vm: RunnerHarness, held: bool) -> None:
    azure.fault("lost-answer", method="POST", **{"for": 1})
    event = azure.schedule("Reboot", hold=held)
    vm.poll()
    lost = azure.approvals()
    vm.poll(after=2)
    vm.poll(after=2)
    # a connection that turns out to be closed is asked twice by the client itself
    assert set(lost) == {("vm1", event)} and azure.approvals() == lost + [("vm1", event)] * held
    assert azure.starts(event) == (not held) and vm.ran("prepare") == ["prepare/10-a"]


def test_t68_a_failed_preparation_approves_nothing_and_is_recovered_from(azure: Azure, vm: RunnerHarness) -> None:
    vm.hook("prepare/10-a", FAILS)
    vm.hook("prepare/20-b")
    event = azure.schedule("Reboot", notice=60, started_for=60)
    vm.poll()
    assert vm.steps(event) == [("prepare/10-a", "failed"), ("prepare/20-b", "ok")]
    vm.poll(after=61)
    vm.poll(after=61)
    assert vm.ran()[2:] == ["started/10-a", "recover/10-a"] and azure.requests("POST") == []
    assert vm.maintenance(event).runs[0].reason == "exit status 3"
