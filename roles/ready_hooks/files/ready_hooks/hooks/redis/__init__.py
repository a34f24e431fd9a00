# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Fails over by Sentinel if this instance is the master, and saves the data set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ready_hooks.core import arguments
from ready_hooks.core.address import Address, address
from ready_hooks.core.arguments import Option
from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.core.hook import ERROR, INFO, WARNING, Finding, RecordingHook, Run
from ready_hooks.core.options import parse_integer
from ready_hooks.core.secret import secret_problem
from ready_hooks.hooks.redis import state
from ready_hooks.hooks.redis.failover import SWITCHED, Failover
from ready_hooks.hooks.redis.servers import Account, Sentinel, Server, shown

_AUTO = "auto"
_OLDEST = (6, 2)
_COMMANDS = (("BGSAVE",), ("CONFIG", "GET", "save"))
_FAILOVER_COMMANDS = (
    *(("CLIENT", "PAUSE", "1", "WRITE"), ("CLIENT", "UNPAUSE"), ("CLIENT", "KILL", "TYPE", "normal")),
    *(("REPLICAOF", "NO", "ONE"), ("CONFIG", "REWRITE")),
)


def save_mode(value: object) -> str:
    """Return true, false or auto. Raises ValueError."""
    return _AUTO if value == _AUTO else str(arguments.boolean(value)).lower()


