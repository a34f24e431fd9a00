# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Approval through Azure Resource Manager, for hosts that read their events themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.maintenance.control_plane import TOKEN, VMS, by_arm, change, printed_playbook, requests_of_route
from support.maintenance.fleet import LATE, PREPARE, WAIT, Fleet, failed, variables
from support.maintenance.reports import all_rows, rows
from support.simulator_process import Simulator

pytestmark = pytest.mark.all

UNREACHABLE = {"ansible_connection": "ansible.builtin.ssh", "ansible_ssh_executable": "/bin/false"}
ALL = {"vm1", "vm2", "vm3"}
THREE = {**LATE, "resources": sorted(ALL)}
FACTS = f"""
- ansible.builtin.set_fact:
    cacheable: true
    maintenance_arm_endpoint: http://127.0.0.1:9
    maintenance_arm_resource_id: {VMS}vm9
    id: {VMS}vm9
"""


def fleet_by_arm(azure: Simulator, folder: Path, **of_host: dict[str, Any]) -> Fleet:
    """Return a fleet that approves by ARM, with further variables of some hosts."""
    common = by_arm(azure)
    hosts = {name: {**variables(azure, folder, name), **common, **of_host.get(name, {})} for name in azure.endpoints}
    fleet = Fleet(azure, folder, (), **hosts)
    fleet.hosts.environment.update(ARM_TOKEN=TOKEN, ANSIBLE_SHOW_CUSTOM_STATS="1")
    return fleet


def test_two_events_are_approved_once_each_and_the_token_is_not_shown(trio: Simulator, tmp_path: Path) -> None:
    event = trio.post("/events", {**THREE, "name": "all"})
    trio.post("/events", {**LATE, "type": "Reboot", "resources": ["vm2"], "name": "one"})
    # a forged report does not divert the request from the VM of the host
    forged = change(event, resource_id=VMS.replace("rg-simulated", "other") + "vm1")
    fleet = fleet_by_arm(trio, tmp_path, vm1={"maintenance_announced": [forged]})
    playbook = printed_playbook(fleet, "arm.yml")
    # nor do facts, which any result of a module on a host may have
    with (tmp_path / "drain.yml").open("a") as tasks:
        tasks.write(FACTS)
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


def announce_two(azure: Simulator) -> list[str]:
    """Announce two events of vm1 with known ids; return the ids."""
    ids = ["5F0A3C52-7E1B-4D55-9C0E-2B8E4C1D9A10", "7D9E1B1F-0C60-4A57-8C3E-61D1D0B6F702"]
    for event_id, kind in zip(ids, ("Freeze", "Reboot")):
        azure.post("/events", {**LATE, "id": event_id, "type": kind, "resources": ["vm1"], "notice": "15m"})
    return ids


def test_events_of_one_vm_are_approved_by_one_request(trio: Simulator, tmp_path: Path) -> None:
    ids = announce_two(trio)
    ran = fleet_by_arm(trio, tmp_path).maintain()
    assert ran.returncode == 0, ran.stdout
    (line,) = trio.get("/log?what=approval")["lines"]
    assert (line["status"], sorted(line["ids"])) == (200, sorted(ids))
    assert rows(ran)["vm1"]["approved"]


def test_azure_without_the_stable_version_is_asked_per_event(trio: Simulator, tmp_path: Path) -> None:
    announce_two(trio)
    trio.post("/knobs", {"arm_stable_version": "off"})
    fleet = fleet_by_arm(trio, tmp_path)
    ran = fleet.maintain()
    assert ran.returncode == 0, ran.stdout
    assert requests_of_route(trio, "arm") == [400, 200, 200]
    assert fleet.reasons_of_starts() == ["approved", "approved"]


def test_answer_that_names_half_of_the_list_approves_only_this_half(trio: Simulator, tmp_path: Path) -> None:
    named, other = announce_two(trio)
    details = [{"target": named.lower(), "code": "OK", "message": "Successfully Approved"}]
    body = json.dumps({"error": {"code": "MultiStatusResponse", "message": "see details", "details": details}})
    trio.post("/faults", {"kind": "status", "status": 207, "body": body, "route": "arm"})
    fleet = fleet_by_arm(trio, tmp_path)
    ran = fleet.maintain()
    assert failed(ran) == {"vm1"} and fleet.did("recover") == {"vm1"}
    # the other half is sent again
    assert requests_of_route(trio, "arm") == [207] * 4
    assert {row["event_id"]: row["approved"] is not None for row in all_rows(ran)} == {named: True, other: False}
    assert "whether it approved is unknown" in ran.stdout


