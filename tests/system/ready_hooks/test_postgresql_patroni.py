# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook postgresql with two members of Patroni on two hosts, and etcd on a third one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from support.ready_hooks.postgresql_pair import Load, ask
from support.ready_hooks.printed_play import entries, options_of
from support.ready_hooks.workload_host import Completed, WorkloadHost
from support.wait import wait_until

pytestmark = pytest.mark.all

PORT = 5433
SECONDS = 120.0
CONFIGURATION = "/etc/patroni/config.yml"
PAGE = "docs/ready-hooks/postgresql.md"
TEMPLATE = """
scope: lab
name: {name}
restapi: {{listen: "0.0.0.0:8008", connect_address: "{address}:8008"}}
etcd3: {{host: "{etcd}:2379"}}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 1
    retry_timeout: 5
    postgresql: {{use_pg_rewind: true, parameters: {{shared_buffers: 16MB}}}}
  initdb: [data-checksums, {{encoding: UTF8}}]
  pg_hba: ["local all all trust", "host all,replication all samenet trust"]
postgresql:
  listen: "0.0.0.0:{port}"
  connect_address: "{address}:{port}"
  data_dir: /var/lib/postgresql/patroni
  bin_dir: /usr/lib/postgresql/15/bin
  pgpass: /var/lib/postgresql/patroni.pgpass
  authentication: {{superuser: {{username: postgres}}, replication: {{username: replicator}}}}
  parameters: {{unix_socket_directories: /var/run/postgresql}}
"""
ETCD = 'ETCD_LISTEN_CLIENT_URLS="http://0.0.0.0:2379"\nETCD_ADVERTISE_CLIENT_URLS="http://{address}:2379"\n'


class Cluster(NamedTuple):
    hosts: dict[str, WorkloadHost]
    client: WorkloadHost

    def states(self) -> dict[str, tuple[str, str]]:
        """Return role and state of each member."""
        command = ("patronictl", "-c", CONFIGURATION, "list", "-f", "json")
        for host in self.hosts.values():
            if host.host.is_up and (done := host.run(*command, check=False)).returncode == 0:
                return {row["Member"]: (row["Role"], row["State"]) for row in json.loads(done.stdout)}
        return {}

    def wait_until_healthy(self) -> str:
        """Wait until both members run, and return the leader."""
        wait_until(
            lambda: sorted(self.states().values()) == [("Leader", "running"), ("Replica", "running")],
            "both members run",
            lambda: [str(self.states())] + [host.shell("journalctl -n 30 -u patroni") for host in self.hosts.values()],
            pause=0.3,
        )
        return next(name for name, (role, _state) in self.states().items() if role == "Leader")


@pytest.fixture(scope="module")
def built(workload_host: Callable[[str], WorkloadHost]) -> Cluster:
    cluster = Cluster({name: workload_host(name) for name in ("db1", "db2")}, workload_host("client"))
    etcd = cluster.client.host.address
    cluster.client.write("/etc/default/etcd", ETCD.format(address=etcd))
    cluster.client.run("systemctl", "start", "etcd")
    for name, host in cluster.hosts.items():
        host.run("systemctl", "disable", "--quiet", "--now", "postgresql.service", "postgresql@15-main.service")
        host.write(CONFIGURATION, TEMPLATE.format(name=name, address=host.host.address, etcd=etcd, port=PORT))
        host.run("systemctl", "enable", "--quiet", "--now", "patroni")
    leader = cluster.wait_until_healthy()
    ask(cluster.hosts[leader], "CREATE TABLE acknowledged (number int PRIMARY KEY)", PORT)
    return cluster


@pytest.fixture
def cluster(built: Cluster) -> Cluster:
    built.wait_until_healthy()
    return built


def attempt(host: WorkloadHost, verb: str, **more: Any) -> Completed:
    _play, printed = entries("postgresql")
    return host.hook("postgresql", verb, {**options_of(printed), "port": PORT, **more}, seconds=SECONDS)


def run(host: WorkloadHost, verb: str, **more: Any) -> str:
    done = attempt(host, verb, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.follows(PAGE, "hook_runner_ready_hooks:")
def test_events_on_both_hosts_under_load_lose_no_acknowledged_write(cluster: Cluster) -> None:
    load = Load(cluster.client, tuple(cluster.hosts.values()), PORT)
    ask(cluster.hosts[cluster.wait_until_healthy()], "TRUNCATE acknowledged", PORT)
    with load:
        for _event in range(2):
            leader = cluster.wait_until_healthy()
            load.wait_for_more()
            run(cluster.hosts[leader], "prepare")
            assert cluster.states()[leader][0] == "Replica"
            load.wait_for_more()
            cluster.hosts[leader].host.reboot()
            run(cluster.hosts[leader], "recover")
            assert cluster.states()[leader] == ("Replica", "running")
    assert load.lost(cluster.hosts[cluster.wait_until_healthy()]) == set()


def test_switch_back_makes_the_member_the_leader_again(cluster: Cluster) -> None:
    leader = cluster.wait_until_healthy()
    run(cluster.hosts[leader], "prepare", switch_back=True)
    run(cluster.hosts[leader], "prepare", switch_back=True)
    run(cluster.hosts[leader], "recover", switch_back=True)
    assert cluster.wait_until_healthy() == leader
    assert cluster.hosts[leader].record("postgresql") is None


def test_prepare_without_a_healthy_candidate_changes_nothing(cluster: Cluster) -> None:
    leader = cluster.wait_until_healthy()
    other = cluster.hosts[{"db1": "db2", "db2": "db1"}[leader]]
    run(other, "prepare", stop=True)
    assert attempt(cluster.hosts[leader], "check").returncode == 1
    assert attempt(cluster.hosts[leader], "prepare").returncode == 1
    assert cluster.hosts[leader].record("postgresql") is None
    assert cluster.states()[leader] == ("Leader", "running")
    run(other, "recover", stop=True)
    assert cluster.wait_until_healthy() == leader


def test_check_names_a_member_that_does_not_exist(cluster: Cluster) -> None:
    done = attempt(cluster.hosts["db1"], "check", member="db9")
    assert (done.returncode, "db9" in done.stderr) == (1, True)
    assert attempt(cluster.hosts["db1"], "check").returncode == 0
