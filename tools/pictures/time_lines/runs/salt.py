# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Record a Salt master with the engine and two minions with the beacon, from the master's bus."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

from support import environments
from support.salt.cluster import Cluster, cluster
from support.salt.event_bus import Event
from support.salt.salt_installation import SaltInstallation
from support.salt.tree_minion import MASTER_DIRS, MINION_DIRS
from support.wait import wait_until
from tools.pictures.time_lines.recording import Lane, Recording, lane
from tools.pictures.time_lines.runs.azure_side import EVENT, Account, azure, collection_version

VMS = ("vm1", "vm2")
# step -> VM -> seconds
SECONDS = {"prepare": {"vm1": 3, "vm2": 6}, "recover": {"vm1": 2, "vm2": 2}}
# the events of the beacon -> steps
BEACON = {"scheduled": "seen", "started": "started", "gone": "over"}
# the functions of a minion's jobs and the outcomes that are steps
OUTCOMES = {
    "azure_events.prepare": "prepared",
    "azure_events.approve_prepared": "approved",
    "azure_events.recover": "recovered",
}
NEVER = "this step is missing"


def record(installation: SaltInstallation | None = None) -> Recording:
    """Run master and minions of an installation, by default the newest one, through an event; return the recording."""
    with (
        azure(*VMS) as simulator,
        cluster(
            installation or SaltInstallation.at(environments.salt(3008)), engines=[{"azure_events": {}}], **MASTER_DIRS
        ) as here,
    ):
        for vm in VMS:
            beacon = {"azure_events": [{"interval": 1}]}
            here.minion(vm, azure_events={"endpoint": simulator.endpoints[vm]}, beacons=beacon, **MINION_DIRS)
        here.master.set_pillar(**{vm: pillar(vm) for vm in VMS})
        here.start()
        wait_until(lambda: fleet_is_known(here), "the answers of the minions to the engine", pause=1)
        event_id = simulator.post("/events", {**EVENT, "resources": list(VMS)})["id"]
        account = Account(simulator, event_id)
        here.master.bus.wait(f"salt/azure_events/{event_id}/recovered")
        salt = subprocess.run(
            [*here.installation.command("salt-call"), "--version"], check=True, capture_output=True, text=True
        )
        return Recording(
            f"Salt: {EVENT['type']} of {' and '.join(VMS)}",
            {**collection_version(), "Salt": salt.stdout.split()[1], "Python": here.installation.shape()[0]},
            account.not_before,
            (account.lane(), master_lane(account, here), *(minion_lane(account, here, vm) for vm in VMS)),
        )


def pillar(vm: str) -> dict[str, Any]:
    """Return the pillar with the steps of a minion."""
    return {"azure_events": {step: [f"sleep {seconds[vm]}"] for step, seconds in SECONDS.items()}}


def fleet_is_known(here: Cluster) -> bool:
    """Return True if all minions have answered the engine."""
    rows = here.master.run("salt-run", "azure_events.fleet").get("rows", [])
    return {row["minion"] for row in rows if row["answered_seconds_ago"] is not None} == set(VMS)


def master_lane(account: Account, here: Cluster) -> Lane:
    """Return the lane of the master: the steps that its engine announces."""
    events = here.master.bus.events(f"salt/azure_events/{account.event_id}/*")
    return lane("master", [(event.time - account.began, event.tag.rpartition("/")[2]) for event in events])


def minion_lane(account: Account, here: Cluster, vm: str) -> Lane:
    """Return the lane of a minion: the events of its beacon and the returns of its jobs."""
    bus = here.master.bus
    steps = [
        (event.time - account.began, step)
        for change, step in BEACON.items()
        for event in bus.events(f"salt/beacon/{vm}/azure_events/{change}", event_id=account.event_id)[:1]
    ]
    work = []
    for published, returned in jobs(here, vm):
        function, outcome = returned.data["fun"], returned.data["return"]
        if isinstance(outcome, dict) and outcome.get("outcome") == OUTCOMES.get(function, NEVER):
            end = returned.time - account.began
            steps.append((end, OUTCOMES[function]))
            work.append((published.time - account.began, end, function))
    return lane(vm, steps, work)


def jobs(here: Cluster, vm: str) -> Iterator[tuple[Event, Event]]:
    """Yield the publication and the return of each job of a minion."""
    published = {event.data["jid"]: event for event in here.master.bus.events("salt/job/*/new")}
    for returned in here.master.bus.events(f"salt/job/*/ret/{vm}"):
        if returned.data["jid"] in published:
            yield published[returned.data["jid"]], returned
