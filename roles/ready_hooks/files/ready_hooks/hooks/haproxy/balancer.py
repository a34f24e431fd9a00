# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Changes the states of servers in one HAProxy."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ready_hooks.core.address import Address
from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.core.hook import ERROR, INFO, WARNING, Finding, Run
from ready_hooks.core.options import did_you_mean
from ready_hooks.hooks.haproxy.runtime_socket import DRAIN, MAINT, READY, RuntimeSocket, Server

SHUTDOWN_SESSIONS = "shutdown-sessions"


class Balancer:
    """One HAProxy, by the address of its runtime socket, for one run of the hook."""

    def __init__(self, run: Run, at: Address) -> None:
        self.address = str(at)
        self._run, self._socket = run, RuntimeSocket(at, run.deadline)

    def findings(self, names: Sequence[str]) -> Iterator[Finding]:
        """Yield what `check` finds about these servers. Raises HookError."""
        level, servers = self._socket.ask("show cli level"), self._socket.servers()
        statistics = self._socket.statistics()
        if level in ("user", "operator"):
            yield Finding(ERROR, f"{self.address}: its level is {level}; add `level admin` to its stats socket")
        for name in names:
            server = servers.get(name)
            if server is None:
                yield Finding(ERROR, str(self._unknown(name, servers)))
                continue
            word = "up" if server.is_up else "down"
            yield Finding(INFO, f"{name} at {self.address}: {server.state}, {word}")
            if not server.has_check and not statistics[name].tracked:
                yield Finding(WARNING, f"{name} at {self.address}: it has no check; recover cannot wait for it")

    def ready_ones(self, names: Sequence[str], problems: list[HookError]) -> list[str]:
        """Return the servers that are ready, and add a problem for each unknown one. Raises HookError."""
        servers = self._socket.servers()
        problems.extend(self._unknown(name, servers) for name in names if name not in servers)
        for name in names:
            if name in servers and servers[name].state != READY:
                self._run.say(f"{name} at {self.address} is in {servers[name].state} already")
        return [name for name in names if name in servers and servers[name].state == READY]

    def drain(self, names: Collection[str]) -> None:
        """Set those of the servers to drain that are ready. Raises HookError."""
        for name, server in self._socket.servers().items():
            if name in names and server.state == READY:
                self._set(name, DRAIN)

    def retire(self, names: Collection[str], most: float) -> None:
        """Wait for the end of the sessions of the servers, which are in drain, then set them to maint.

        `most` is in seconds. Raises HookError.
        """
        if not self._run.dry_run and not self._run.deadline.retry_until(lambda: not self._sessions(names), most):
            for name, sessions in self._sessions(names).items():
                problem = f"sessions that have not ended within {most:.0f} s: {sessions}"
                self._run.out_of_time(f"{name} at {self.address}", problem, "raise wait, or set on_timeout")
                if self._run.options["on_timeout"] == SHUTDOWN_SESSIONS:
                    command = f"shutdown sessions server {name}"
                    self._run.act(f"{command} at {self.address}", self._socket.order, command)
        for name, server in self._socket.servers().items():
            if name in names and server.state != MAINT:
                self._set(name, MAINT)

    def put_back(self, names: list[str], waits: bool) -> None:
        """Set the servers to ready, as far as their checks succeed, and remove these from `names`.

        Raises HookError if one of them is not up yet.

        HAProxy takes a server that leaves maint for usable until a check fails. Therefore a server is
        set to drain first, and its check has to succeed from the beginning. The two commands are one
        line, so that a hook that is killed between them cannot leave a server that seems to be up.
        `waits` says whether to wait for the checks.
        """
        found = self._socket.servers()
        resting = [name for name in names if name in found and found[name].state == MAINT]
        if waits and resting and not self._run.dry_run:
            for name in resting:
                fresh = f";set server {name} health down" if found[name].has_check else ""
                command = f"set server {name} state drain{fresh}"
                self._run.act(f"check {name} at {self.address}", self._socket.order, command)
            found = self._socket.servers()
        down = []
        for name in tuple(names):
            server = found.get(name)
            if server is not None and waits and not server.is_up and not server.is_held and not self._run.dry_run:
                down.append(name)
                continue
            if server is None:
                self._run.warn(f"{name} at {self.address}: HAProxy has no such server any more")
            elif server.state != READY:
                self._set(name, READY)
            names.remove(name)
        if down:
            raise self._not_up(down[0], found[down[0]])

    def _sessions(self, names: Collection[str]) -> dict[str, int]:
        """Return the sessions of the servers that have some. A HAProxy that was restarted drains them again."""
        self.drain(names)
        found = self._socket.statistics()
        return {name: found[name].sessions for name in names if name in found and found[name].sessions}

    def _set(self, name: str, state: str) -> None:
        command = f"set server {name} state {state}"
        self._run.act(f"set {name} to {state} at {self.address}", self._socket.order, command)

    def _unknown(self, name: str, servers: Collection[str]) -> HookError:
        return HookError(name, f"HAProxy at {self.address} has no such server{did_you_mean(name, sorted(servers))}")

    def _not_up(self, name: str, server: Server) -> HookError:
        statistics = self._socket.statistics().get(name)
        result = statistics.check if statistics else ""
        problem = "its check does not succeed" + (f" ({result})" if result else "")
        return OutOfTime(f"{name} at {self.address}", problem, f"it stays in {server.state} until the next recover")
