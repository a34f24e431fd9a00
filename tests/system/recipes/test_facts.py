# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Facts before every play, and inventory groups from these facts, as in docs/ansible.md."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from support.recipes.fleet import Fleet
from support.recipes.project import Project, write_connections
from support.wait import wait_until

pytestmark = pytest.mark.all

GUIDE = "docs/ansible.md"
FACTS = "/etc/ansible/facts.d/azure_scheduled_events.fact"
GATHER = "ansible web --module-name ansible.builtin.gather_facts"
GATHER_LOCAL = "ansible web --become --module-name ansible.builtin.setup"
PENDING, UNKNOWN = "ansible-inventory --graph maintenance_pending", "ansible-inventory --graph maintenance_unknown"
INSTALL = "ansible-playbook hook-runner.yml"
LOCAL = [f"ansible-inventory --graph event_{name}" for name in ("pending", "prepared", "unknown")]
# takes longer than the time limit of Ansible's asynchronous fact modules
SLOW = "#!/bin/sh\nsleep 7\necho '{}'\n"


@pytest.mark.follows(
    GUIDE, "ansible.cfg", "inventory/group_vars/all.yml", "inventory/maintenance.yml", GATHER, PENDING, UNKNOWN
)
def test_inventory_groups_follow_pending_events(fleet: Callable[..., Fleet], project: Project) -> None:
    web = fleet("web1", "web2", "web3")
    web.announce("Reboot", "web1")
    web.azure.post("/faults", {"kind": "unavailable", "vm": "web3"})
    slow = web.hosts["web2"].file("/etc/ansible/facts.d/slow.fact")
    slow.parent.mkdir(parents=True)
    slow.write_text(SLOW, encoding="utf-8")
    slow.chmod(0o755)
    project.write_yaml("inventory/hosts.yml", {"web": {"hosts": dict.fromkeys(web.hosts)}})
    write_connections(project, web.hosts, "inventory/")
    project.run(GATHER).must_succeed()
    assert project.run(PENDING).must_succeed().text.split() == ["@maintenance_pending:", "|--web1"]
    assert project.run(UNKNOWN).must_succeed().text.split() == ["@maintenance_unknown:", "|--web3"]


@pytest.mark.follows(GUIDE, "hook-runner.yml", "inventory/local-facts.yml", INSTALL, GATHER_LOCAL, *LOCAL)
def test_inventory_groups_follow_the_facts_of_the_hook_runner(fleet: Callable[..., Fleet], project: Project) -> None:
    web = fleet("web1", "web2", "web3")
    # the facts modules of the other recipe are not needed
    project.write(
        "ansible.cfg",
        "[defaults]\ninventory = inventory\n"
        "fact_caching = ansible.builtin.jsonfile\nfact_caching_connection = .facts\n",
    )
    # the connection is root's already, and the hosts have no sudo
    connected = {"hosts": dict.fromkeys(web.hosts), "vars": {"ansible_become": False}}
    project.write_yaml("inventory/hosts.yml", {"web": connected})
    write_connections(project, web.hosts, "inventory/")
    project.run(INSTALL).must_succeed()
    event_id = web.announce("Reboot", "web1")

    def facts(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(web.hosts[name].run([FACTS]).stdout)
        return found

    def prepared(name: str) -> list[str]:
        return [event["event_id"] for event in facts(name)["events"] if event["prepared"] == "ok"]

    wait_until(lambda: prepared("web1") == [event_id], "the facts of web1")
    web.hosts["web3"].run(["systemctl", "stop", "azure-scheduled-events.service"])
    wait_until(lambda: facts("web2")["available"], "the facts of web2")
    project.run(GATHER_LOCAL).must_succeed()
    members = [project.run(command).must_succeed().text.split()[1:] for command in LOCAL]
    assert members == [["|--web1"], ["|--web1"], ["|--web3"]]
