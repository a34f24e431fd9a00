# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A master and a replica of Redis with Sentinels, and a client that writes through Sentinel."""

from __future__ import annotations

import threading
import time

from ready_hooks.core.address import Address
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError
from ready_hooks.hooks.redis import state
from ready_hooks.hooks.redis.resp import Reply, connected
from support.ready_hooks.workload_host import WorkloadHost
from support.wait import wait_until

PASSWORD = "word-of-redis"
NAME = "mymaster"
PORT, SENTINEL_PORT = 6379, 26379
SECRET = "/etc/redis-hook/password"

REDIS = f"""\
bind 0.0.0.0
port {PORT}
unixsocket /run/redis/redis.sock
dir /var/lib/redis
dbfilename dump.rdb
save 3600 1
requirepass {PASSWORD}
masterauth {PASSWORD}
repl-diskless-sync-delay 0
"""
SENTINEL = f"""\
bind 0.0.0.0
port {SENTINEL_PORT}
protected-mode no
dir /var/lib/redis
sentinel monitor {NAME} {{address}} {PORT} 1
sentinel auth-pass {NAME} {PASSWORD}
sentinel down-after-milliseconds {NAME} 20000
sentinel failover-timeout {NAME} 20000
"""


class RedisPair:
    """Redis and Sentinel on two hosts; the first one is the master.

    Attributes:
        is_fresh: whether all is as after `start`; a test that changes it sets it to False.
    """

    def __init__(self, first: WorkloadHost, second: WorkloadHost) -> None:
        self.first, self.second = first, second
        self.hosts = (first, second)
        self.is_fresh = False
        self.sentinels = [f"{each.host.address}:{SENTINEL_PORT}" for each in self.hosts]

    def start(self) -> None:
        """Start all with empty data, and wait until the first Sentinel could fail over."""
        self.stop()
        for host in self.hosts:
            follow = "" if host is self.first else f"replicaof {self.first.host.address} {PORT}\n"
            self._own(host, "/etc/redis/redis.conf", REDIS + follow)
            self._own(host, "/etc/redis/sentinel.conf", SENTINEL.format(address=self.first.host.address))
            host.write(SECRET, PASSWORD + "\n", 0o600)
            host.run("systemctl", "start", "redis-server")
        wait_until(lambda: self.instance(self.second).link_is_up, "the replica is in sync")
        for host in self.hosts:
            host.run("systemctl", "start", "redis-sentinel")
        wait_until(lambda: self.promotable() == 1, "Sentinel knows the replica")
        self.is_fresh = True

    def stop(self) -> None:
        """End all, and remove their data."""
        for host in self.hosts:
            host.shell(
                "systemctl kill --signal=KILL redis-sentinel redis-server 2>/dev/null || true; "
                "systemctl stop redis-sentinel redis-server; systemctl reset-failed; "
                "rm -rf /var/lib/redis/* /var/lib/azure-scheduled-events; "
                "chown redis:redis /var/lib/redis"
            )

    def ask(self, host: WorkloadHost, *words: str, port: int = PORT) -> Reply:
        """Return the answer of Redis, or of the Sentinel, of a host."""
        to = Address("", host.host.address, port)
        with connected(to, Deadline(60), None, PASSWORD if port == PORT else None) as client:
            return client.ask(*words)

    def instance(self, host: WorkloadHost) -> state.Instance:
        """Return the state of an instance; without role while it does not answer."""
        try:
            return state.instance_of(state.fields(str(self.ask(host, "INFO"))))
        except HookError:
            return state.instance_of({})

    def master(self) -> str:
        """Return the address of the master for the first Sentinel that answers."""
        for host in self.hosts:
            try:
                found = self.ask(host, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME, port=SENTINEL_PORT)
            except HookError:
                continue
            if isinstance(found, list):
                return str(found[0])
        return ""

    def promotable(self) -> int:
        """Return how many replicas the first Sentinel may promote."""
        found = self.ask(self.first, "SENTINEL", "REPLICAS", NAME, port=SENTINEL_PORT)
        known = state.known_of([each for each in found if isinstance(each, list)] if isinstance(found, list) else [])
        return sum(each.can_be_promoted for each in known)

    def signal(self, host: WorkloadHost, name: str) -> None:
        host.run("systemctl", "kill", "--kill-who=main", f"--signal={name}", "redis-server")

    def writes_wait(self, host: WorkloadHost) -> bool:
        """Return True if a write to the host does not end within a second."""
        to = Address("", host.host.address, PORT)
        try:
            with connected(to, Deadline(1), None, PASSWORD) as client:
                client.ask("SET", "probe", "1")
        except HookError:
            return True
        return False

    def writes_work(self, host: WorkloadHost) -> bool:
        """Return True if a write to the host ends, long before a pause would end by itself."""
        return self.ask(host, "SET", "probe", "1") == "OK"

    def _own(self, host: WorkloadHost, path: str, content: str) -> None:
        host.write(path, content, 0o640)
        host.run("chown", "redis:redis", path)


class Writer:
    """Writes numbered keys to the master that Sentinel names, and counts those that are acknowledged."""

    def __init__(self, pair: RedisPair) -> None:
        self._pair = pair
        self._thread = threading.Thread(target=self._write)
        self._is_over = threading.Event()
        self.acknowledged: list[str] = []

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def wait_for_more(self) -> None:
        """Wait until more writes are acknowledged."""
        before = len(self.acknowledged)
        wait_until(lambda: len(self.acknowledged) >= before + 20, "more writes are acknowledged")

    def lost(self, host: WorkloadHost) -> list[str]:
        """Return the acknowledged writes that the instance of the host lacks."""
        have = self._pair.ask(host, "MGET", *self.acknowledged)
        assert isinstance(have, list)
        return [key for key, value in zip(self.acknowledged, have) if value is None]

    def _write(self) -> None:
        number = 0
        while not self._is_over.is_set():
            try:
                to = Address("", self._pair.master(), PORT)
                with connected(to, Deadline(10), None, PASSWORD) as client:
                    while not self._is_over.is_set():
                        number += 1
                        client.ask("SET", f"key{number}", "1")
                        self.acknowledged.append(f"key{number}")
                        time.sleep(0.002)
            except HookError:
                time.sleep(0.02)
