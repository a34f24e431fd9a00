# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The simulated Azure Resource Manager for maintenance runs, and events as a rulebook passes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from support.maintenance.fleet import Fleet, variables
from support.recipes.printed import find
from support.simulator_process import Simulator

TOKEN = "eyJ0.a-token-of-this-test.ab_c"
# of the simulator's instance metadata
VMS = (
    "/subscriptions/00000000-0000-4000-8000-00005eed0001/resourceGroups/rg-simulated"
    "/providers/Microsoft.Compute/virtualMachines/"
)


def by_arm(azure: Simulator, **more: Any) -> dict[str, Any]:
    """Return the variables for approvals through the simulated Azure Resource Manager, which accepts only TOKEN."""
    azure.post("/knobs", {"arm_token": TOKEN})
    return {
        "maintenance_approve_by": "arm",
        "maintenance_arm_endpoint": azure.control + "/arm",
        # not in the arguments of ansible-playbook, which Ansible shows to the user
        "maintenance_arm_token": "{{ lookup('ansible.builtin.env', 'ARM_TOKEN') }}",
        # as the inventory of azure_rm has it
        "id": VMS + "{{ inventory_hostname }}",
        **more,
    }


def without_imds(azure: Simulator, folder: Path, name: str, **more: Any) -> dict[str, Any]:
    """Return the variables of a host that cannot read the events of its VM."""
    return {
        **variables(azure, folder, name),
        "maintenance_events_from": "caller",
        "maintenance_endpoint": "http://127.0.0.1:9",
        "maintenance_notes": str(folder / "notes"),
        **more,
    }


def change(event: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the change of an event, which the control API has returned, as Event Grid reports it."""
    return {
        "schema": "azure_imds.scheduled_events/change/1",
        "change": "appeared",
        "outcome": None,
        "event": {
            "event_id": event["id"],
            "event_type": event["type"],
            "status": "Scheduled",
            "resources": event["resources"],
            "resource_type": "VirtualMachine",
            "not_before": None,
            "description": "",
            "source": "Platform",
            "duration_seconds": None,
        },
        "reported_by": "event_grid",
        **more,
    }


def printed_playbook(fleet: Fleet, name: str) -> str:
    """Write a playbook of the role's README for all hosts of the fleet, and the files that it names."""
    fleet.steps()
    for step, file in (("prepare", "drain.yml"), ("recover", "undrain.yml")):
        (fleet.folder / file).write_text((fleet.folder / f"{step}.yml").read_text())
    text = find("roles/maintenance/README.md", name).text
    playbook = fleet.folder / name
    playbook.write_text(re.sub(r"maintenance_hosts: \w+", "maintenance_hosts: all", text))
    return str(playbook)


def requests_of_route(azure: Simulator, route: str) -> list[int]:
    """Return the status of each answer to requests of this route, such as "arm"."""
    return [request["status"] for request in azure.get("/requests")["requests"] if request["route"] == route]
