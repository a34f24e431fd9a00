# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The service and the timer of docs/ansible.md start a run, and never a second one at the same time."""

from __future__ import annotations

import configparser
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.hosts.lab import Lab
from support.recipes.fleet import Fleet, maintenance_of
from support.recipes.printed import find
from support.recipes.project import TIMEOUT, Project, write_inventory
from support.wait import wait_until

pytestmark = pytest.mark.all

GUIDE = "docs/ansible.md"
SERVICE, TIMER = "azure-maintenance.service", "azure-maintenance.timer"
TASKS = ("maintenance.yml", "drain.yml", "undrain.yml")
UNITS = "/etc/systemd/system"
# a replacement of ansible-playbook, which the host does not have
STAND_IN = '#!/bin/sh\necho "$PWD $*" >>/var/log/runs\n'


@pytest.mark.follows(GUIDE, SERVICE, TIMER)
def test_timer_starts_a_run(lab: Lab, project: Project) -> None:
    host = lab.host("controller1")
    program = host.file("/srv/maintenance/.venv/bin/ansible-playbook")
    program.parent.mkdir(parents=True)
    program.write_text(STAND_IN, encoding="utf-8")
    program.chmod(0o755)
    for unit in (SERVICE, TIMER):
        host.file(f"{UNITS}/{unit}").write_bytes((project.folder / unit).read_bytes())
    host.run(["systemd-analyze", "verify", f"{UNITS}/{SERVICE}", f"{UNITS}/{TIMER}"])
    host.run(["systemctl", "daemon-reload"])
    host.run(["systemctl", "enable", "--now", TIMER])
    host.run(["systemctl", "start", SERVICE])
    assert set(host.file("/var/log/runs").read_text(encoding="utf-8").splitlines()) == {
        "/srv/maintenance maintenance.yml"
    }
    assert SERVICE in host.run(["systemctl", "list-timers", "--no-pager"]).stdout


@pytest.mark.follows(GUIDE, *TASKS, "inventory/group_vars/web.yml")
def test_service_command_does_nothing_while_another_run_is_active(
    fleet: Callable[..., Fleet], project: Project
) -> None:
    web = fleet("web1")
    write_inventory(project, "web", web.hosts, "inventory/")
    project.write("ansible.cfg", "[defaults]\ninventory = inventory\n")
    (project.folder / ".venv").symlink_to(Path(sys.executable).parents[1])
    unit = configparser.ConfigParser()
    unit.read_string(find(GUIDE, SERVICE).text)
    event_id = web.announce("Freeze", "web1", started_for="1h")
    first = project.start(unit["Service"]["ExecStart"])
    web.wait_until("Freeze web1 started")
    assert project.run(unit["Service"]["ExecStart"]).must_succeed().text == ""
    assert first.runs
    web.azure.post(f"/events/{event_id}/complete")
    first.must_succeed()
    wait_until(lambda: web.steps() == maintenance_of("Freeze", "web1"), "all steps", web.steps, TIMEOUT)
