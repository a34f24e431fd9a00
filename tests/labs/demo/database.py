# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""PostgreSQL 15 on the database hosts: one primary, and streaming replicas with synchronous replication."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping

from support.hosts.enter_namespace import HostIsDown
from support.hosts.host import Host
from support.wait import wait_until

DATA = "/var/lib/postgresql/15/main"
CONFIGURATION = "/etc/postgresql/15/main"
SERVICE = "postgresql@15-main.service"
# The network of the lab is the boundary: it has no other members.
ACCESS = """\
local all all peer
host all all 10.77.0.0/24 trust
host all all 127.0.0.0/8 trust
host replication all 10.77.0.0/24 trust
host replication all 127.0.0.0/8 trust
"""
SETTINGS = """\
listen_addresses = '*'
cluster_name = '{name}'
# a commit waits until one more host has it
synchronous_commit = on
synchronous_standby_names = 'ANY 1 ({others})'
wal_log_hints = on
wal_keep_size = '256MB'
hot_standby = on
wal_retrieve_retry_interval = '500ms'
wal_receiver_timeout = '10s'
wal_sender_timeout = '10s'
primary_conninfo = 'host={all} user=replicator application_name={name} target_session_attrs=read-write'
"""
SCHEMA = """\
CREATE ROLE shop LOGIN;
CREATE ROLE replicator LOGIN REPLICATION;
CREATE DATABASE shop OWNER shop;
\\connect shop
CREATE TABLE orders (id text PRIMARY KEY, web text NOT NULL, at timestamptz NOT NULL DEFAULT now());
ALTER TABLE orders OWNER TO shop;
"""


def install(hosts: Mapping[str, Host]) -> None:
    """Make the first host the primary and the others its replicas, and wait until all stream."""
    names = list(hosts)
    for name, host in hosts.items():
        others = ", ".join(each for each in names if each != name)
        text = SETTINGS.format(name=name, others=others, all=",".join(names))
        host.file(f"{CONFIGURATION}/conf.d/demo.conf").write_text(text, encoding="utf-8")
        host.file(f"{CONFIGURATION}/pg_hba.conf").write_text(ACCESS, encoding="utf-8")
    primary, replicas = hosts[names[0]], [hosts[name] for name in names[1:]]
    start(primary)
    psql = ["runuser", "-u", "postgres", "--", "psql", "-qX", "--set=ON_ERROR_STOP=1"]
    # there is no replica yet, for which a commit could wait
    primary.run(["env", "PGOPTIONS=-c synchronous_commit=local", *psql], given=SCHEMA)
    for replica in replicas:
        shutil.rmtree(replica.file(DATA))
        copy = ["pg_basebackup", "--host", names[0], "--username", "replicator", "--pgdata", DATA]
        replica.run(["runuser", "-u", "postgres", "--", *copy, "--checkpoint", "fast", "--wal-method", "stream"])
        replica.run(["runuser", "-u", "postgres", "--", "touch", f"{DATA}/standby.signal"])
        start(replica)
    wait_until(lambda: streaming(primary) == len(replicas), "all replicas stream", lambda: log_of(hosts.values()))


def start(host: Host) -> None:
    host.run(["systemctl", "enable", "--quiet", "--now", "postgresql.service"])
    wait_until(lambda: is_accepting(host), f"PostgreSQL of {host.name} accepts connections", lambda: log_of([host]))


def is_accepting(host: Host) -> bool:
    return host.run(["pg_isready", "--quiet"], check=False).returncode == 0


def query(host: Host, sql: str) -> str:
    """Return the rows of a query as text; "" if the host is down or frozen, or PostgreSQL does not answer."""
    if not host.is_up or host.is_frozen:
        return ""
    try:
        return host.run(
            ["runuser", "-u", "postgres", "--", "psql", "-qXAt", "-d", "shop", "-c", sql], check=False, limit=30
        ).stdout.strip()
    except HostIsDown:
        return ""


def streaming(primary: Host) -> int:
    """Return the number of replicas that stream."""
    return int(query(primary, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") or 0)


def primaries(hosts: Mapping[str, Host]) -> list[str]:
    """Return the hosts that accept writes."""
    return [name for name, host in hosts.items() if query(host, "SELECT pg_is_in_recovery()") == "f"]


def orders(host: Host) -> set[str]:
    """Return the IDs of all orders."""
    return set(query(host, "SELECT id FROM orders").split())


def log_of(hosts: Iterable[Host]) -> str:
    command = ["sh", "-c", "tail -n 15 /var/log/postgresql/*.log"]
    return "\n".join(f"{host.name}:\n{host.run(command, check=False).stdout}" for host in hosts if host.is_up)
