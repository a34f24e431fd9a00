# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The role and the playbook maintenance, as README and docs/ansible.md have them."""

from __future__ import annotations

from typing import Callable

import pytest

from recipes.fleet import Fleet
from recipes.printed import find
from recipes.project import Project, connect, invent

README, GUIDE = "README.md", "docs/ansible.md"
OF_README = "ansible-playbook --inventory hosts.yml --forks 50 maintenance.yml"
OF_GUIDE = "ansible-playbook maintenance.yml"
FOLDER = ("ansible.cfg", "inventory/hosts.yml", "inventory/group_vars/all.yml", "inventory/group_vars/web.yml")
TASKS = ("drain.yml", "undrain.yml")


def assert_went_through(fleet: Fleet, kind: str, *names: str) -> None:
    """These VMs left the load balancer, then one approved for all, then the event came and went, then they joined again; no other did anything."""
    steps = fleet.happened()
    event = f"{kind} {' '.join(names)}"
    middle = [f"{names[0]} approved", f"{event} started", f"{event} finished"]
    begin, end = len(names), len(names) + len(middle)
    assert sorted(steps[:begin]) == [f"{name} leave-load-balancer" for name in names]
    assert steps[begin:end] == middle
    assert sorted(steps[end:]) == [f"{name} join-load-balancer" for name in names]


@pytest.mark.follows(README, "maintenance.yml", "group_vars/web.yml", OF_README)
@pytest.mark.follows(GUIDE, *TASKS)
def test_the_playbook_of_the_readme_takes_a_set_through_a_reboot(fleet: Callable[..., Fleet], project: Project) -> None:
    web = fleet("web1 web2", "web3")
    project.take(README, "maintenance.yml", "group_vars/web.yml")
    project.take(GUIDE, *TASKS)
    invent(project, "web", web.hosts)
    web.announce("Reboot", "web1", "web2")
    project.run(OF_README).must_succeed()
    assert_went_through(web, "Reboot", "web1", "web2")


@pytest.mark.follows(GUIDE, *FOLDER, *TASKS, "maintenance.yml", OF_GUIDE)
def test_the_project_folder_of_the_guide(fleet: Callable[..., Fleet], project: Project) -> None:
    web = fleet("web1 web2")
    project.take(GUIDE, *FOLDER, *TASKS, "maintenance.yml")
    connect(project, web.hosts, "inventory/")
    web.announce("Freeze", "web1", "web2")
    project.run(OF_GUIDE).must_succeed()
    assert_went_through(web, "Freeze", "web1", "web2")


def test_readme_and_guide_print_the_same_playbook() -> None:
    assert find(README, "maintenance.yml").text == find(GUIDE, "maintenance.yml").text
