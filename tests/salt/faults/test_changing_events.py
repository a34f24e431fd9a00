# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""An event changes, is cancelled, or appears during another one."""

from __future__ import annotations

import pytest

from support.salt.azure import Azure
from support.salt.fleet import UNMANAGED, Fleet

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("faults-events")]


def test_two_events_of_different_minions(fleet: Fleet, azure: Azure) -> None:
    first = azure.announce("vm1", kind="Freeze", notice="4h")
    second = azure.announce("vm2", kind="Freeze", notice="4h")
    for event_id in (first, second):
        fleet.wait_for(event_id, "approved")
    azure.simulator.advance(2)
    azure.end(first)
    fleet.wait_for(first, "recovered")
    fleet.check(first, vm1=(1, 1), vm2=(1, 0))
    fleet.finish(second)
    fleet.check(second, vm1=(1, 1), vm2=(1, 1))


def test_cancelled_in_the_middle_of_a_preparation(fleet: Fleet, azure: Azure) -> None:
    fleet.step_logs["vm2"].pause()
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.step_logs["vm1"].wait("prepare")
    fleet.step_logs["vm2"].wait("begin")
    azure.cancel(event_id)
    fleet.wait_for(event_id, "over")
    fleet.step_logs["vm2"].go_on()
    fleet.wait_for(event_id, "recovered")
    fleet.check(event_id, 0, vm1=(1, 1), vm2=(1, 1))


def test_not_before_that_moves_twice(fleet: Fleet, azure: Azure) -> None:
    fleet.step_logs["vm2"].pause()
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.step_logs["vm2"].wait("begin")
    before = fleet.row(event_id, "vm1")["not_before"]
    azure.change(event_id, notice="3h")
    azure.wait_for_polls("vm1")
    azure.change(event_id, notice="5h")
    azure.wait_for_polls("vm1")
    fleet.step_logs["vm2"].go_on()
    fleet.wait_for(event_id, "approved")
    assert fleet.row(event_id, "vm1")["not_before"] > before
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))


def test_vm_added_during_the_preparation(fleet: Fleet, azure: Azure) -> None:
    fleet.step_logs["vm2"].pause()
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.step_logs["vm2"].wait("begin")
    with fleet.measured("the new one prepared"):
        azure.change(event_id, resources=["vm1", "vm2", "vm3"])
        fleet.step_logs["vm3"].wait("prepare")
    fleet.check(event_id, 0, vm1=(1, 0), vm2=(0, 0), vm3=(1, 0))
    fleet.step_logs["vm2"].go_on()
    fleet.wait_for(event_id, "approved")
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1), vm3=(1, 1))


def test_vm_added_after_the_approval(fleet: Fleet, azure: Azure) -> None:
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.wait_for(event_id, "approved")
    with fleet.measured("the new one prepared"):
        azure.change(event_id, resources=["vm1", "vm2", "vm3"])
        fleet.step_logs["vm3"].wait("prepare")
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1), vm3=(1, 1))


def test_resource_that_is_no_minion(fleet: Fleet, azure: Azure) -> None:
    event_id = azure.announce("vm1", UNMANAGED, kind="Freeze", notice="4h")
    assert f"{UNMANAGED}: no minion has this VM" in fleet.wait_for(event_id, "held").data["reason"]
    assert fleet.row(event_id, UNMANAGED)["why_not"] == "no minion has this VM"
    azure.wait_for_polls("vm1")
    azure.end(event_id)
    fleet.wait_for(event_id, "recovered")
    fleet.check(event_id, 0, vm1=(1, 1))
