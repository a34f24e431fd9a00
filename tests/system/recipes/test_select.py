# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A playbook that selects events with the filters and tests of the collection, as in docs/ansible.md."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from support.recipes.fleet import Fleet
from support.recipes.project import Project, write_connections

pytestmark = pytest.mark.all

GUIDE = "docs/ansible.md"
COMMAND = "ansible-playbook drain-early.yml"


@pytest.mark.follows(GUIDE, "drain-early.yml", COMMAND)
def test_only_vms_with_an_interrupting_event_and_enough_time_leave(
    fleet: Callable[..., Fleet], project: Project
) -> None:
    web = fleet("web1", "web2", "web3")
    web.announce("Reboot", "web1")
    web.announce("Freeze", "web2", duration=5)
    web.announce("Redeploy", "web3", notice="50s")
    project.take(GUIDE, "ansible.cfg", "drain-early.yml")
    project.write_yaml("inventory/hosts.yml", {"web": {"hosts": dict.fromkeys(web.hosts)}})
    write_connections(project, web.hosts, "inventory/")
    ran = project.run(COMMAND).must_succeed()
    assert [step for step in web.steps() if "leave-load-balancer" in step] == ["web1 leave-load-balancer"]
    (left,) = set(re.findall(r"ok: \[web1\][^}]*Reboot of web1 in (\d+) s", ran.text))
    # 25 minutes of notice, less the time that the playbook took
    assert 600 < int(left) <= 1500
