# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The beacon's events on the master's bus, from the announcement of an event to its end."""

from __future__ import annotations

import pytest

from support.salt.azure import Azure
from support.salt.cluster import Cluster
from support.salt.fleet import SPARE, Fleet
from support.salt.minion import Minion
from support.wait import wait_until

pytestmark = pytest.mark.xdist_group("watching")

SHAPE = {
    "event_id",
    "event_type",
    "status",
    "resources",
    "resource_type",
    "not_before",
    "description",
    "source",
    "duration_seconds",
}
ABOUT_THE_CHANGE = {
    "change",
    "fields",
    "outcome",
    "resource_name",
    "incarnation",
    "sequence",
    "first_seen",
    "changed_at",
    "repeated",
    "id",
}


def test_event_is_sent_from_its_announcement_to_its_end(running: Fleet, spare: Minion) -> None:
    azure = running.azure
    event_id = azure.announce(SPARE, kind="Redeploy", source="User")
    scheduled = spare.wait_for_event("scheduled", event_id=event_id)
    assert set(scheduled) >= SHAPE | ABOUT_THE_CHANGE
    assert (scheduled["event_type"], scheduled["status"], scheduled["resources"]) == ("Redeploy", "Scheduled", [SPARE])
    assert (scheduled["id"], scheduled["resource_name"], scheduled["fields"]) == (SPARE, SPARE, [])
    azure.start(event_id)
    started = spare.wait_for_event("started", event_id=event_id)
    assert (
        started["status"] == "Started" and "status" in started["fields"] and started["sequence"] > scheduled["sequence"]
    )
    azure.end(event_id)
    gone = spare.wait_for_event("gone", event_id=event_id)
    assert gone["outcome"] == "completed" and gone["sequence"] > started["sequence"]


@pytest.mark.all
def test_canceled_event_is_sent_with_an_unknown_outcome(watching: Cluster, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    vm1 = watching.minions["vm1"]
    vm1.wait_for_event("scheduled", event_id=event_id)
    azure.cancel(event_id)
    assert vm1.wait_for_event("gone", event_id=event_id)["outcome"] == "unknown"


@pytest.mark.all
def test_moved_not_before_is_sent_with_the_changed_field(watching: Cluster, azure: Azure) -> None:
    event_id = azure.announce("vm1", notice="1h")
    vm1 = watching.minions["vm1"]
    vm1.wait_for_event("scheduled", event_id=event_id)
    azure.simulator.post(f"/events/{event_id}/change", {"notice": "2h"})
    assert vm1.wait_for_event("changed", event_id=event_id)["fields"] == ["not_before"]


@pytest.mark.all
def test_two_minions_each_send_the_events_that_affect_them(watching: Cluster, azure: Azure) -> None:
    both = azure.announce("vm1", "vm2", kind="Freeze")
    only_vm2 = azure.announce("vm2")
    for name in ("vm1", "vm2"):
        assert watching.minions[name].wait_for_event("scheduled", event_id=both)["resources"] == ["vm1", "vm2"]
    assert watching.minions["vm2"].wait_for_event("scheduled", event_id=only_vm2)["resource_name"] == "vm2"
    azure.wait_for_polls("vm1")
    assert watching.minions["vm1"].events(event_id=only_vm2) == []


@pytest.mark.all
def test_listed_event_is_repeated_with_the_same_number(watching: Cluster, azure: Azure) -> None:
    vm2 = watching.minions["vm2"]
    event_id = azure.announce("vm2")
    first, again = (
        vm2.wait_for_event("scheduled", event_id=event_id, repeated=0),
        vm2.wait_for_event("scheduled", event_id=event_id, repeated=1),
    )
    assert again["sequence"] == first["sequence"] and again["changed_at"] == first["changed_at"]


@pytest.mark.all
@pytest.mark.parametrize("failure_kind", ["hang", "refuse"])
def test_ping_answers_while_imds_fails(watching: Cluster, azure: Azure, failure_kind: str) -> None:
    """vm1's beacon has a timeout of ten minutes, which would block its minion if the loop waited."""
    vm1 = watching.minions["vm1"]
    event_id = azure.announce("vm1")
    vm1.wait_for_event("scheduled", event_id=event_id)
    # a refusing IMDS counts no requests: the fault cannot be awaited there
    if failure_kind == "refuse":
        fault = azure.simulator.post("/faults", {"kind": "refuse", "vm": "vm1"})["number"]
        assert [vm1.ask("test.ping") for _time in range(3)] == [True] * 3
        azure.simulator.delete(f"/faults/{fault}")
    else:
        with azure.fault(failure_kind, "vm1"):
            assert [vm1.ask("test.ping") for _time in range(3)] == [True] * 3
    azure.wait_for_polls("vm1")
    assert vm1.events("gone", event_id=event_id) == []
    azure.end(event_id)
    vm1.wait_for_event("gone", event_id=event_id)


@pytest.mark.all
def test_empty_answer_is_not_the_end_of_an_event(watching: Cluster, azure: Azure) -> None:
    vm2 = watching.minions["vm2"]
    event_id = azure.announce("vm2")
    vm2.wait_for_event("scheduled", event_id=event_id)
    with azure.fault("empty", "vm2", route="scheduledevents"):
        azure.wait_for_polls("vm2", more=2)
    azure.wait_for_polls("vm2")
    assert vm2.events("gone", event_id=event_id) == []


@pytest.mark.all
def test_refresh_loses_no_event_and_leaves_no_thread(watching: Cluster, azure: Azure) -> None:
    vm2 = watching.minions["vm2"]
    event_id = azure.announce("vm2")
    vm2.wait_for_event("scheduled", event_id=event_id)
    threads = vm2.threads()
    for _time in range(3):
        vm2.ask("saltutil.refresh_beacons")
        vm2.ask("saltutil.refresh_pillar")
    azure.start(event_id)
    vm2.wait_for_event("started", event_id=event_id)
    azure.end(event_id)
    vm2.wait_for_event("gone", event_id=event_id)
    # Salt itself has short-lived threads
    wait_until(lambda: vm2.threads() <= threads, lambda: f"{threads} threads, as at first, not {vm2.threads()}")
    assert len(vm2.events("started", event_id=event_id, repeated=0)) == 1


@pytest.mark.all
def test_minion_outside_azure_sends_nothing_and_answers(watching: Cluster) -> None:
    elsewhere = watching.minions["elsewhere"]
    assert elsewhere.ask("test.ping") is True
    pending = elsewhere.ask("azure_events.pending")
    assert (pending["available"], pending["pending"]) == (False, False) and "127.0.0.1:9" in pending["reason"]
    assert elsewhere.events() == []
    status = elsewhere.ask("azure_events.watch_status")
    assert "127.0.0.1:9" in status["azure_events"]["error"]
