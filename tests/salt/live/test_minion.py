# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A minion that prepares and recovers: during state runs, after kills and restarts, in a flood of events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.salt.azure import Azure
from support.salt.cluster import Cluster, cluster
from support.salt.fleet import SPARE, Fleet
from support.salt.minion import Minion
from support.salt.salt_installation import SaltInstallation
from support.salt.scripted import ScriptedImds
from support.wait import wait_until

pytestmark = pytest.mark.xdist_group("minion")


class Steps:
    """The steps of a minion, which each write a line; ``wait`` waits for the file ``go``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def pillar(self) -> dict[str, Any]:
        note = f"echo {{}} >> {self._folder}/ran"
        wait = f"echo begun >> {self._folder}/ran; while ! test -e {self._folder}/go; do sleep 0.1; done"
        prepare = [note.format("one"), {"name": "wait", "command": wait}, note.format("three")]
        return {"azure_events": {"prepare": prepare, "recover": [note.format("recovered")]}}

    def reset(self, waiting: bool = False) -> None:
        (self._folder / "ran").unlink(missing_ok=True)
        (self._folder / "go").unlink(missing_ok=True) if waiting else self.allow()

    def allow(self) -> None:
        (self._folder / "go").touch()

    @property
    def ran(self) -> list[str]:
        file = self._folder / "ran"
        return file.read_text().split() if file.exists() else []


@pytest.fixture(scope="module")
def flood() -> Iterator[ScriptedImds]:
    with ScriptedImds() as imds:
        yield imds


@pytest.fixture(scope="module")
def alone(installation: SaltInstallation, azure: Azure, flood: ScriptedImds) -> Iterator[Cluster]:
    with cluster(installation) as here:
        here.minion(
            "vm1",
            azure_events={"endpoint": azure.endpoints["vm1"]},
            beacons={"azure_events": [{"interval": 1}, {"repeat": 3600}]},
        )
        here.minion("flooded", azure_events={"endpoint": flood.endpoint}, beacons={"azure_events": [{"interval": 1}]})
        here.master.set_pillar(vm1=Steps(here.minions["vm1"].folder).pillar())
        here.start()
        here.master.ask_all("*", "saltutil.sync_all")
        yield here


@pytest.fixture
def vm1(alone: Cluster) -> Minion:
    return alone.minions["vm1"]


@pytest.fixture
def steps(vm1: Minion) -> Steps:
    made = Steps(vm1.folder)
    made.reset()
    return made


def outcome(minion: Minion, function: str, *words: Any) -> str:
    answer = minion.ask("azure_events." + function, *words)
    assert isinstance(answer, dict), answer
    found: str = answer["outcome"]
    return found


def restart(here: Cluster, minion: Minion) -> None:
    minion.kill()
    here.start(minion.name)


def test_prepare_and_recover_by_jobs(running: Fleet, spare: Minion) -> None:
    azure, steps = running.azure, Steps(spare.folder)
    running.cluster.master.set_pillar(**{SPARE: steps.pillar()})
    assert spare.ask("saltutil.refresh_pillar", wait=True) is True
    steps.reset()
    event_id = azure.announce(SPARE)
    assert outcome(spare, "prepare", event_id) == "prepared"
    assert outcome(spare, "prepare", event_id) == "already_prepared"
    assert outcome(spare, "approve_prepared", event_id, [SPARE]) == "approved"
    azure.simulator.advance(2)
    azure.end(event_id)
    assert outcome(spare, "recover", event_id) == "recovered"
    assert steps.ran == ["one", "begun", "three", "recovered"]


@pytest.mark.all
def test_preparation_does_not_wait_for_a_state_run(vm1: Minion, azure: Azure, steps: Steps, tmp_path: Path) -> None:
    hold = f"echo $$ > {tmp_path}/pid; while ! test -e {tmp_path}/end; do sleep 0.1; done"
    vm1.start_job("state.single", "cmd.run", hold)
    wait_until((tmp_path / "pid").exists, "the long state run")
    event_id = azure.announce("vm1", kind="Preempt")
    assert outcome(vm1, "prepare", event_id) == "prepared"
    assert vm1.ask("saltutil.is_running", "state.single") != []
    (tmp_path / "end").touch()
    azure.cancel(event_id)
    assert outcome(vm1, "recover", event_id) == "recovered"


@pytest.mark.all
@pytest.mark.parametrize("then", ["prepare", "recover"])
def test_minion_that_is_killed_in_the_middle_of_a_preparation(
    alone: Cluster, vm1: Minion, azure: Azure, steps: Steps, then: str
) -> None:
    steps.reset(waiting=True)
    event_id = azure.announce("vm1")
    vm1.start_job("azure_events.prepare", event_id)
    wait_until(lambda: steps.ran == ["one", "begun"], lambda: f"a preparation in its second step, not {steps.ran}")
    restart(alone, vm1)
    wait_until(lambda: vm1.ask("azure_events.status")["working"] is None, "the end of the killed preparation")
    assert [one["state"] for one in vm1.ask("azure_events.status")["records"]] == ["preparing"]
    steps.allow()
    if then == "prepare":
        assert outcome(vm1, "prepare", event_id) == "prepared"
    azure.cancel(event_id)
    assert [result["outcome"] for result in vm1.ask("azure_events.sweep")["results"]] == ["recovered"]
    assert steps.ran == ["one", "begun", *(["begun", "three"] if then == "prepare" else []), "recovered"]


@pytest.mark.all
def test_end_is_sent_until_the_minion_has_recovered_also_after_a_restart(
    alone: Cluster, vm1: Minion, azure: Azure, steps: Steps
) -> None:
    event_id = azure.announce("vm1")
    vm1.wait_for_event("scheduled", event_id=event_id)
    assert outcome(vm1, "prepare", event_id) == "prepared"
    vm1.kill()
    azure.cancel(event_id)
    alone.start("vm1")
    vm1.wait_for_event("gone", event_id=event_id)
    before = len(vm1.events("gone", event_id=event_id))
    restart(alone, vm1)
    wait_until(lambda: len(vm1.events("gone", event_id=event_id)) > before, "the end, sent again")
    assert outcome(vm1, "recover", event_id) == "recovered"
    before = len(vm1.events("gone", event_id=event_id))
    restart(alone, vm1)
    azure.wait_for_polls("vm1", more=4)
    assert len(vm1.events("gone", event_id=event_id)) == before


@pytest.mark.all
def test_restarted_master_is_sent_the_listed_events_at_once(alone: Cluster, vm1: Minion, azure: Azure) -> None:
    """The beacon of this minion repeats listed events once an hour only."""
    event_id = azure.announce("vm1")
    vm1.wait_for_event("scheduled", event_id=event_id)
    before = len(vm1.events("scheduled", event_id=event_id))
    alone.master.kill()
    alone.start()
    wait_until(lambda: len(vm1.events("scheduled", event_id=event_id)) > before, "what lasts, sent again")
    azure.cancel(event_id)


@pytest.mark.all
def test_flood_of_large_events_reaches_the_master_and_the_minion_answers(alone: Cluster, flood: ScriptedImds) -> None:
    minion = alone.minions["flooded"]
    names = [f"vmss-with-a-rather-long-name_{number:06d}" for number in range(100)]
    flood.events = [flood.event(f"E{number:03d}", "vm1", *names) for number in range(100)]
    flood.events.append(dict(flood.event("text", "vm1"), Description="x" * 260_000))
    flood.events.append(flood.event("names", "vm1", *[f"{names[0]}_{number}" for number in range(9000)]))
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
