# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The engine of a real master, with three minions that are not compromised, and a hostile one."""

from __future__ import annotations

import time
from typing import Any

import pytest

from support.salt.azure import Azure
from support.salt.fleet import Fleet
from support.salt.tree_minion import say, status_answer
from support.wait import wait_until

pytestmark = pytest.mark.xdist_group("engine")


def test_all_prepare_one_approves_once_and_all_recover(fleet: Fleet, azure: Azure) -> None:
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
    fleet.wait_for(event_id, "approved")
    assert fleet.counts("vm1", "vm2", "vm3") == [(1, 0), (1, 0), (0, 0)]
    azure.simulator.advance(2)
    azure.end(event_id)
    fleet.wait_for(event_id, "recovered")
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1), vm3=(0, 0))
    steps = [event.tag.rpartition("/")[2] for event in fleet.steps(event_id)]
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
def test_the_runner_shows_holds_and_releases(fleet: Fleet, azure: Azure) -> None:
    event_id = azure.announce("vm1", "unmanaged", kind="Freeze", notice="4h")
    assert "unmanaged: no minion has this VM" in fleet.wait_for(event_id, "held").data["reason"]
    rows = {row["vm"]: row for row in fleet.run("status", event_id)["rows"]}
    assert rows["vm1"]["prepared"] == "prepared" and rows["unmanaged"]["why_not"] == "no minion has this VM"
    fleet.run("hold", event_id)
    assert azure.approvals(event_id) == []
    fleet.run("release", event_id)
    fleet.run("approve", event_id, force=True)
    fleet.wait_for(event_id, "approved")
    assert len(azure.approvals(event_id)) == 1 and "forced" in fleet.run("status", event_id)["rows"][0]["approved"]


@pytest.mark.all
def test_two_events_of_one_minion_are_prepared_for_once(fleet: Fleet, azure: Azure) -> None:
    first = azure.announce("vm1", kind="Freeze", notice="4h")
    fleet.wait_for(first, "approved")
    second = azure.announce("vm1", "vm2", kind="Freeze", notice="5h")
    fleet.wait_for(second, "approved")
    azure.simulator.advance(2)
    azure.end(first)
    fleet.cluster.master.bus.wait("salt/beacon/vm1/azure_events/gone", event_id=first)
    assert fleet.counts("vm1") == [(1, 0)]
    azure.end(second)
    fleet.wait_for(second, "recovered")
    fleet.wait_for(first, "recovered")
    assert len(azure.approvals(first)) == 1
    fleet.check(second, vm1=(1, 1), vm2=(1, 1))


@pytest.mark.all
def test_minion_that_claims_the_vm_of_another_releases_nothing(fleet: Fleet, azure: Azure) -> None:
    """A1"""
    fleet.cluster.minions["vm3"].kill()
    event_id = azure.announce("vm2", "vm3", kind="Freeze", notice="4h")
    record = {
        "event_id": event_id,
        "state": "prepared",
        "this_boot": True,
        "why_not": "",
        "resources": [],
        "event_type": "Freeze",
    }
    say(fleet.hostile, status_answer("vm3", fleet.listed(event_id, "vm2", "vm3"), records=[record]))
    fleet.hint("a", event_id)
    fleet.step_logs["vm2"].wait("prepare")
    assert "vm3" in fleet.wait_for(event_id, "held").data["reason"] and azure.approvals(event_id) == []
    fleet.cluster.minions["vm3"].start()
    fleet.wait_for(event_id, "approved")
    fleet.check(event_id, vm2=(1, 0), vm3=(1, 0))


@pytest.mark.all
def test_false_started_does_not_prevent_other_minions_from_preparing(fleet: Fleet, azure: Azure) -> None:
    """A5"""
    event_id = azure.announce("vm2", kind="Freeze", notice="4h", hold=True)
    say(fleet.hostile, status_answer("vm2", fleet.listed(event_id, "vm2", status="Started")))
    fleet.hint("a", event_id)
    fleet.wait_for(event_id, "approved")
    fleet.check(event_id, vm2=(1, 0))


@pytest.mark.all
def test_bystander_withholds_an_approval_and_does_not_prolong_the_event(fleet: Fleet, azure: Azure) -> None:
    """A6"""
    fleet.step_logs["vm2"].pause()
    event_id = azure.announce("vm2", kind="Freeze", notice="4h")
    fleet.step_logs["vm2"].wait("begin")
    say(fleet.hostile, status_answer("a", fleet.listed(event_id, "vm2", "a")), prepare="failed")
    fleet.hint("a", event_id)
    wait_until(lambda: fleet.row(event_id, "a"), "the list of the bystander")
    fleet.step_logs["vm2"].go_on()
    fleet.step_logs["vm2"].wait("prepare")
    fleet.wait_for_reason(event_id, "vm2", "a: ", "withheld")
    azure.end(event_id)
    fleet.step_logs["vm2"].wait("recover")
    fleet.check(event_id, 0, vm2=(1, 1))


@pytest.mark.all
@pytest.mark.parametrize(
    "odd", [[], {"version": 2}, {"version": 1, "events": [{"event_id": None}]}], ids=["list", "other version", "no id"]
)
def test_invalid_answer_does_not_affect_other_minions(fleet: Fleet, azure: Azure, odd: Any) -> None:
    """A4"""
    say(fleet.hostile, odd)
    fleet.hint("a")
    event_id = azure.announce("vm1", kind="Freeze", notice="4h", hold=True)
    fleet.wait_for(event_id, "approved")
    fleet.check(event_id, vm1=(1, 0))


@pytest.mark.all
def test_forged_request_on_the_bus_does_nothing(fleet: Fleet, azure: Azure) -> None:
    event_id = azure.announce("vm1", "unmanaged", kind="Freeze", notice="4h", hold=True)
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
    assert fleet.run("status", event_id)["rows"][0]["approved"] is None and azure.approvals(event_id) == []


def test_forged_return_does_not_count(fleet: Fleet, azure: Azure) -> None:
    """A10: what another minion sends as the return of vm2 is on the bus, but not in the master's job cache."""
    fleet.step_logs["vm2"].pause()
    event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h", hold=True)
    fleet.step_logs["vm2"].wait("begin")
    fleet.step_logs["vm1"].wait("prepare")
    asked = [
        event
        for event in fleet.cluster.master.bus.events("salt/job/*/new", fun="azure_events.prepare")
        if "vm2" in event.data["minions"]
    ][-1]
    answer = {"version": 1, "event_id": event_id, "outcome": "prepared", "reason": ""}
    tag = f"salt/job/{asked.data['jid']}/ret/vm2"
    returned = {
        "id": "vm2",
        "jid": asked.data["jid"],
        "return": answer,
        "retcode": 0,
        "success": True,
        "fun": "azure_events.prepare",
    }
    fleet.cluster.minions["vm3"].ask("event.send", tag, returned)
    fleet.cluster.master.bus.wait(tag)
    assert fleet.run("status", event_id)["rows"][0]["approved"] is None and azure.approvals(event_id) == []
    fleet.step_logs["vm2"].go_on()
    fleet.wait_for(event_id, "approved")
