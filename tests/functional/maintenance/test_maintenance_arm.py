# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Approval through Azure Resource Manager, for hosts that read their events, and for hosts that cannot read them.

The caller passes the events of the latter, and their end, as a rulebook does.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.daemon.hook_scripts import write_program
from support.maintenance.control_plane import (
    TOKEN,
    VMS,
    by_arm,
    change,
    printed_playbook,
    requests_of_route,
    without_imds,
)
from support.maintenance.fleet import LATE, PREPARE, WAIT, Fleet, failed, rows, variables
from support.simulator_process import Simulator

pytestmark = pytest.mark.all

UNREACHABLE = {"ansible_connection": "ansible.builtin.ssh", "ansible_ssh_executable": "/bin/false"}
ALL = {"vm1", "vm2", "vm3"}
THREE = {**LATE, "resources": sorted(ALL)}
FACTS = f"""
- ansible.builtin.set_fact:
    cacheable: true
    maintenance_approve_by: module
    maintenance_arm_endpoint: http://127.0.0.1:9
    maintenance_arm_resource_id: {VMS}vm9
    id: {VMS}vm9
"""
# a result whose facts would be the report of all hosts
LIE = '{"changed": false, "ansible_facts": {"maintenance__coordination": {"x": 1}}}'
# of a host to which no connection is possible
DOWN = {
    "ansible_connection": "ansible.builtin.ssh",
    "ansible_host": "127.0.0.1",
    "ansible_port": 9,
    "maintenance_down": True,
}


def fleet_by_arm(azure: Simulator, folder: Path, **of_host: dict[str, Any]) -> Fleet:
    """Return a fleet that approves by ARM, with further variables of some hosts."""
    common = by_arm(azure)
    hosts = {name: {**variables(azure, folder, name), **common, **of_host.get(name, {})} for name in azure.endpoints}
    fleet = Fleet(azure, folder, (), **hosts)
    fleet.hosts.environment["ARM_TOKEN"] = TOKEN
    return fleet


def test_two_events_are_approved_once_each_and_the_token_is_not_shown(trio: Simulator, tmp_path: Path) -> None:
    event = trio.post("/events", {**THREE, "name": "all"})
    trio.post("/events", {**LATE, "type": "Reboot", "resources": ["vm2"], "name": "one"})
    # a forged report does not divert the request from the VM of the host
    forged = change(event, resource_id=VMS.replace("rg-simulated", "other") + "vm1")
    fleet = fleet_by_arm(trio, tmp_path, vm1={"maintenance_announced": [forged]})
    playbook = printed_playbook(fleet, "arm.yml")
    # nor do facts, which any result of a module on a host may have
    lie = write_program(tmp_path / "library" / "lie", f"#!/bin/sh\necho '{LIE}'\n")
    with (tmp_path / "drain.yml").open("a") as tasks:
        tasks.write(f"{FACTS}- {lie.name}:\n")
    ran = fleet.hosts.playbook(playbook, None, "-vvv", at={WAIT: fleet.start_and_end_events})
    assert ran.returncode == 0, ran.stdout
    assert sorted((line["by"], line["vm"], line["status"]) for line in fleet.approvals()) == [
        ("arm", "vm1", 200),
        ("arm", "vm2", 200),
    ]
    assert fleet.reasons_of_starts() == ["approved", "approved"]
    assert fleet.did("prepare") == fleet.did("recover") == ALL
    for row in rows(ran).values():
        assert row["approved"] and row["over"] and row["why_not"] == ""
    assert TOKEN not in ran.stdout + ran.stderr


def test_azure_without_the_stable_version_is_asked_per_event(trio: Simulator, tmp_path: Path) -> None:
    for kind in ("Freeze", "Reboot"):
        trio.post("/events", {**LATE, "type": kind, "resources": ["vm1"], "notice": "15m"})
    trio.post("/knobs", {"arm_stable_version": "off"})
    fleet = fleet_by_arm(trio, tmp_path)
    ran = fleet.maintain()
    assert ran.returncode == 0, ran.stdout
    assert requests_of_route(trio, "arm") == [400, 200, 200]
    assert fleet.reasons_of_starts() == ["approved", "approved"]


