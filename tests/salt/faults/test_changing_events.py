# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""An event changes or is cancelled during its preparation or after its approval."""

from __future__ import annotations

import pytest

from support.salt.azure import Azure
from support.salt.fleet import Fleet

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("faults-events")]


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


def test_vm_added_during_the_preparation(fleet: Fleet, azure: Azure) -> None:
    fleet.step_logs["vm2"].pause()
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.step_logs["vm2"].wait("begin")
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
    azure.change(event_id, resources=["vm1", "vm2", "vm3"])
    fleet.step_logs["vm3"].wait("prepare")
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1), vm3=(1, 1))
