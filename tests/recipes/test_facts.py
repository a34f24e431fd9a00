# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Facts before every play, and inventory groups from these facts, as in docs/ansible.md."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.recipes.fleet import Fleet
from support.recipes.project import Project, write_connections

GUIDE = "docs/ansible.md"
GATHER = "ansible web --module-name ansible.builtin.gather_facts"
PENDING, UNKNOWN = "ansible-inventory --graph maintenance_pending", "ansible-inventory --graph maintenance_unknown"
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
    project.take(GUIDE, "ansible.cfg", "inventory/group_vars/all.yml", "inventory/maintenance.yml")
    project.write_yaml("inventory/hosts.yml", {"web": {"hosts": dict.fromkeys(web.hosts)}})
    write_connections(project, web.hosts, "inventory/")
    project.run(GATHER).must_succeed()
    assert project.run(PENDING).must_succeed().text.split() == ["@maintenance_pending:", "|--web1"]
    assert project.run(UNKNOWN).must_succeed().text.split() == ["@maintenance_unknown:", "|--web3"]
