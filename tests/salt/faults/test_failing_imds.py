# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""IMDS refuses approvals, or gives no answer."""

from __future__ import annotations

import pytest

from support.salt.azure import Azure
from support.salt.fleet import VMS, Fleet

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("faults-imds")]


@pytest.mark.parametrize("status", [400, 500])
def test_approval_that_is_refused(fleet: Fleet, azure: Azure, status: int) -> None:
    azure.simulator.post("/faults", {"kind": "status", "status": status, "method": "POST"})
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.wait_for_reason(event_id, "vm1", str(status), column="withheld")
    fleet.check(event_id, 0, vm1=(1, 0), vm2=(1, 0))
    with fleet.measured("approved when it is not refused"):
        azure.simulator.delete("/faults")
        fleet.wait_for(event_id, "approved")
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))


@pytest.mark.parametrize(("kind", "requests"), [("unavailable", 5), ("hang", 2)])
def test_imds_that_gives_no_answer(fleet: Fleet, azure: Azure, kind: str, requests: int) -> None:
    """At the event, and for so many requests of each VM."""
    fault = azure.simulator.post("/faults", {"kind": kind, "vm": list(VMS)})["number"]
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    azure.wait_for_fault_hit(fault, "vm1", requests)
    azure.wait_for_fault_hit(fault, "vm2", requests)
    fleet.check(event_id, 0, vm1=(0, 0), vm2=(0, 0))
    with fleet.measured("approved when it answers"):
        azure.simulator.delete("/faults")
        fleet.wait_for(event_id, "approved")
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))
