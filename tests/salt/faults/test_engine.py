# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The engine of a real master, with three minions that are not compromised, and a hostile one."""

from __future__ import annotations

import time

import pytest

from support.salt.fleet import UNMANAGED, Fleet
from support.salt_simulation.driver import done, event, record, status

pytestmark = pytest.mark.xdist_group("engine")


def test_all_prepare_one_approves_once_and_all_recover(fleet: Fleet) -> None:
    event_id = fleet.azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.wait_for(event_id, "approved")
    fleet.check(event_id, vm1=(1, 0), vm2=(1, 0), vm3=(0, 0))
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1), vm3=(0, 0))
    steps = [
        event.tag.rpartition("/")[2] for event in fleet.cluster.master.bus.events(f"salt/azure_events/{event_id}/*")
    ]
    # a master that sees the start is fast, and one that sees one minion prepared long before the
    # other lists the event holds it for a moment
    assert [step for step in steps if step not in ("started", "held")] == [
        "draining",
        "prepared",
        "approved",
        "over",
        "recovered",
    ]


@pytest.mark.all
def test_minion_that_claims_the_vm_of_another_releases_nothing(fleet: Fleet) -> None:
    fleet.cluster.minions["vm3"].kill()
    event_id = fleet.azure.announce("vm2", "vm3", kind="Freeze", notice="4h")
    listed = event("vm2", "vm3", event_id=event_id, kind="Freeze", not_before=None)
    fleet.say(fleet.hostile, status("vm3", listed, records=[record(event_id, kind="Freeze")]))
    fleet.forge("salt/beacon/a/azure_events/scheduled", {"event_id": event_id, "id": "a"})
    fleet.step_logs["vm2"].wait("prepare")
    assert "vm3" in fleet.wait_for(event_id, "held").data["reason"] and fleet.azure.approvals(event_id) == []
    fleet.cluster.minions["vm3"].start()
    fleet.wait_for(event_id, "approved")
    fleet.check(event_id, vm2=(1, 0), vm3=(1, 0))


@pytest.mark.all
def test_forged_request_on_the_bus_does_nothing(fleet: Fleet) -> None:
    event_id = fleet.azure.announce("vm1", UNMANAGED, kind="Freeze", notice="4h", hold=True)
    fleet.wait_for(event_id, "held")
    forged = {
        "request_id": "1",
        "do": "approve",
        "event_id": event_id,
        "force": True,
        "by": "root",
        "time": time.time(),
        "signature": "0" * 64,
    }
    fleet.forge("azure_events/request/1", forged)
    assert fleet.row(event_id, "vm1")["approved"] is None and fleet.azure.approvals(event_id) == []


def test_forged_return_does_not_count(fleet: Fleet) -> None:
    """What another minion sends as the return of vm2 is on the bus, but not in the master's job cache."""
    fleet.step_logs["vm2"].pause()
    event_id = fleet.azure.announce("vm1", "vm2", kind="Freeze", notice="4h", hold=True)
    fleet.step_logs["vm2"].wait("begin")
    fleet.step_logs["vm1"].wait("prepare")
    asked = [
        event
        for event in fleet.cluster.master.bus.events("salt/job/*/new", fun="azure_events.prepare")
        if "vm2" in event.data["minions"]
    ][-1]
    tag = f"salt/job/{asked.data['jid']}/ret/vm2"
    returned = {
        "id": "vm2",
        "jid": asked.data["jid"],
        "return": done("prepared", event_id=event_id, kind="Freeze"),
        "retcode": 0,
        "success": True,
        "fun": "azure_events.prepare",
    }
    fleet.cluster.minions["vm3"].ask("event.send", tag, returned)
    fleet.cluster.master.bus.wait(tag)
    assert fleet.row(event_id, "vm1")["approved"] is None and fleet.azure.approvals(event_id) == []
    fleet.step_logs["vm2"].go_on()
    fleet.wait_for(event_id, "approved")
