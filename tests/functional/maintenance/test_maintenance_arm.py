# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Approval through Azure Resource Manager, for hosts that read their events themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.maintenance.control_plane import TOKEN, VMS, by_arm, change, printed_playbook, requests_of_route
from support.maintenance.fleet import LATE, PREPARE, WAIT, Fleet, failed, rows, variables
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


def test_check_mode_sends_no_request(trio: Simulator, tmp_path: Path) -> None:
    trio.post("/events", THREE)
    fleet = fleet_by_arm(trio, tmp_path)
    ran = fleet.maintain("true", "--check", at={PREPARE: lambda: None})
    assert ran.returncode == 0 and requests_of_route(trio, "arm") == []