class Redis(RecordingHook):
    """Fail over, and save.

    The record has the phase of a failover; a save has nothing to undo.
    """

    name = "redis"
    summary = "Fails over by Sentinel if this instance of Redis is the master, and saves its data set."
    options = (
        Option("address", address, "path of the socket, or host:port, of this instance", address("127.0.0.1:6379")),
        Option("user", arguments.text, "user of the ACL; by default the user default"),
        Option("password_file", arguments.path, "file with the password, which only root can read"),
        Option("sentinels", address, "Sentinels, host:port; the first that answers is used", many=True),
        Option("sentinel_password_file", arguments.path, "file with the password of the Sentinels"),
        Option("master_name", arguments.text, "name of the master at the Sentinels", "mymaster"),
        Option("most_lag", parse_integer, "bytes that a replica may lag behind before the failover", 10_000_000),
        Option("most_pause", arguments.seconds, "seconds that writes may wait until the replicas have caught up", 10.0),
        Option("save", save_mode, "true, false, or auto: if it has save points and no append-only file", _AUTO),
    )

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        values = run.options
        self._account = Account(run.deadline, values["user"], values["password_file"])
        self._sentinel_account = Account(run.deadline, None, values["sentinel_password_file"])

    def prepare(self) -> None:
        with self._server() as server:
            if self.run.options["sentinels"]:
                with self._sentinel() as sentinel:
                    self._hand_over(server, sentinel)
            if self._is_to_save(server):
                self.run.act("save the data set", self._save, server)

    def _hand_over(self, server: Server, sentinel: Sentinel) -> None:
        instance = server.instance()
        failover = Failover(self.run, server, sentinel)
        if instance.role != state.MASTER:
            self.run.say(f"this instance is a replica of {instance.master}")
        elif not self._is_master_for(sentinel, instance):
            self.run.warn(f"Sentinel names another master, {shown(sentinel.master())}; this one is not failed over")
        else:
            problem = self._refusal(instance, sentinel)
            if problem is not None:
                raise HookError(server.address, f"no failover: {problem}", "repair the replica, see INFO replication")
            self.run.act("fail over to a replica", failover.fail_over)
        if not self.run.dry_run:
            self._wait_for_sync(server, sentinel)

    def undo(self, record: dict[str, Any]) -> None:
        self._wait_for_start()
        self._wait_for_failover()
        with self._server() as server, self._sentinel() as sentinel:
            instance = server.instance()
            if instance.role == state.MASTER and not self._is_master_for(sentinel, instance):
                new = sentinel.master()
                self.run.act(f"follow the master {shown(new)}", Failover(self.run, server, sentinel).follow, new)
            elif record["phase"] != SWITCHED:
                self.run.act("let writes continue", server.resume_writes)
            if not self.run.dry_run:
                self._wait_for_sync(server, sentinel)

    def _wait_for_start(self) -> None:
        """Wait until this instance has loaded its data, as after a boot; before, it refuses to follow a master."""

        def has_started() -> bool:
            with self._server() as server:
                return not server.persistence().is_loading

        if not self.run.deadline.retry_until(has_started):
            raise OutOfTime(str(self.run.options["address"]), "it still loads its data", "raise the time limit")

    def _wait_for_failover(self) -> None:
        """Wait until Sentinel has no failover under way. Raises HookError at once if no Sentinel answers.

        Each question goes to the first one that answers: the one before may have stopped.
        """

        def has_ended() -> bool:
            with self._sentinel() as sentinel:
                return not sentinel.is_failing_over()

        if not self.run.deadline.wait_until(has_ended):
            raise OutOfTime(self.run.options["master_name"], "its failover by Sentinel has not ended")

    def _wait_for_sync(self, server: Server, sentinel: Sentinel) -> None:
        """Wait until this instance is a replica in sync, or the master."""

        def in_sync() -> bool:
            instance = server.instance()
            if instance.role == state.MASTER:
                return self._is_master_for(sentinel, instance)
            return instance.link_is_up

        if not self.run.deadline.retry_until(in_sync):
            raise OutOfTime(server.address, "it is not in sync with its master", "see INFO replication, and masterauth")

    def _is_master_for(self, sentinel: Sentinel, instance: state.Instance) -> bool:
        """Return True if Sentinel's master is this instance."""
        if sentinel.names(instance.run_id):
            return True
        # the run id at Sentinel changes some seconds after a restart
        host, port = sentinel.master()
        try:
            with self._account.connected(Address("", host, int(port))) as client:
                return Server(client).instance().run_id == instance.run_id
        except (HookError, ValueError):
            return False

    def _refusal(self, instance: state.Instance, sentinel: Sentinel) -> str | None:
        if instance.version < _OLDEST:
            return "CLIENT PAUSE WRITE needs Redis 6.2 or later"
        if sentinel.is_failing_over():
            return "Sentinel has a failover under way"
        return state.refusal(instance, sentinel.replicas(), self.run.options["most_lag"])

    def _is_to_save(self, server: Server) -> bool:
        mode = self.run.options["save"]
        if mode != _AUTO:
            return bool(mode == "true")
        if server.setting("save") == "":
            self.run.say("no save: this instance has no save points")
            return False
        if server.setting("appendonly") == "yes":
            self.run.say("no save: the append-only file has the data")
            return False
        return True

    def _save(self, server: Server) -> None:
        late = OutOfTime(server.address, "the save has not ended in time", "raise the time limit, or set save to false")
        if not self.run.deadline.wait_until(server.begin_save):
            raise late
        if not self.run.deadline.wait_until(lambda: not server.persistence().is_saving):
            raise late
        if not server.persistence().last_save_succeeded:
            raise HookError(server.address, "the save has failed", "see the log of Redis; is its disk full?")

    @contextmanager
    def _server(self) -> Iterator[Server]:
        with self._account.connected(self.run.options["address"]) as client:
            yield Server(client)

    @contextmanager
    def _sentinel(self) -> Iterator[Sentinel]:
        """The first Sentinel that answers."""
        errors: list[HookError] = []
        with ExitStack() as opened:
            for at in self.run.options["sentinels"]:
                try:
                    client = opened.enter_context(self._sentinel_account.connected(at))
                    found = Sentinel(client, self.run.options["master_name"])
                    found.master()
                    break
                except HookError as error:
                    errors.append(error)
            else:
                raise errors[-1] if errors else HookError("sentinels", "none is configured", "set it for recover, too")
            yield found

    def check(self) -> Iterator[Finding]:
        for name in ("password_file", "sentinel_password_file"):
            path = self.run.options[name]
            problem = None if path is None else secret_problem(path)
            if problem is not None:
                raise HookError(path, problem, "chown it to root, and chmod it to 0600")
        with self._server() as server:
            yield from self._server_findings(server)
            yield from self._sentinel_findings(server)

    def _server_findings(self, server: Server) -> Iterator[Finding]:
        instance = server.instance()
        role = "master" if instance.role == state.MASTER else f"replica of {instance.master}"
        yield Finding(INFO, f"{server.address}: Redis {'.'.join(map(str, instance.version))}, {role}")
        has_sentinels = bool(self.run.options["sentinels"])
        for command in server.forbidden(_COMMANDS + (_FAILOVER_COMMANDS if has_sentinels else ())):
            yield Finding(ERROR, f"{server.address}: the user may not run {command}; grant it in the ACL")
        if has_sentinels and self.run.options["password_file"] and server.setting("masterauth") == "":
            yield Finding(
                WARNING, f"{server.address}: masterauth is empty; set it, or this instance cannot follow a new master"
            )
        if not has_sentinels and instance.role == state.MASTER:
            yield Finding(WARNING, "sentinels: none is configured; the hook only saves")

    def _sentinel_findings(self, server: Server) -> Iterator[Finding]:
        answering = 0
        for at in self.run.options["sentinels"]:
            try:
                with self._sentinel_account.connected(at) as client:
                    sentinel = Sentinel(client, self.run.options["master_name"])
                    sentinel.master()
                    problem = sentinel.quorum_problem()
            except HookError as error:
                yield Finding(WARNING, str(error))
                continue
            answering += 1
            if problem is not None:
                yield Finding(WARNING, f"{problem}; the Sentinels could not fail over by themselves")
        if self.run.options["sentinels"] and not answering:
            yield Finding(ERROR, "sentinels: none of them knows the master; start them, or correct the addresses")
        if answering:
            with self._sentinel() as sentinel:
                instance = server.instance()
                if instance.role == state.MASTER and self._is_master_for(sentinel, instance):
                    problem = self._refusal(instance, sentinel)
                    if problem is not None:
                        yield Finding(ERROR, f"{server.address}: no failover would be possible: {problem}")


HOOK = Redis
