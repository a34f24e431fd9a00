# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""No event is lost while the minion or the master is away."""

from __future__ import annotations

import pytest

from support.salt.azure import Azure
from support.salt.cluster import Cluster
from support.salt.minion import Minion

pytestmark = [pytest.mark.all, pytest.mark.xdist_group("watching")]


@pytest.fixture
def vm1(watching: Cluster) -> Minion:
    return watching.minions["vm1"]


def restart(cluster: Cluster, *names: str) -> None:
    for name in names:
        minion = cluster.minions[name]
        starts = len(cluster.master.bus.events(f"salt/minion/{name}/start"))
        minion.start()
        cluster.master.bus.wait_for_more(f"salt/minion/{name}/start", starts)


def test_event_that_starts_while_the_minion_is_down_is_sent_as_started(
    watching: Cluster, azure: Azure, vm1: Minion
) -> None:
    event_id = azure.announce("vm1")
    scheduled = vm1.wait_for_event("scheduled", event_id=event_id)
    vm1.kill()
    azure.start(event_id)
    restart(watching, "vm1")
    started = vm1.wait_for_event("started", event_id=event_id)
    assert started["sequence"] > scheduled["sequence"] and started["first_seen"] == scheduled["first_seen"]
    azure.end(event_id)
    assert vm1.wait_for_event("gone", event_id=event_id)["outcome"] == "completed"


def test_event_that_ends_while_the_minion_is_down_is_sent_as_gone(watching: Cluster, azure: Azure, vm1: Minion) -> None:
    """The same as a reboot by Azure."""
    event_id = azure.announce("vm1")
    vm1.wait_for_event("scheduled", event_id=event_id)
    azure.start(event_id)
    vm1.wait_for_event("started", event_id=event_id)
    vm1.kill()
    azure.end(event_id)
    restart(watching, "vm1")
    assert vm1.wait_for_event("gone", event_id=event_id)["outcome"] == "completed"


def test_event_keeps_its_number_over_a_restart_of_the_minion(watching: Cluster, azure: Azure, vm1: Minion) -> None:
    event_id = azure.announce("vm1")
    first = vm1.wait_for_event("scheduled", event_id=event_id)
    vm1.stop()
    restart(watching, "vm1")
    events = watching.master.bus.wait_for_more(vm1.tag("scheduled"), 1, event_id=event_id).data
    assert events["sequence"] == first["sequence"] and events["first_seen"] == first["first_seen"]


def test_changes_while_the_master_is_away_are_sent_later(watching: Cluster, azure: Azure) -> None:
    watching.master.stop()
    event_id = azure.announce("vm1", "vm2", kind="Freeze")
    for name in ("vm1", "vm2"):
        azure.wait_for_polls(name)
    azure.start(event_id)
    for name in ("vm1", "vm2"):
        azure.wait_for_polls(name)
    watching.start("vm1", "vm2")
    for name in ("vm1", "vm2"):
        watching.minions[name].wait_for_event("started", event_id=event_id)


def test_nothing_is_lost_when_the_minion_restarts_while_the_master_is_away(
    watching: Cluster, azure: Azure, vm1: Minion
) -> None:
    """The minion has saved that it has seen the event, which no master has received."""
    watching.master.stop()
    event_id = azure.announce("vm1")
    azure.wait_for_polls("vm1")
    vm1.kill()
    vm1.start()
    watching.start("vm1")
    assert vm1.wait_for_event("scheduled", event_id=event_id)["status"] == "Scheduled"
