# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The example of docs/ansible.md in which each host handles its own freeze."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.recipes.fleet import Fleet, maintenance_of
from support.recipes.project import Project, write_inventory
from support.wait import wait_until

GUIDE = "docs/ansible.md"
COMMAND = "ansible-playbook --inventory hosts.yml --forks 50 freeze.yml"
pytestmark = [pytest.mark.all, pytest.mark.follows(GUIDE, "freeze.yml", COMMAND)]


@pytest.fixture
def pair(fleet: Callable[..., Fleet], project: Project) -> Fleet:
    made = fleet("web1", "web2")
    write_inventory(project, "web", made.hosts)
    return made


def test_host_does_not_wait_for_another_host(pair: Fleet, project: Project) -> None:
    pair.announce("Freeze", "web2")
    ran = project.start(COMMAND)
    pair.wait_until("web2 join-load-balancer")
    assert pair.steps() == maintenance_of("Freeze", "web2")
    pair.announce("Freeze", "web1")
    ran.must_succeed()
    assert pair.steps() == [*maintenance_of("Freeze", "web2"), *maintenance_of("Freeze", "web1")]


def test_host_that_cannot_drain_is_not_approved_and_joins_afterwards(pair: Fleet, project: Project) -> None:
    pair.make_fail("web1", "leave-load-balancer")
    late = pair.announce("Freeze", "web1")
    pair.announce("Freeze", "web2")
    ran = project.start(COMMAND)
    pair.wait_until("web1 leave-load-balancer")
    pair.wait_until("web2 join-load-balancer")
    pair.start_event(late)
    assert ran.wait() == 2
    assert [step for step in pair.steps() if "web2" in step] == maintenance_of("Freeze", "web2")
    assert [step for step in pair.steps() if "web1" in step] == [
        step for step in maintenance_of("Freeze", "web1") if "approved" not in step
    ]


def test_refused_approval_leaves_no_host_drained(fleet: Callable[..., Fleet], project: Project) -> None:
    pair = fleet("web1 web2")
    write_inventory(project, "web", pair.hosts)
    event_id = pair.announce("Freeze", "web1", "web2")
    ran = project.start(COMMAND)
    wait_until(lambda: ran.text.count("fatal: [") == 2, "both refusals", lambda: ran.text)
    pair.start_event(event_id)
    assert ran.wait() == 2
    for name in pair.hosts:
        steps = [step for step in pair.steps() if name in step]
        assert steps == [
            f"{name} leave-load-balancer",
            "Freeze web1 web2 started",
            "Freeze web1 web2 finished",
            f"{name} join-load-balancer",
        ]


def test_hosts_without_a_freeze_are_unchanged(pair: Fleet, project: Project) -> None:
    """The time-out of the example, an hour, is a second here."""
    playbook = project.folder / "freeze.yml"
    playbook.write_text(playbook.read_text().replace("timeout: 3600", "timeout: 1"))
    pair.announce("Reboot", "web1")
    ran = project.run(COMMAND).must_succeed()
    assert pair.steps() == [] and "failed=0" in ran.text