def test_event_of_a_vm_that_a_compromised_host_claims_is_not_approved(trio: Simulator, tmp_path: Path) -> None:
    # vm1 reads what vm2 would read: it claims the name and the event of vm2
    claims = {"maintenance_endpoint": trio.endpoints["vm2"]}
    trio.post("/events", {**LATE, "resources": ["vm2"], "notice": "15m"})
    fleet = fleet_by_arm(trio, tmp_path, vm1=claims, vm2=UNREACHABLE)
    ran = fleet.maintain(at={WAIT: lambda: trio.advance(3 * 3600)})
    assert fleet.did("prepare") == {"vm1"} and failed(ran) == {"vm2"}
    assert fleet.reasons_of_starts() == ["NotBefore reached"] and requests_of_route(trio, "arm") == []
    assert rows(ran)["vm1"]["approval"] == "not_prepared"


def test_event_to_which_azure_adds_a_vm_is_not_approved(trio: Simulator, tmp_path: Path) -> None:
    trio.post("/events", {**LATE, "resources": ["vm1"], "notice": "15m", "name": "grows"})
    fleet = fleet_by_arm(trio, tmp_path)
    ran = fleet.maintain(
        at={"Read the events again": lambda: trio.post("/events/grows/change", {"resources": ["vm1", "vm2"]})}
    )
    assert ran.returncode == 0, ran.stdout
    row = rows(ran)["vm1"]
    assert fleet.approvals() == [] and "vm2: Azure has added it to the event" in ran.stdout
    # by the next reading
    assert row["approval"] == "not_prepared" and "vm2: the host is not prepared" in row["why_not"]


def test_lost_answer_is_asked_for_again_and_an_outage_ends_as_doubtful(trio: Simulator, tmp_path: Path) -> None:
    trio.post("/events", {**LATE, "resources": ["vm1"], "notice": "15m"})
    trio.post("/events", {**LATE, "resources": ["vm2"], "notice": "15m"})
    trio.post("/faults", {"kind": "lost-answer", "route": "arm", "vm": "vm1", "requests": "1"})
    trio.post("/faults", {"kind": "status", "status": 503, "route": "arm", "vm": "vm2"})
    fleet = fleet_by_arm(trio, tmp_path)
    ran = fleet.maintain()
    assert failed(ran) == {"vm2"} and fleet.did("recover") == {"vm1", "vm2"}
    report = rows(ran)
    assert report["vm1"]["approved"] and report["vm1"]["why_not"] == ""
    assert report["vm2"]["approved"] is None and "whether it approved is unknown" in report["vm2"]["why_not"]
    assert sorted(fleet.reasons_of_starts()) == ["NotBefore reached", "approved"]
    assert [line["status"] for line in fleet.approvals() if line["vm"] == "vm1"] == [200, 200]
    assert requests_of_route(trio, "arm").count(503) == 3


def test_check_mode_sends_no_request(trio: Simulator, tmp_path: Path) -> None:
    trio.post("/events", THREE)
    fleet = fleet_by_arm(trio, tmp_path)
    ran = fleet.maintain("true", "--check", at={PREPARE: lambda: None})
    assert ran.returncode == 0 and requests_of_route(trio, "arm") == []


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


def run(fleet: Fleet, *changes: dict[str, Any], recover: str = "true") -> subprocess.CompletedProcess[str]:
    course = {PREPARE: (fleet.folder / "happened").touch, WAIT: int}
    return fleet.maintain(given={"maintenance_announced": list(changes)}, at=course, recover=recover)


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
    # the next run knows an end whose recovery has failed
    assert failed(run(fleet, announced(second, change="gone", outcome="canceled"), recover="false")) == {"web1", "web2"}
    ran = run(fleet)
    assert ran.returncode == 0, ran.stdout
    assert fleet.did("recover") == {"web1", "web2"} and notes(tmp_path) == set()
    # web1 has one row for each event, the second one last
    assert {name: row["outcome"] for name, row in rows(ran).items()} == {"web1": "canceled", "web2": "canceled"}
    (line,) = [line for line in ran.stdout.splitlines() if "web1" in line and f"Freeze {first['id']}" in line]
    assert " completed" in line, line
