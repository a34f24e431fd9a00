# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The questions and commands to Redis and Sentinel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ready_hooks.core.address import Address, host_and_port
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError
from ready_hooks.core.secret import read_secret
from ready_hooks.hooks.redis import state
from ready_hooks.hooks.redis.resp import Client, RedisError, connected


class Account:
    """The way to log in to servers: `user` of an ACL, or the default one for None; no password without a file."""

    def __init__(self, deadline: Deadline, user: str | None, password_file: str | None) -> None:
        self._deadline, self._user, self._password_file = deadline, user, password_file

    @contextmanager
    def connected(self, to: Address) -> Iterator[Client]:
        """A connection for the block. Raises HookError."""
        password = None if self._password_file is None else read_secret(self._password_file)
        with connected(to, self._deadline, self._user, password) as client:
            yield client


class Server:
    """An instance of Redis."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.address = client.address

    def instance(self) -> state.Instance:
        """Return its present state. Raises HookError."""
        return state.instance_of({**self._info("server"), **self._info("replication")})

    def persistence(self) -> state.Persistence:
        """Return the state of its files. Raises HookError."""
        return state.persistence_of(self._info("persistence"))

    def setting(self, name: str) -> str | None:
        """Return a value of its configuration; None if this user may not read it. Raises HookError."""
        try:
            return state.pairs(self._client.texts("CONFIG", "GET", name)).get(name)
        except RedisError:
            return None

    def pause_writes(self, duration: float) -> None:
        """Let all writes wait, for at most these seconds. Raises HookError."""
        self._client.ask("CLIENT", "PAUSE", str(int(duration * 1000)), "WRITE")

    def resume_writes(self) -> None:
        """End the pause. Raises HookError."""
        self._client.ask("CLIENT", "UNPAUSE")

    def follow(self, master: tuple[str, str]) -> str | None:
        """Become a replica of this master; return why the configuration file does not have it, or None."""
        self._client.ask("REPLICAOF", *master)
        try:
            self._client.ask("CONFIG", "REWRITE")
        except RedisError as error:
            return str(error)
        return None

    def disconnect_clients(self) -> None:
        """Close the connections of clients, so that they ask Sentinel for the master. Raises HookError."""
        for kind in ("normal", "pubsub"):
            self._client.ask("CLIENT", "KILL", "TYPE", kind)

    def begin_save(self) -> bool:
        """Begin to save; return False if another save or rewrite is under way. Raises HookError."""
        try:
            self._client.ask("BGSAVE")
        except RedisError:
            files = self.persistence()
            if files.is_saving or files.is_rewriting:
                return False
            raise
        return True

    def forbidden(self, commands: tuple[tuple[str, ...], ...]) -> list[str]:
        """Return those of the commands that its ACL forbids this user; needs Redis 7. Raises HookError."""
        try:
            user = str(self._client.ask("ACL", "WHOAMI"))
            answers = [(command, self._client.ask("ACL", "DRYRUN", user, *command)) for command in commands]
        except RedisError:
            return []
        return [" ".join(command[:2]) for command, answer in answers if answer != "OK"]

    def _info(self, section: str) -> dict[str, str]:
        return state.fields(str(self._client.ask("INFO", section)))


class Sentinel:
    """A Sentinel, for the master of this name."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self._name = client, name
        self.address = client.address

    def master(self) -> tuple[str, str]:
        """Return host and port of the master, which is the promoted one as soon as it is a master."""
        found = self._client.texts("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._name)
        if len(found) != 2:
            raise HookError(self.address, f"it knows no master {self._name}", "correct master_name")
        return found[0], found[1]

    def names(self, run_id: str) -> bool:
        """Return True if the master had this run id some seconds ago, and no other one is promoted.

        Raises HookError if Sentinel does not answer.
        """
        found = self._master_fields()
        return found.get("runid") == run_id and self.master() == (found.get("ip"), found.get("port"))

    def is_failing_over(self) -> bool:
        """Return True while a failover has not ended. Raises HookError."""
        return "failover_in_progress" in self._master_fields().get("flags", "").split(",")

    def replicas(self) -> list[state.Known]:
        """Return the replicas of the master. Raises HookError."""
        answer = self._client.ask("SENTINEL", "REPLICAS", self._name)
        return state.known_of([each for each in answer if isinstance(each, list)] if isinstance(answer, list) else [])

    def fail_over(self) -> None:
        """Begin a failover, without a vote. Raises HookError."""
        self._client.ask("SENTINEL", "FAILOVER", self._name, again=False)

    def quorum_problem(self) -> str | None:
        """Return why the Sentinels could not vote, or None."""
        try:
            self._client.ask("SENTINEL", "CKQUORUM", self._name)
        except RedisError as error:
            return str(error)
        return None

    def _master_fields(self) -> dict[str, str]:
        return state.pairs(self._client.texts("SENTINEL", "MASTER", self._name))


def shown(master: tuple[str, str]) -> str:
    """Return host and port as one text."""
    return host_and_port(*master)