def test_refusals_name_the_remedy_and_the_hosts_recover(trio: Simulator, tmp_path: Path) -> None:
    for name in sorted(ALL):
        trio.post("/events", {**LATE, "resources": [name], "notice": "15m"})
    fleet = fleet_by_arm(
        trio,
        tmp_path,
        vm1={"maintenance_arm_token": "an-old-token"},
        vm2={"maintenance_arm_resource_id": VMS.replace("rg-simulated", "other") + "vm2"},
        vm3={"maintenance_arm_resource_id": VMS + "vm9"},
    )
    ran = fleet.maintain()
    assert failed(ran) == {"vm1", "vm2"} and fleet.did("recover") == ALL
    report = rows(ran)
    assert report["vm3"]["approval"] == "unknown_vm" and "maintenance_arm_resource_id" in report["vm3"]["why_not"]
    for name, status, remedy in (
        ("vm1", 401, "get a new one for maintenance_arm_token"),
        ("vm2", 403, "ScheduledEventContributor"),
    ):
        why_not = report[name]["why_not"]
        assert f"answered {status} (" in why_not and remedy in why_not and report[name]["approved"] is None
    # none of them was sent again
    assert sorted(requests_of_route(trio, "arm")) == [401, 403]
    assert fleet.reasons_of_starts() == ["NotBefore reached"] * 3
    assert "an-old-token" not in ran.stdout + ran.stderr


def test_event_of_a_vm_that_a_compromised_host_claims_is_not_approved(trio: Simulator, tmp_path: Path) -> None:
    # vm1 reads what vm2 would read: it claims the name and the event of vm2
    claims = {"maintenance_endpoint": trio.endpoints["vm2"]}
    trio.post("/events", {**LATE, "resources": ["vm2"], "notice": "15m"})
    fleet = fleet_by_arm(trio, tmp_path, vm1=claims, vm2=UNREACHABLE)
    ran = fleet.maintain(at={WAIT: lambda: trio.advance(3 * 3600)})
    assert fleet.did("prepare") == {"vm1"} and failed(ran) == {"vm2"}
    assert fleet.reasons_of_starts() == ["NotBefore reached"] and requests_of_route(trio, "arm") == []
    assert rows(ran)["vm1"]["approval"] == "not_prepared"


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


def test_event_to_which_azure_adds_a_vm_is_not_approved(trio: Simulator, tmp_path: Path) -> None:
    trio.post("/events", {**LATE, "resources": ["vm1"], "notice": "15m", "name": "grows"})
    fleet = fleet_by_arm(trio, tmp_path)
    ran = fleet.maintain(
        at={"Read the events again": lambda: trio.post("/events/grows/change", {"resources": ["vm1", "vm2"]})}
    )
    assert ran.returncode == 0, ran.stdout
    row = rows(ran)["vm1"]
    assert fleet.approvals() == [] and row["approval"] == "not_due" and "vm2: Azure has added it" in row["why_not"]


def test_host_that_fails_to_prepare_prevents_the_request(trio: Simulator, tmp_path: Path) -> None:
    trio.post("/events", {**THREE, "notice": "15m"})
    fleet = fleet_by_arm(trio, tmp_path)
    ran = fleet.maintain("test {{ inventory_hostname }} != vm2")
    assert failed(ran) == {"vm2"} and requests_of_route(trio, "arm") == []
    assert fleet.reasons_of_starts() == ["NotBefore reached"]


def test_check_mode_sends_no_request(trio: Simulator, tmp_path: Path) -> None:
    trio.post("/events", THREE)
    fleet = fleet_by_arm(trio, tmp_path)
    ran = fleet.maintain("true", "--check", at={PREPARE: lambda: None})
    assert ran.returncode == 0 and requests_of_route(trio, "arm") == []


def test_missing_token_or_resource_id_is_refused_before_a_host_prepares(trio: Simulator, tmp_path: Path) -> None:
    trio.post("/events", THREE)
    fleet = fleet_by_arm(trio, tmp_path, vm3={"id": ""})
    fleet.hosts.environment.pop("ARM_TOKEN")
    ran = fleet.maintain()
    assert failed(ran) == ALL and fleet.did("prepare") == set()
    assert "maintenance_arm_token: the token is missing" in ran.stdout
    assert "maintenance_arm_resource_id: the resource ID of the VM is missing" in ran.stdout
    assert requests_of_route(trio, "arm") == []
