# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Waits until TCP ports of this host have no established connections."""

from __future__ import annotations

import ipaddress
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Union

from ready_hooks.core import arguments
from ready_hooks.core.arguments import Option
from ready_hooks.core.errors import HookError, UsageError
from ready_hooks.core.hook import CONTINUE, FAIL, INFO, WARNING, Finding, ReadyHook, Run

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
# states of include/net/tcp_states.h
_ESTABLISHED, _LISTEN = 1, 10
# bytes that the peer has not acknowledged beside data: this side has closed in FIN_WAIT1, LAST_ACK, CLOSING, and has
# sent a FIN; in CLOSE_WAIT only the peer has
_FINS = {4: 1, 9: 1, 11: 1, 8: 0}
# in a message
_MOST_PEERS = 3

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]


class Connection(NamedTuple):
    """One line of the tables: ports, the peer, the state, and the bytes that the peer has not acknowledged."""

    port: int
    peer: Address
    state: int
    unacknowledged: int

    @property
    def is_open(self) -> bool:
        """Whether data can be lost with this connection: established, or closed by a side with data to send."""
        return self.state == _ESTABLISHED or self.unacknowledged > _FINS.get(self.state, self.unacknowledged)


def network(value: object) -> Network:
    """Return an address or a network. Raises ValueError."""
    return ipaddress.ip_network(arguments.text(value), strict=False)


class Connections(ReadyHook):
    """Wait, and change nothing. Therefore there is no record, and nothing to undo."""

    name = "connections"
    summary = "Waits until TCP ports of this host have no established connections."
    options = (
        Option("ports", arguments.port, "local ports", required=True, many=True),
        Option("ignore", network, "addresses or networks whose connections do not count", many=True),
        Option("wait", arguments.seconds, "seconds to wait (default: the time of the hook)"),
        Option("quiet_for", arguments.seconds, "seconds without any connection that end the wait", 2.0),
        Option(
            "on_timeout",
            arguments.one_of(FAIL, CONTINUE),
            "what to do where connections remain: fail or continue",
            FAIL,
        ),
    )

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        wait, quiet_for = run.options["wait"], run.options["quiet_for"]
        if wait is not None and wait < quiet_for:
            raise UsageError("wait", f"{wait:g} s are less than quiet_for ({quiet_for:g} s)", "raise wait")

    def check(self) -> Iterator[Finding]:
        found = list(read_tables())
        listening = {each.port for each in found if each.state == _LISTEN}
        for port in self.run.options["ports"]:
            if port not in listening:
                yield Finding(WARNING, f"port {port}: no program listens on it in this network namespace")
            else:
                count = sum(each.port == port for each in self._open(found))
                yield Finding(INFO, f"port {port}: connections: {count}")

    def prepare(self) -> None:
        left, quiet_for = self.run.deadline.left(), self.run.options["quiet_for"]
        most = self.run.deadline.wait_limit(self.run.options["wait"])
        ports = ", ".join(map(str, self.run.options["ports"]))
        if self.run.dry_run:
            self.run.say(f"would wait up to {most:.0f} s; port {ports}: connections: {len(self._open(read_tables()))}")
            return
        quiet_since: list[float] = []
        remaining: list[Connection] = []

        def is_quiet() -> bool:
            remaining[:] = self._open(read_tables())
            elapsed = left - self.run.deadline.left()
            if remaining:
                quiet_since.clear()
            elif not quiet_since:
                quiet_since.append(elapsed)
            return not remaining and elapsed - quiet_since[0] >= quiet_for

        if self.run.deadline.wait_until(is_quiet, most, min(0.5, quiet_for) or 0.5):
            self.run.say(f"port {ports}: no connections")
            return
        problem = f"connections that have not ended within {most:.0f} s: {len(remaining)}" + _peers(remaining)
        if not remaining:
            problem = f"it was not without connections for {quiet_for:g} s within {most:.1f} s"
        self.run.out_of_time(f"port {ports}", problem, "raise wait, list health probes in ignore, or set on_timeout")

    def recover(self) -> None:
        self.run.say("nothing to undo")

    def _open(self, connections: Iterable[Connection]) -> list[Connection]:
        ports, ignored = self.run.options["ports"], self.run.options["ignore"]
        return [
            each
            for each in connections
            if each.is_open and each.port in ports and not any(each.peer in one for one in ignored)
        ]


def _peers(connections: Iterable[Connection]) -> str:
    most = Counter(str(each.peer) for each in connections).most_common(_MOST_PEERS)
    return f" (most from {', '.join(f'{peer}: {count}' for peer, count in most)})" if most else ""


def read_tables() -> Iterator[Connection]:
    """Yield the TCP sockets of this network namespace. Raises HookError."""
    for path in _TABLES:
        try:
            with open(path, encoding="ascii") as file:
                yield from parse_table(file)
        except FileNotFoundError:
            continue  # without IPv6
        except (OSError, ValueError, IndexError) as error:
            raise HookError(path, f"it cannot be read: {error}") from None


def parse_table(lines: Iterable[str]) -> Iterator[Connection]:
    """Yield the sockets of /proc/net/tcp or tcp6; a mapped IPv4 address is an IPv4 address."""
    for number, line in enumerate(lines):
        if number:
            fields = line.split()
            port = int(fields[1].rsplit(":", 1)[1], 16)
            yield Connection(port, _address(fields[2]), int(fields[3], 16), int(fields[4].split(":")[0], 16))


def _address(field: str) -> Address:
    digits = field.split(":", maxsplit=1)[0]
    # words of 32 bits in the byte order of the machine
    words = [int(digits[start : start + 8], 16) for start in range(0, len(digits), 8)]
    found = ipaddress.ip_address(struct.pack(f"={len(words)}I", *words))
    return getattr(found, "ipv4_mapped", None) or found


HOOK = Connections
