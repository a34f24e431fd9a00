# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hosts whose events the role cannot read: the caller passes the events and their end, as a rulebook does."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.maintenance.control_plane import TOKEN, VMS, by_arm, change, printed_playbook, without_imds
from support.maintenance.fleet import LATE, PREPARE, WAIT, Fleet, rows
from support.simulator_process import Simulator

# of a host to which no connection is possible
DOWN = {
    "ansible_connection": "ansible.builtin.ssh",
    "ansible_host": "127.0.0.1",
    "ansible_port": 9,
    "maintenance_down": True,
}


def web_servers(azure: Simulator, folder: Path, **of_host: dict[str, Any]) -> Fleet:
    """Return a fleet of web1, web2 and web3, which are vm1, vm2 and vm3 and cannot read the events."""
    hosts = {
        f"web{number}": without_imds(
            azure, folder, f"vm{number}", **by_arm(azure, id=f"{VMS}vm{number}"), **of_host.get(f"web{number}", {})
        )
        for number in (1, 2, 3)
    }
    fleet = Fleet(azure, folder, (), **hosts)
    fleet.hosts.environment["ARM_TOKEN"] = TOKEN
    return fleet


def notes(folder: Path) -> set[str]:
    """Return the hosts that have a note on the controller."""
    return {path.parent.name for path in folder.glob("notes/hosts/*/note.json")}


def announced(event: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the change of an event, as Event Grid and the mapping of a rulebook have it."""
    return change(event, hosts=[name.replace("vm", "web") for name in event["resources"]], **more)


def run(fleet: Fleet, *changes: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    course = {PREPARE: (fleet.folder / "happened").touch, WAIT: int}
    return fleet.maintain(given={"maintenance_announced": list(changes)}, at=course)


@pytest.mark.all
def test_hosts_without_imds_and_hosts_that_are_down_are_maintained_in_two_runs(trio: Simulator, tmp_path: Path) -> None:
    event = trio.post("/events", {**LATE, "resources": ["vm1", "vm2", "vm3"]})
    fleet = web_servers(trio, tmp_path, web3=DOWN)
    playbook = printed_playbook(fleet, "windows.yml")
    ran = fleet.hosts.playbook(playbook, {"maintenance_announced": [announced(event)]})
    assert ran.returncode == 0, ran.stdout
    assert [(line["by"], line["status"]) for line in fleet.approvals()] == [("arm", 200)]
    assert fleet.did("prepare") == {"web1", "web2"} and fleet.did("recover") == set()
    assert notes(tmp_path) == {"web1", "web2", "web3"}
    for row in rows(ran).values():
        assert (
            row["approved"] and row["recovered"] is None and "stays prepared until a run with the end" in row["why_not"]
        )

    trio.advance(3 * 3600)
    ran = fleet.hosts.playbook(playbook, {"maintenance_ended": [event["id"].lower()]})
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("recover") == {"web1", "web2"} and notes(tmp_path) == set()
    for row in rows(ran).values():
        # the first run has prepared the host
        assert (
            row["prepared"] and row["over"] and row["recovered"] and (row["outcome"], row["why_not"]) == ("unknown", "")
        )
    assert fleet.course_of("prepare").count("web1") == 1 and len(fleet.approvals()) == 1
    # nothing else has sent a request
    assert len(trio.get("/requests")["requests"]) == 1


@pytest.mark.all
def test_host_recovers_after_the_end_of_all_of_its_events(trio: Simulator, tmp_path: Path) -> None:
    first = trio.post("/events", {**LATE, "resources": ["vm1"]})
    second = trio.post("/events", {**LATE, "type": "Reboot", "resources": ["vm1", "vm2"]})
    fleet = web_servers(trio, tmp_path)
    assert run(fleet, announced(first), announced(second)).returncode == 0 and notes(tmp_path) == {"web1", "web2"}
    # by one request, because both are events of web1's VM
    (approval,) = fleet.approvals()
    assert sorted(approval["ids"]) == sorted([first["id"], second["id"]])
    # late and repeated deliveries change nothing
    ran = run(fleet, announced(first, change="gone", outcome="completed"), announced(first))
    assert ran.returncode == 0 and notes(tmp_path) == {"web1", "web2"} and fleet.did("recover") == set()
    assert f"Reboot {second['id']}" in rows(ran)["web1"]["why_not"] and fleet.approvals() == [approval]
    ran = run(fleet, announced(second, change="gone", outcome="canceled"))
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("recover") == {"web1", "web2"} and notes(tmp_path) == set()
    # web1 has one row for each event, the second one last
    assert {name: row["outcome"] for name, row in rows(ran).items()} == {"web1": "canceled", "web2": "canceled"}
    (line,) = [line for line in ran.stdout.splitlines() if "web1" in line and f"Freeze {first['id']}" in line]
    assert " completed" in line, line
