# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The role and the playbook maintenance, as README and docs/ansible.md use them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from support.recipes.fleet import NOTE, Fleet, maintenance_of
from support.recipes.project import Project, write_connections, write_inventory

README, GUIDE, ROLE_README = "README.md", "docs/ansible.md", "roles/maintenance/README.md"
README_COMMAND = "ansible-playbook --inventory hosts.yml site.yml"
GUIDE_COMMAND = "ansible-playbook maintenance.yml"
CHECK = "ansible-playbook --check --diff maintenance.yml"
BY_NAME = (
    "ansible-playbook azure_imds.scheduled_events.maintenance"
    ' --extra-vars "maintenance_hosts=web maintenance_prepare=drain maintenance_recover=undrain.yml"'
)
FOLDER = (
    "ansible.cfg",
    "inventory/hosts.yml",
    "inventory/group_vars/all.yml",
    "inventory/group_vars/web.yml",
    "drain.yml",
    "undrain.yml",
)
TABLE = (
    "host  event                                        not before  prepared  approved  started   over      recovered"
    "  outcome    why not"
)
ROLE_IMPORT = "- ansible.builtin.import_playbook: azure_imds.scheduled_events.maintenance"


@pytest.fixture
def web(fleet: Callable[..., Fleet]) -> Fleet:
    return fleet("web1 web2")


@pytest.fixture
def guide_project(project: Project, web: Fleet) -> Project:
    write_connections(project, web.hosts, "inventory/")
    return project


def notes(fleet: Fleet) -> list[Path]:
    """Return the notes of runs on the hosts."""
    return [host.file(NOTE) for host in fleet.hosts.values() if host.file(NOTE).exists()]


def in_order(steps: list[str]) -> list[str]:
    """Return the steps without arguments, by time; simultaneous steps of several hosts by name."""
    names = [" ".join(step.split()[:2]) if "-load-balancer" in step else step for step in steps]
    runs = re.findall(r"((?:[^\n]*-load-balancer\n)+|[^\n]*\n)", "".join(f"{name}\n" for name in names))
    return [step for run in runs for step in sorted(run.splitlines())]


def shape(line: str) -> str:
    """Return a line of the report with zeros for ids and times."""
    return re.sub(r"[0-9A-F]{8}-[-0-9A-F]{27}|\d\d:\d\d:\d\d", lambda match: "0" * len(match[0]), line)


@pytest.mark.follows(README, "site.yml", README_COMMAND)
@pytest.mark.follows(GUIDE, "drain.yml", "undrain.yml")
def test_playbook_of_the_readme_takes_a_set_through_a_reboot(fleet: Callable[..., Fleet], project: Project) -> None:
    web = fleet("web1 web2", "web3")
    write_inventory(project, "web", web.hosts)
    web.announce("Reboot", "web1", "web2")
    project.run(README_COMMAND).must_succeed()
    assert in_order(web.steps()) == maintenance_of("Reboot", "web1", "web2")


@pytest.mark.all
@pytest.mark.follows(GUIDE, *FOLDER, "maintenance.yml", CHECK, GUIDE_COMMAND)
def test_playbook_of_the_guide_continues_after_a_kill(web: Fleet, guide_project: Project) -> None:
    event_id = web.announce("Freeze", "web1", "web2", started_for="1h")
    shown = guide_project.run(CHECK).must_succeed().text
    assert re.search(r'^-.*"not approved"\n\+.*"approved"$', shown, re.MULTILINE), shown
    assert web.steps() == [] and notes(web) == []
    ran = guide_project.start(GUIDE_COMMAND)
    web.wait_until("Freeze web1 web2 started")
    ran.kill()
    assert len(notes(web)) == 2
    web.azure.post(f"/events/{event_id}/complete")
    guide_project.run(GUIDE_COMMAND).must_succeed()
    assert in_order(web.steps()) == maintenance_of("Freeze", "web1", "web2")
    assert notes(web) == []


