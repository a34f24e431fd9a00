# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A primary of PostgreSQL and its streaming replica, on two hosts with Debian's packages, and writers."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from support.ready_hooks.workload_host import WorkloadHost
from support.wait import wait_until

UNIT = "postgresql@15-main.service"
DATA = "/var/lib/postgresql/15/main"
HBA = "/etc/postgresql/15/main/pg_hba.conf"
_SAVED = "/var/lib/postgresql/saved"
_HBA = "local all,replication all peer\nhost all,replication all samenet trust\n"
_SETTINGS = """
listen_addresses = '*'
wal_log_hints = on
wal_keep_size = 64MB
shared_buffers = 16MB
"""
_FOLDER = "/var/lib/load"
_SCRIPT = """
number=$(($1 * 1000000))
while [ -e {folder}/run ]; do
    number=$((number + 1))
    if timeout 20 psql -XAtq -d "{target}" -c "INSERT INTO acknowledged VALUES ($number)" 2>/dev/null; then
        echo $number >> {folder}/acknowledged
    fi
done
"""


class PostgresqlPair:
    """Two hosts; the first has the primary after `reset`, and the second has the replica.

    Attributes:
        is_fresh: whether nothing has changed since `reset`; a test that changes something sets it to False.
    """

    def __init__(self, first: WorkloadHost, second: WorkloadHost) -> None:
        self.first, self.second = first, second
        self.is_fresh = False
        for host in (first, second):
            host.write("/etc/postgresql/15/main/conf.d/lab.conf", _SETTINGS)
            host.write(HBA, _HBA)
            host.run("systemctl", "enable", "--quiet", "postgresql.service")
        first.run("systemctl", "start", UNIT)
        self.wait_for(first, "SELECT 1", "1")
        self.ask(first, "CREATE ROLE replicator LOGIN REPLICATION; CREATE TABLE acknowledged (number int PRIMARY KEY)")
        second.shell(f"rm -rf {DATA}")
        source = f"host={first.host.address} user=replicator application_name=second"
        second.run("runuser", "-u", "postgres", "--", "pg_basebackup", "-D", DATA, "-R", "-c", "fast", "-d", source)
        second.run("systemctl", "start", UNIT)
        self.wait_for_streaming(first)
        for host in (first, second):
            host.run("systemctl", "stop", UNIT)
            host.shell(f"cp -a {DATA} {_SAVED}")

    def reset(self, settings: str = "") -> None:
        """Start both with the first content; the first host has the primary, and the second streams.

        ``settings`` are lines for postgresql.conf of both.
        """
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda host: self._reset(host, settings), (self.first, self.second)))
        self.wait_for_streaming(self.first)

    @staticmethod
    def _reset(host: WorkloadHost, settings: str) -> None:
        if not host.host.is_up:
            host.host.boot()
        host.run("systemctl", "stop", UNIT)
        host.write("/etc/postgresql/15/main/conf.d/test.conf", settings)
        host.write(HBA, _HBA)
        host.host.file("/etc/postgresql/15/main/conf.d/replication.conf").unlink(missing_ok=True)
        host.shell(
            f"rm -rf /var/lib/azure-scheduled-events/ready-hooks {DATA} {DATA}.*; cp -a {_SAVED} {DATA};"
            f" systemctl unmask {UNIT}; systemctl start {UNIT}"
        )

    def options(self, host: WorkloadHost) -> dict[str, object]:
        """Return the options of the hook on one of the hosts."""
        address = self.other(host).host.address
        return {"replica": f"host={address}", "primary_conninfo": f"host={address} user=replicator"}

    def other(self, host: WorkloadHost) -> WorkloadHost:
        return self.second if host is self.first else self.first

    @staticmethod
    def ask(host: WorkloadHost, sql: str) -> str:
        return ask(host, sql)

    def wait_for(self, host: WorkloadHost, sql: str, answer: str) -> None:
        wait_until(
            lambda: self.ask(host, sql) == answer,
            f"{sql} gives {answer}",
            lambda: host.shell("tail -n 50 /var/log/postgresql/*.log"),
        )

    def wait_for_streaming(self, primary: WorkloadHost) -> None:
        """Wait until the other server streams from the one of this host."""
        self.wait_for(primary, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", "1")

    def roles(self) -> list[str]:
        """Return "primary", "standby" or "" for a server that does not answer, of both hosts."""
        words = {"f": "primary", "t": "standby"}
        return [words.get(self.ask(host, "SELECT pg_is_in_recovery()"), "") for host in (self.first, self.second)]


def ask(host: WorkloadHost, sql: str, port: int = 5432) -> str:
    """Run SQL on a host as the superuser; return "" if the server does not answer or refuses it."""
    psql = ("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", f"dbname=postgres port={port}")
    return host.run("runuser", "-u", "postgres", "--", *psql, given=sql, check=False).stdout.strip()


class Load:
    """Writers that insert numbers into whichever server is the primary, and note each acknowledged one.

    They run on the host ``client``; the context manager starts and ends them.
    """

    def __init__(self, client: WorkloadHost, servers: Sequence[WorkloadHost], port: int = 5432) -> None:
        self._client, self._servers, self._port = client, servers, port
        self._units = [f"writer-{number}" for number in range(2)]

    def __enter__(self) -> Load:
        hosts = ",".join(host.host.address for host in self._servers)
        target = f"host={hosts} port={self._port} user=postgres dbname=postgres"
        target += " target_session_attrs=read-write connect_timeout=2"
        script = _SCRIPT.format(folder=_FOLDER, target=target)
        self._client.shell(f"rm -rf {_FOLDER}; mkdir {_FOLDER}; touch {_FOLDER}/run {_FOLDER}/acknowledged")
        self._client.write(f"{_FOLDER}/write", script)
        for number, unit in enumerate(self._units):
            self._client.start(unit, "sh", f"{_FOLDER}/write", str(number))
        return self

    def __exit__(self, kind: object, *_error: object) -> None:
        self._client.run("rm", f"{_FOLDER}/run")
        if kind is None:
            is_active = ("systemctl", "is-active", "--quiet", *self._units)
            wait_until(lambda: self._client.run(*is_active, check=False).returncode != 0, "the writers end")
        else:
            self._client.run("systemctl", "kill", "--signal=KILL", *self._units, check=False)

    def acknowledged(self) -> set[int]:
        """Return the numbers whose insertion a server acknowledged."""
        return {int(line) for line in self._client.shell(f"cat {_FOLDER}/acknowledged").split()}

    def wait_for_more(self) -> None:
        """Wait until writes are acknowledged after now."""
        before = len(self.acknowledged())
        wait_until(lambda: len(self.acknowledged()) >= before + 5, "writes are acknowledged", pause=0.1)

    def lost(self, host: WorkloadHost) -> set[int]:
        """Return the acknowledged numbers that the server of a host does not have."""
        acknowledged = self.acknowledged()
        assert acknowledged
        found = ask(host, "SELECT number FROM acknowledged", self._port)
        return acknowledged - {int(line) for line in found.split()}
