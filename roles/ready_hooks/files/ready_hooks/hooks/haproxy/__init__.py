# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The ready hook haproxy: the same servers in one or several load balancers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ready_hooks.core import arguments
from ready_hooks.core.address import address
from ready_hooks.core.arguments import Option
from ready_hooks.core.errors import HookError
from ready_hooks.core.hook import CONTINUE, ERROR, FAIL, Finding, RecordingHook
from ready_hooks.hooks.haproxy.balancer import SHUTDOWN_SESSIONS, Balancer
from ready_hooks.hooks.haproxy.runtime_socket import parse_server_name

DEFAULT_SOCKET = address("/run/haproxy/admin.sock")

# a load balancer, and the servers in it that this hook takes out
Chosen = tuple[Balancer, list[str]]


class HAProxy(RecordingHook):
    """Drain servers in all load balancers, and put them back when their checks succeed.

    The record has, for each socket, the servers that were ready. A load balancer that fails does not
    keep the hook from the others. Each socket leaves the record when all of its servers are back.
    """

    name = "haproxy"
    summary = "Takes servers out of HAProxy's load balancing, and puts them back when their checks succeed."
    options = (
        Option("server", parse_server_name, "server to drain, as BACKEND/SERVER", required=True, many=True),
        Option(
            "socket",
            address,
            f"path or HOST:PORT of the runtime socket of each load balancer (default: {DEFAULT_SOCKET})",
            many=True,
        ),
        Option("wait", arguments.seconds, "seconds to wait for the end of sessions (default: the time of the hook)"),
        Option(
            "on_timeout",
            arguments.one_of(FAIL, CONTINUE, SHUTDOWN_SESSIONS),
            "what to do with sessions that remain: fail, continue or shutdown-sessions",
            FAIL,
        ),
        Option(
            "wait_for_check",
            arguments.seconds,
            "seconds that recover waits for the checks, 0 for not at all (default: the time of the hook)",
        ),
    )

    def check(self) -> Iterator[Finding]:
        for balancer in self._balancers():
            try:
                yield from balancer.findings(self._names)
            except HookError as error:
                yield Finding(ERROR, str(error))

    def prepare(self) -> None:
        problems: list[HookError] = []
        record: dict[str, list[str]] = (self.run.record.load() or {"servers": {}})["servers"]
        reached: dict[str, Balancer] = {}
        for balancer in self._balancers():
            try:
                ready = balancer.ready_ones(self._names, problems)
            except HookError as error:
                problems.append(error)
                continue
            ours = record.get(balancer.address, [])
            record[balancer.address] = ours + [name for name in ready if name not in ours]
            reached[balancer.address] = balancer
        record = {key: names for key, names in record.items() if names}
        if record:
            self.run.remember({"servers": record})
        # without servers that are not configured any more: recover puts them back
        chosen = [
            (balancer, [name for name in record.get(key, ()) if name in self._names])
            for key, balancer in reached.items()
        ]
        self._retire(self._drained(chosen, problems), problems)
        self.run.fail(problems)

    def undo(self, record: dict[str, Any]) -> None:
        pending: dict[str, list[str]] = record["servers"]
        most = self.run.options["wait_for_check"]
        balancers = {key: Balancer(self.run, address(key)) for key in pending}
        problems: dict[str, HookError] = {}

        def all_are_back() -> bool:
            for key, names in list(pending.items()):
                count = len(names)
                try:
                    balancers[key].put_back(names, waits=most != 0)
                    problems.pop(key, None)
                    del pending[key]
                except HookError as error:
                    problems[key] = error
                if pending and len(names) < count:
                    self.run.shorten_record({"servers": pending})
            return not pending

        self.run.deadline.wait_until(all_are_back, 0 if self.run.dry_run else most)
        self.run.fail(list(problems.values()))

    def _drained(self, chosen: Sequence[Chosen], problems: list[HookError]) -> list[Chosen]:
        done = []
        for balancer, names in chosen:
            try:
                balancer.drain(names)
                done.append((balancer, names))
            except HookError as error:
                problems.append(error)
        return done

    def _retire(self, chosen: Sequence[Chosen], problems: list[HookError]) -> None:
        left = self.run.deadline.left()
        most = self.run.deadline.wait_limit(self.run.options["wait"])
        for balancer, names in chosen:
            remaining = max(0.0, most - (left - self.run.deadline.left()))
            try:
                balancer.retire(names, remaining)
            except HookError as error:
                problems.append(error)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.run.options["server"]))

    def _balancers(self) -> list[Balancer]:
        return [Balancer(self.run, at) for at in dict.fromkeys(self.run.options["socket"] or (DEFAULT_SOCKET,))]


HOOK = HAProxy
