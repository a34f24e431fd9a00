# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The beacon's events on the master's bus: of one event, after restarts of daemons, and in a flood."""

from __future__ import annotations

import pytest

from support.salt.azure import MEMBERS
from support.salt.fleet import SPARE, Fleet
from support.salt.minion import Minion
from support.salt.scripted import ScriptedImds
from support.salt.tree_minion import MINION_DIRS
from support.wait import wait_until

pytestmark = pytest.mark.xdist_group("live")

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
    assert set(scheduled) >= MEMBERS | ABOUT_THE_CHANGE
    assert (scheduled["event_type"], scheduled["status"], scheduled["resources"]) == ("Redeploy", "Scheduled", [SPARE])
    assert (scheduled["id"], scheduled["resource_name"], scheduled["fields"]) == (SPARE, SPARE, [])
    assert scheduled["first_seen"] == scheduled["changed_at"]
    azure.start(event_id)
    started = spare.wait_for_event("started", event_id=event_id)
    assert (
        started["status"] == "Started" and "status" in started["fields"] and started["sequence"] > scheduled["sequence"]
    )
    azure.end(event_id)
    gone = spare.wait_for_event("gone", event_id=event_id)
    assert gone["outcome"] == "completed" and gone["sequence"] > started["sequence"]


@pytest.mark.all
def test_refresh_loses_no_event_and_leaves_no_thread(running: Fleet, spare: Minion) -> None:
    azure = running.azure
    event_id = azure.announce(SPARE)
    spare.wait_for_event("scheduled", event_id=event_id)
    threads = spare.threads()
    for _time in range(3):
        spare.ask("saltutil.refresh_beacons")
        spare.ask("saltutil.refresh_pillar")
    azure.start(event_id)
    spare.wait_for_event("started", event_id=event_id)
    azure.end(event_id)
    spare.wait_for_event("gone", event_id=event_id)
    # Salt itself has short-lived threads
    wait_until(lambda: spare.threads() <= threads, lambda: f"{threads} threads, as at first, not {spare.threads()}")
    assert len(spare.events("started", event_id=event_id, repeated=0)) == 1


@pytest.mark.all
def test_restarted_master_is_sent_the_listed_events_at_once(running: Fleet, spare: Minion) -> None:
    """The beacon of this minion repeats listed events once an hour only."""
    event_id = running.azure.announce(SPARE)
    spare.wait_for_event("scheduled", event_id=event_id)
    before = len(spare.events("scheduled", event_id=event_id))
    running.cluster.master.kill()
    running.cluster.start()
    wait_until(lambda: len(spare.events("scheduled", event_id=event_id)) > before, "what lasts, sent again")
    running.azure.end(event_id)


@pytest.mark.all
def test_nothing_is_lost_when_the_minion_restarts_while_the_master_is_away(running: Fleet, spare: Minion) -> None:
    """The minion has saved that it has seen the event, which no master has received."""
    running.cluster.master.stop()
    event_id = running.azure.announce(SPARE)
    running.azure.wait_for_polls(SPARE)
    spare.kill()
    spare.start()
    running.cluster.start()
    assert spare.wait_for_event("scheduled", event_id=event_id)["status"] == "Scheduled"
    running.azure.end(event_id)


@pytest.mark.all
def test_flood_of_large_events_reaches_the_master_and_the_minion_answers(running: Fleet) -> None:
    with ScriptedImds() as flood:
        names = [f"vmss-with-a-rather-long-name_{number:06d}" for number in range(100)]
        flood.events = [flood.event(f"E{number:03d}", "vm1", *names) for number in range(100)]
        flood.events.append(dict(flood.event("text", "vm1"), Description="x" * 260_000))
        flood.events.append(flood.event("names", "vm1", *[f"{names[0]}_{number}" for number in range(9000)]))
        beacons = {"azure_events": [{"interval": 1}]}
        minion = running.cluster.minion(
            f"{SPARE}-flooded", azure_events={"endpoint": flood.endpoint}, beacons=beacons, **MINION_DIRS
        )
        running.cluster.start(minion.name)
        events: set[str] = set()
        wanted = {event["EventId"] for event in flood.events}

        def all_sent() -> bool:
            assert minion.ask("test.ping") is True
            events.update(data["event_id"] for data in minion.events("scheduled"))
            return events == wanted

        wait_until(all_sent, lambda: f"all events on the bus, which lacks {sorted(wanted - events)}")
        assert minion.wait_for_event("scheduled", event_id="text")["cut"] == ["description"]
        large = minion.wait_for_event("scheduled", event_id="names")
        assert large["resources_omitted"] == 9001 and "resources" not in large
        running.cluster.minions.pop(minion.name).kill()
