# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Several ready hooks on one host through a reboot, two events at once, and a preparation that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.hosts.bridge import GATEWAY
from support.hosts.role_host import Azure, RoleHost, azure_of
from support.ready_hooks.web_server import WebServer
from support.ready_hooks.workload_host import RECORDS, WorkloadHost
from support.wait import wait_until

pytestmark = pytest.mark.all

HAPROXY = """
global
    stats socket /run/haproxy/admin.sock level admin mode 600
defaults
    mode http
    timeout connect 1s
    timeout client 30s
    timeout server 30s
backend web
    option httpchk GET /
    server web1 127.0.0.1:80 check inter 200ms
"""
# fails while the file exists
SAVE = "test ! -e /var/lib/refused && touch /var/lib/saved"
HOOKS: list[dict[str, Any]] = [
    {"use": "log", "file": "/var/log/azure-events.jsonl"},
    {"use": "notify", "url_file": "/etc/maintenance-webhook"},
    {"use": "haproxy", "server": "web/web1", "wait": "2s"},
    {"use": "health-file", "path": "/var/www/html/healthy", "wait": "0.1s"},
    {"use": "connections", "ports": [80], "ignore": ["127.0.0.0/8"], "quiet_for": "0.1s"},
    {"use": "command", "prepare": SAVE, "recover": "rm -f /var/lib/saved"},
    {"use": "systemd-units", "units": ["app.service"]},
]


class Site:
    """The host with its hooks, Azure, and the server that gets the notifications."""

    def __init__(self, workload: WorkloadHost, role: RoleHost, azure: Azure, server: WebServer) -> None:
        self.workload, self.role, self.azure, self.server = workload, role, azure, server

    def is_in_service(self) -> list[bool]:
        """Return whether HAProxy, the probe's file, the saved state and the unit are as in normal operation."""
        asked = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/run/haproxy/admin.sock'); "
        asked += "s.send(b'show servers state web\\n'); print(s.makefile().read().splitlines()[2].split()[6])"
        return [
            self.workload.run("python3", "-c", asked).stdout.strip() == "0",
            self.workload.host.file("/var/www/html/healthy").exists(),
            not self.workload.host.file("/var/lib/saved").exists(),
            self.workload.run("systemctl", "is-active", "app.service", check=False).stdout.strip() == "active",
        ]

    def records(self) -> list[str]:
        return sorted(path.stem for path in self.workload.host.file(RECORDS).glob("*.json"))

    def announce(self, kind: str) -> str:
        """Announce an event, and wait for the end of its preparation."""
        event = self.azure.announce(kind, self.workload.host.name)
        wait_until(lambda: self.prepared(event) in ("ok", "failed"), f"{kind} is prepared", self.role.log)
        return event

    def prepared(self, event: str) -> str:
        return "".join(
            str(each["prepared"]) for each in self.role.status().get("events", []) if each["event_id"] == event
        )

    def end(self, *events: str) -> None:
        for event in events:
            self.azure.simulator.post(f"/events/{event}/complete")
        wait_until(self.role.is_idle, "no event is left", self.role.log)


@pytest.fixture(scope="module")
def site(workload_host: Callable[[str], WorkloadHost], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    workload = workload_host("several1")
    workload.write("/etc/haproxy/haproxy.cfg", HAPROXY)
    install = "\n[Install]\nWantedBy=multi-user.target\n"
    workload.write("/etc/systemd/system/app.service", "[Service]\nExecStart=sleep infinity\n" + install)
    workload.write("/var/www/html/healthy", "yes")
    workload.run("systemctl", "daemon-reload")
    workload.run("systemctl", "enable", "--now", "nginx", "haproxy", "app")
    folder = tmp_path_factory.mktemp("several")
    role = RoleHost(workload.host, folder, hooks=())
    with WebServer(GATEWAY) as server, azure_of({workload.host.name: workload.host}, folder) as azure:
        workload.write("/etc/maintenance-webhook", server.url + "/secret", 0o600)
        role.must_apply(ready_hooks=HOOKS)
        wait_until(role.watches, "the daemon polls", role.log)
        yield Site(workload, role, azure, server)
        role.must_apply(state="absent", ready_hooks=HOOKS)
        workload.run("systemctl", "disable", "--now", "nginx", "haproxy", "app")


def test_reboot_of_the_host_is_prepared_reported_and_undone(site: Site) -> None:
    assert site.role.ask("check").returncode == 0
    assert site.is_in_service() == [True] * 4
    event = site.announce("Reboot")
    assert site.is_in_service() == [False] * 4
    site.azure.wait_for_approval(event, site.role)
    boot = site.workload.host.boot_id
    site.azure.advance(1)
    site.azure.wait_for_impact(site.workload.host.name, "reboot")
    wait_until(lambda: site.workload.host.is_up and site.role.watches(), "the host is up again", site.role.log)
    assert site.workload.host.boot_id != boot
    wait_until(lambda: len(site.server.requests) == 2, "the stage started is reported", site.role.log)
    assert "command" in site.records()
    site.end(event)
    assert site.is_in_service() == [True] * 4 and site.records() == []
    assert [request.json["stage"] for request in site.server.requests] == ["prepare", "started", "recover"]
    assert "/secret" not in site.role.log()


def test_two_events_are_undone_after_the_second(site: Site) -> None:
    first, second = site.announce("Reboot"), site.announce("Freeze")
    site.azure.simulator.post(f"/events/{first}/complete")
    wait_until(lambda: site.role.sees("event_id", second), "the first one is gone", site.role.log)
    assert site.is_in_service() == [False] * 4
    site.end(second)
    assert site.is_in_service() == [True] * 4 and site.records() == []


def test_preparation_that_fails_in_the_middle_is_undone(site: Site) -> None:
    site.workload.host.file("/var/lib/refused").touch()
    event = site.announce("Redeploy")
    assert site.prepared(event) == "failed" and site.azure.approvals(event) == 0
    site.workload.host.file("/var/lib/refused").unlink()
    site.end(event)
    assert site.is_in_service() == [True] * 4 and site.records() == []
