# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""NotBefore has passed, and the event is still Scheduled."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from support.daemon.engine_harness import Rig
from support.daemon.hook_scripts import HANGS
from support.daemon.simulated_azure import Azure

MakeRig = Callable[..., Rig]


def test_hooks_have_the_minimum_budget_when_not_before_has_passed(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(minimum_budget=12, kill_after=1)
    me.hook("prepare/10-a", HANGS)
    me.hook("prepare/20-b")
    azure.show(azure.entry(NotBefore=azure.in_seconds(-5)))
    me.look()
    assert me.marks()[0].hook_seconds == 12
    me.look(after=11)
    assert me.ran() == ["prepare/10-a"]
    me.look(after=2)
    event = azure.entry()["EventId"]
    assert me.steps(event) == [("prepare/10-a", "timeout"), ("prepare/20-b", "ok")] and azure.requests("POST") == []


def test_late_preparation_ends_when_the_event_starts(azure: Azure, me: Rig) -> None:
    me.hook("prepare/10-a", HANGS)
    azure.show(azure.entry(NotBefore=azure.in_seconds(-5)))
    me.look()
    azure.show(azure.entry(NotBefore="", EventStatus="Started"))
    me.look(after=1)
    assert me.steps(azure.entry()["EventId"])[0] == ("prepare/10-a", "stopped")


@pytest.mark.parametrize("minutes", [20, -20])
def test_preparation_runs_where_the_clocks_are_ahead_of_not_before(azure: Azure, me: Rig, minutes: int) -> None:
    azure.fault("date-skew", skew=f"{int(minutes)}m")
    me.wall_is_off = timedelta(minutes=minutes)
    event = azure.schedule("Reboot", hold=True)
    me.look()
    assert me.steps(event) == [("prepare/10-a", "ok")] and azure.approvals() == [("vm1", event)]


def test_hooks_left_out_for_lack_of_time_run_when_the_event_does_not_start(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(kill_after=1)
    me.hook("prepare/10-a", HANGS)
    me.hook("prepare/20-b")
    azure.show(azure.entry(NotBefore=azure.in_seconds(30)))
    me.look()
    me.look(after=26)
    event = azure.entry()["EventId"]
    assert me.steps(event) == [("prepare/10-a", "timeout"), ("prepare/20-b", "skipped")]
    me.look(after=5)
    assert me.ran() == ["prepare/10-a", "prepare/20-b"] and azure.requests("POST") == []


def test_hook_that_needs_more_than_the_minimum_is_left_out_once(azure: Azure, make_rig: MakeRig) -> None:
    me = make_rig(hooks={"10-a": {"needs": 60}})
    me.hook("prepare/10-a")
    azure.show(azure.entry(NotBefore=azure.in_seconds(-5)))
    for _look in range(3):
        me.look(after=1)
    assert me.steps(azure.entry()["EventId"]) == [("prepare/10-a", "skipped")]