@pytest.mark.all
@pytest.mark.follows(GUIDE, *FOLDER, "roles/drain/tasks/main.yml", BY_NAME, TABLE)
def test_playbook_by_name_runs_a_role_and_prints_the_report(web: Fleet, guide_project: Project) -> None:
    group = guide_project.folder / "inventory/group_vars/web.yml"
    group.write_text(group.read_text() + "balancer: lb7\n")
    event_id = web.announce("Freeze", "web1", "web2", started_for="1h")
    ran = guide_project.start(BY_NAME)
    web.end_when_seen(event_id)
    shown = ran.must_succeed().text
    assert in_order(web.steps()) == maintenance_of("Freeze", "web1", "web2")
    assert {step for step in web.steps() if "leave" in step} == {
        "web1 leave-load-balancer lb7",
        "web2 leave-load-balancer lb7",
    }
    table = guide_project.take_as("table", GUIDE, TABLE).read_text(encoding="utf-8").splitlines()
    assert [shape(line) for line in re.findall(r'^ +"((?:host|web\d) .*)",?$', shown, re.MULTILINE)] == [
        shape(line) for line in table
    ]
    report = json.loads(shown.split("CUSTOM STATS:")[1].split("RUN:")[1])["maintenance_report"]
    assert [(row["host"], row["event_id"], row["why_not"]) for row in report] == [
        ("web1", event_id, ""),
        ("web2", event_id, ""),
    ]
    assert all(row["prepared"] <= row["approved"] <= row["over"] <= row["recovered"] for row in report)


@pytest.mark.all
@pytest.mark.follows(GUIDE, *FOLDER, "site.yml")
def test_playbook_is_imported_by_a_playbook_of_the_user(web: Fleet, guide_project: Project) -> None:
    web.announce("Freeze", "web1", "web2")
    guide_project.run("ansible-playbook site.yml").must_succeed()
    assert in_order(web.steps()) == maintenance_of("Freeze", "web1", "web2")


@pytest.mark.all
@pytest.mark.follows(GUIDE, "drain.yml", "undrain.yml")
@pytest.mark.follows(ROLE_README, ROLE_IMPORT)
def test_import_of_the_role_runs_its_plays(fleet: Callable[..., Fleet], project: Project) -> None:
    web = fleet("web1")
    project.take_as("site.yml", ROLE_README, ROLE_IMPORT)
    write_inventory(project, "web", web.hosts)
    web.announce("Freeze", "web1")
    shown = project.run("ansible-playbook --inventory hosts.yml site.yml").must_succeed().text
    assert "why not" in shown
    assert web.steps() == maintenance_of("Freeze", "web1")


@pytest.mark.all
@pytest.mark.follows(GUIDE, "drain.yml", "undrain.yml")
@pytest.mark.follows(ROLE_README, "limits.yml")
def test_limits_leave_the_second_event_to_the_next_run(fleet: Callable[..., Fleet], project: Project) -> None:
    web = fleet("web1", "web2")
    write_inventory(project, "web", web.hosts)
    web.announce("Freeze", "web1")
    web.announce("Freeze", "web2", notice="26m")
    maintain = "ansible-playbook --inventory hosts.yml limits.yml"
    assert "waiting" in project.run(maintain).must_succeed().text
    assert web.steps() == maintenance_of("Freeze", "web1")
    project.run(maintain).must_succeed()
    assert web.steps() == maintenance_of("Freeze", "web1") + maintenance_of("Freeze", "web2")


@pytest.mark.all
@pytest.mark.follows(ROLE_README, "workers.yml")
def test_ready_hooks_restart_a_service_around_the_event(fleet: Callable[..., Fleet], project: Project) -> None:
    workers = fleet("worker1")
    (host,) = workers.hosts.values()
    host.file("/etc/systemd/system/app.service").write_text("[Service]\nExecStart=/bin/sleep infinity\n")
    host.run(["systemctl", "daemon-reload"])
    host.run(["systemctl", "start", "app.service"])
    write_inventory(project, "workers", workers.hosts)

    def invocation() -> str:
        return str(host.run(["systemctl", "show", "--property", "ActiveState,InvocationID", "app.service"]).stdout)

    started = [invocation()]
    for _event in range(2):
        workers.announce("Freeze", "worker1")
        project.run("ansible-playbook --inventory hosts.yml --become workers.yml").must_succeed()
        started.append(invocation())
    assert len(set(started)) == 3 and all("ActiveState=active" in each for each in started), started
    assert workers.steps() == ["worker1 approved", "Freeze worker1 started", "Freeze worker1 finished"] * 2
