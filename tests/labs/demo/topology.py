# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The hosts of a run: HAProxy, web services, PostgreSQL; and the simulator that interrupts them."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from demo import database
from demo.plan import Plan
from support.hosts.apply_impact import DONE, Impacts
from support.hosts.bridge import ip
from support.hosts.host import Host
from support.hosts.lab import Lab, start_simulator
from support.simulator_process import Simulator
from support.wait import wait_until

FIRST_ADDRESS = 10
BALANCER = "lb"
BACKEND = "web"
RUNTIME_PORT = 9999
# columns of its statistics
NAME, RETRIES, REDISPATCHES, STATUS = 1, 15, 16, 17
HERE = Path(__file__).resolve().parent
# Linux gives root 128 inotify instances by default, of which a host has 7. These units have 3 of them,
# and no use here: hosts of other tests may run at the same time.
MASKED = ("systemd-logind.service", "systemd-ask-password-wall.path", "systemd-ask-password-console.path")
BALANCER_SETTINGS = """\
global
    stats socket ipv4@0.0.0.0:{port} level admin
defaults
    mode http
    timeout connect 2s
    timeout client {client:g}s
    timeout server {server:g}s
    timeout check {check:g}s
    # a request that reached no server, or got no answer from it, goes to another one
    retries 3
    option redispatch 1
    retry-on conn-failure empty-response
frontend shop
    bind :80
    default_backend {backend}
backend {backend}
    balance roundrobin
    option httpchk GET /health
    default-server check inter 1s fall 2 rise 2
{servers}
"""
WEB_UNIT = """\
[Unit]
Description=Web service of the demonstration
After=network.target
[Service]
ExecStart=/usr/bin/python3 /srv/web_service.py {name} {databases} {seconds:g}
Restart=always
[Install]
WantedBy=multi-user.target
"""


class Outages(Impacts):
    """Applies interruptions as other machines see them: a host that is off or frozen answers no packet.

    The network namespace of a host of the lab outlives the host. Its kernel would answer for a host
    that is off ("connection refused", at once), and accept connections for a frozen one. Therefore the
    cable of the host is disconnected for that time.

    ``away`` is the seconds between the power-off of a host and its boot.

    Attributes:
        failed: the errors of interruptions.
    """

    def __init__(self, hosts: Mapping[str, Host], folder: Path, away: float) -> None:
        super().__init__(hosts, folder)
        self._away = away
        self.failed: list[str] = []

    def answer(self, act: str, name: str) -> str:
        host = self.hosts[name]
        # the end on the bridge, see support/hosts/bridge.py
        cable = f"host{int(host.address.rpartition('.')[2]) - FIRST_ADDRESS}"
        try:
            if act == "freeze":
                ip("link", "set", cable, "down")
                host.freeze()
            elif act == "thaw":
                host.thaw()
                ip("link", "set", cable, "up")
            else:
                host.power_off()
                ip("link", "set", cable, "down")
                time.sleep(self._away)
                if act == "redeploy":
                    host.empty_ephemeral()
                ip("link", "set", cable, "up")
                host.boot()
        except Exception as error:  # pylint: disable=broad-exception-caught  # goes to the report
            self.failed.append(f"{name}: {act}: {type(error).__name__}: {error}")
            return self.failed[-1]
        self.happened.append((name, act))
        return DONE


class Topology:
    """The hosts, with all services running, and their simulator."""

    def __init__(self, plan: Plan, hosts: Mapping[str, Host], simulator: Simulator, outages: Outages) -> None:
        self.plan, self.hosts, self.simulator, self.outages = plan, dict(hosts), simulator, outages
        self.databases = {name: hosts[name] for name in plan.databases}
        self.webs = {name: hosts[name] for name in plan.webs}

    @property
    def balancer(self) -> Host:
        return self.hosts[BALANCER]

    @property
    def handled(self) -> dict[str, Host]:
        """The hosts with the handling of events."""
        return {name: self.hosts[name] for name in self.plan.handled}

    def servers(self) -> dict[str, str]:
        """Return the status of each server of the backend, as HAProxy reports it."""
        return {row[NAME]: row[STATUS] for row in self._statistics()}

    def repeated(self) -> int:
        """Return how many times HAProxy repeated a request that a server did not take or answer."""
        return sum(int(row[RETRIES]) + int(row[REDISPATCHES]) for row in self._statistics())

    def _statistics(self) -> list[list[str]]:
        with socket.create_connection((self.balancer.address, RUNTIME_PORT), 10) as channel:
            channel.sendall(f"show stat {BACKEND} 4 -1\n".encode())
            lines = channel.makefile(encoding="utf-8").read().strip().splitlines()
        return [line.split(",") for line in lines if not line.startswith("#")]

    def is_whole(self) -> bool:
        """Return True if each server takes requests and each database host is a primary or streams from it."""
        if not all(status == "UP" for status in self.servers().values()):
            return False
        found = database.primaries(self.databases)
        return len(found) == 1 and database.streaming(self.hosts[found[0]]) == len(self.databases) - 1


@contextlib.contextmanager
def open_topology(plan: Plan, folder: Path) -> Iterator[Topology]:
    """Make the hosts in the namespaces of this process, and wait until all services work."""
    with Lab(folder) as lab:
        hosts = {}
        for name in (BALANCER, *plan.webs, *plan.databases):
            hosts[name] = lab.host(name)
            hosts[name].run(["systemctl", "mask", "--quiet", "--now", *MASKED])
        names = "".join(f"{host.address} {name}\n" for name, host in hosts.items())
        for host in hosts.values():
            with host.file("/etc/hosts").open("a", encoding="utf-8") as file:
                file.write(names)
        database.install({name: hosts[name] for name in plan.databases})
        for name in plan.webs:
            install_web_service(hosts[name], plan)
        install_balancer(hosts[BALANCER], plan)
        managed = {name: host for name, host in hosts.items() if name != BALANCER}
        outages = Outages(managed, folder / "lab", plan.away)
        with outages, start_simulator(outages, knobs={"idle_disable": 0}) as simulator:
            topology = Topology(plan, hosts, simulator, outages)
            wait_until(topology.is_whole, "all services work", lambda: f"{topology.servers()}")
            yield topology


def install_web_service(host: Host, plan: Plan) -> None:
    source = HERE / "web_service.py"
    host.file("/srv/web_service.py").write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    install_unit(
        host,
        "shop",
        WEB_UNIT.format(name=host.name, databases=",".join(plan.databases), seconds=plan.limits.transaction),
    )


def install_unit(host: Host, name: str, text: str) -> None:
    """Install a unit that starts with the host, and start it."""
    host.file(f"/etc/systemd/system/{name}.service").write_text(text, encoding="utf-8")
    host.run(["systemctl", "daemon-reload"])
    host.run(["systemctl", "enable", "--quiet", "--now", f"{name}.service"])


def install_balancer(host: Host, plan: Plan) -> None:
    servers = "".join(f"    server {name} {name}:8080\n" for name in plan.webs)
    text = BALANCER_SETTINGS.format(
        port=RUNTIME_PORT,
        client=plan.limits.client,
        server=plan.limits.server,
        check=plan.limits.check,
        backend=BACKEND,
        servers=servers,
    )
    host.file("/etc/haproxy/haproxy.cfg").write_text(text, encoding="utf-8")
    host.run(["systemctl", "enable", "--quiet", "--now", "haproxy.service"])
