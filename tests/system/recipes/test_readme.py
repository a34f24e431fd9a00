# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The short recipes of README and docs/ansible.md."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.recipes.fleet import Fleet
from support.recipes.project import Project, write_inventory
from support.wait import wait_until

pytestmark = pytest.mark.all

README, GUIDE = "README.md", "docs/ansible.md"


@pytest.mark.follows(GUIDE, "update.yml")
def test_update_skips_hosts_with_events_or_unknown_state(fleet: Callable[..., Fleet], project: Project) -> None:
    web = fleet("web1", "web2", "web3")
    web.announce("Reboot", "web1")
    web.azure.post("/faults", {"kind": "unavailable", "vm": "web3"})
    project.take(GUIDE, "update.yml")
    write_inventory(project, "web", web.hosts)
    project.run("ansible-playbook --inventory hosts.yml update.yml").must_succeed()
    assert web.steps() == ["web2 update-site"]


@pytest.mark.follows(GUIDE, "approve.yml")
def test_approve_takes_user_restarts_and_short_freezes_only(fleet: Callable[..., Fleet], project: Project) -> None:
    web = fleet("web1", "web2")
    web.announce("Reboot", "web1", source="User")
    web.announce("Freeze", "web2", duration=5)
    redeploy = web.announce("Redeploy", "web2")
    project.take(GUIDE, "approve.yml")
    write_inventory(project, "web", web.hosts)
    project.run("ansible-playbook --inventory hosts.yml approve.yml").must_succeed()
    web.wait_until("Reboot web1 finished")
    web.wait_until("Freeze web2 finished")
    assert sorted(step for step in web.steps() if "approved" in step) == ["web1 approved", "web2 approved"]
    assert web.azure.get(f"/events/{redeploy}")["status"] == "Scheduled"


@pytest.mark.follows(README, "daemon.yml")
def test_daemon_prepares_approves_and_recovers(fleet: Callable[..., Fleet], project: Project) -> None:
    web = fleet("daemon1")
    host = web.hosts["daemon1"]
    ready = host.file("/srv/health/ready")
    ready.parent.mkdir(parents=True)
    ready.touch()
    project.take(README, "daemon.yml")
    write_inventory(project, "web", web.hosts)
    project.run("ansible-playbook --inventory hosts.yml daemon.yml").must_succeed()
    event_id = web.announce("Reboot", "daemon1", source="User", started_for="1h")
    web.wait_until("daemon1 approved")
    assert not ready.exists()
    wait_until(
        lambda: "Started" in host.run(["azure-scheduled-events", "status"], check=False).stdout,
        "Started in the status of the daemon",
    )
    web.azure.post(f"/events/{event_id}/complete")
    wait_until(ready.exists, "the recover hook")
    wait_until(
        lambda: "completed" in host.run(["azure-scheduled-events", "history"]).stdout,
        "completed in the history of the daemon",
    )
