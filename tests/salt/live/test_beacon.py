# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What the beacon puts on the master's bus, from the announcement of an event to its end."""

from __future__ import annotations

import pytest

from support.salt.azure import Azure
from support.salt.cluster import Cluster
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


def test_an_event_is_told_from_its_announcement_to_its_end(watching: Cluster, azure: Azure) -> None:
    vm1 = watching.minions["vm1"]
    event_id = azure.announce("vm1", kind="Redeploy", source="User")
    scheduled = vm1.wait_for_event("scheduled", event_id=event_id)
    assert set(scheduled) >= SHAPE | ABOUT_THE_CHANGE
    assert (scheduled["event_type"], scheduled["status"], scheduled["resources"]) == ("Redeploy", "Scheduled", ["vm1"])
    assert (scheduled["id"], scheduled["resource_name"], scheduled["fields"]) == ("vm1", "vm1", [])
    azure.start(event_id)
    started = vm1.wait_for_event("started", event_id=event_id)
    assert (
        started["status"] == "Started" and "status" in started["fields"] and started["sequence"] > scheduled["sequence"]
    )
    azure.end(event_id)
    gone = vm1.wait_for_event("gone", event_id=event_id)
    assert gone["outcome"] == "ended" and gone["sequence"] > started["sequence"]


def test_a_cancelled_event_is_told_as_not_started(watching: Cluster, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    vm1 = watching.minions["vm1"]
    vm1.wait_for_event("scheduled", event_id=event_id)
    azure.cancel(event_id)
    assert vm1.wait_for_event("gone", event_id=event_id)["outcome"] == "not_started"


def test_a_moved_deadline_is_told_with_what_differs(watching: Cluster, azure: Azure) -> None:
    event_id = azure.announce("vm1", notice="1h")
    vm1 = watching.minions["vm1"]
    vm1.wait_for_event("scheduled", event_id=event_id)
    azure.simulator.post(f"/events/{event_id}/change", {"notice": "2h"})
    assert vm1.wait_for_event("changed", event_id=event_id)["fields"] == ["not_before"]


def test_two_minions_of_one_availability_set_each_tell_of_what_hits_them(watching: Cluster, azure: Azure) -> None:
    both = azure.announce("vm1", "vm2", kind="Freeze")
    only_vm2 = azure.announce("vm2")
    for name in ("vm1", "vm2"):
        assert watching.minions[name].wait_for_event("scheduled", event_id=both)["resources"] == ["vm1", "vm2"]
    assert watching.minions["vm2"].wait_for_event("scheduled", event_id=only_vm2)["resource_name"] == "vm2"
    azure.wait_for_polls("vm1")
    assert watching.minions["vm1"].events(event_id=only_vm2) == []


def test_what_lasts_is_repeated_under_the_same_number(watching: Cluster, azure: Azure) -> None:
    vm2 = watching.minions["vm2"]
    event_id = azure.announce("vm2")
    first, again = (
        vm2.wait_for_event("scheduled", event_id=event_id, repeated=0),
        vm2.wait_for_event("scheduled", event_id=event_id, repeated=1),
    )
    assert again["sequence"] == first["sequence"] and again["changed_at"] == first["changed_at"]


@pytest.mark.parametrize("failure_kind", ["hang", "refuse"])
def test_test_ping_answers_while_imds_is_sick(watching: Cluster, azure: Azure, failure_kind: str) -> None:
    """vm1's beacon is allowed to wait ten minutes for IMDS, which would be the end of its minion if it waited in the loop."""
    vm1 = watching.minions["vm1"]
    event_id = azure.announce("vm1")
    vm1.wait_for_event("scheduled", event_id=event_id)
    # a refusing IMDS counts no requests, so the fault is not waited for there
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


def test_an_answer_that_says_nothing_is_not_the_end_of_an_event(watching: Cluster, azure: Azure) -> None:
    vm2 = watching.minions["vm2"]
    event_id = azure.announce("vm2")
    vm2.wait_for_event("scheduled", event_id=event_id)
    with azure.fault("empty", "vm2", route="scheduledevents"):
        azure.wait_for_polls("vm2", more=2)
    azure.wait_for_polls("vm2")
    assert vm2.events("gone", event_id=event_id) == []


def test_a_refresh_loses_nothing_and_leaves_no_threads_behind(watching: Cluster, azure: Azure) -> None:
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
    # Salt itself has threads that live for a moment
    wait_until(lambda: vm2.threads() <= threads, lambda: f"{threads} threads, as at first, not {vm2.threads()}")
    assert len(vm2.events("started", event_id=event_id, repeated=0)) == 1


def test_a_minion_without_azure_is_silent_and_well(watching: Cluster) -> None:
    elsewhere = watching.minions["elsewhere"]
    assert elsewhere.ask("test.ping") is True
    pending = elsewhere.ask("azure_events.pending")
    assert (pending["available"], pending["pending"]) == (False, False) and "127.0.0.1:9" in pending["reason"]
    assert elsewhere.events() == []
    status = elsewhere.ask("azure_events.watch_status")
    assert "127.0.0.1:9" in status["azure_events"]["error"]
