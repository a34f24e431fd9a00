# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The playbooks of docs/migration.md replace an old handling by the hook runner, and no host has two owners."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.hosts.host import Host
from support.recipes.fleet import Fleet, maintenance_of
from support.recipes.project import TIMEOUT, Project, write_inventory
from support.wait import wait_until

pytestmark = pytest.mark.all

PAGE = "docs/migration.md"
SERVICE, TIMER = "azure-events.service", "azure-events.timer"
SCRIPT, DRAINED = "/usr/local/sbin/azure-events", "/var/lib/azure-events-drained"
SWITCH = "ansible-playbook --inventory hosts.yml switch.yml"
CHECK = (
    "ansible web --inventory hosts.yml --become --module-name ansible.builtin.command"
    ' --args "azure-scheduled-events check"'
)


def install_timer(host: Host, project: Project) -> None:
    """Give a host the old handling of the page, and start its timer."""
    script = host.file(SCRIPT)
    script.write_bytes(project.take_as("azure-events", PAGE, "#!/bin/sh").read_bytes())
    script.chmod(0o755)
    for unit in (SERVICE, TIMER):
        host.file(f"/etc/systemd/system/{unit}").write_bytes((project.folder / unit).read_bytes())
    host.run(["systemctl", "daemon-reload"])
    host.run(["systemctl", "enable", "--now", TIMER])


def owners(host: Host) -> list[str]:
    """Return the units that handle events on a host, and that start with it."""
    units = (TIMER, "azure-scheduled-events.service")
    return [
        unit
        for unit in units
        if "active" in host.run(["systemctl", "is-active", unit], check=False).stdout.split()
        and "enabled" in host.run(["systemctl", "is-enabled", unit], check=False).stdout.split()
    ]


@pytest.mark.follows(PAGE, "#!/bin/sh", SERVICE, TIMER, "switch.yml", SWITCH, CHECK)
def test_each_host_changes_its_owner_when_it_has_no_event(fleet: Callable[..., Fleet], project: Project) -> None:
    web = fleet("timer1", "timer2", "timer3")
    for host in web.hosts.values():
        install_timer(host, project)
    event_id = web.announce("Reboot", "timer1")
    web.hosts["timer2"].file(DRAINED).touch()
    write_inventory(project, "web", web.hosts)

    project.run(SWITCH).must_succeed()
    assert [owners(host) for host in web.hosts.values()] == [[TIMER], [TIMER], ["azure-scheduled-events.service"]]

    web.azure.post(f"/events/{event_id}/cancel")
    web.hosts["timer2"].file(DRAINED).unlink()
    project.run(SWITCH).must_succeed()
    assert [owners(host) for host in web.hosts.values()] == [["azure-scheduled-events.service"]] * 3
    assert "all is well" in project.run(CHECK).must_succeed().text

    web.announce("Reboot", "timer1")
    expected = maintenance_of("Reboot", "timer1")
    wait_until(lambda: web.steps()[-5:] == expected, "all steps", web.steps, TIMEOUT)
    assert not any(host.file(DRAINED).exists() for host in web.hosts.values())
