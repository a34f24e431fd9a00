# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Asks one HAProxy over its runtime socket, and reads its answers."""

from __future__ import annotations

import csv
import math
import re
import time
from collections.abc import Mapping
from typing import NamedTuple

from ready_hooks.core import arguments
from ready_hooks.core.address import Address
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError, OutOfTime

READY, DRAIN, MAINT = "ready", "drain", "maint"

# for a connection, and for each part of an answer
_MOST_SECONDS = 3.0
_MOST_BYTES = 32 * 1024 * 1024

# srv_admin_state: set through the socket, the page or an agent; inherited from a tracked server or a host name
_FORCED_MAINT, _FORCED_DRAIN = 0x01, 0x08
_OTHER_MAINT = 0x02 | 0x20
# srv_op_state: starting and running
_UP = (1, 2)
# srv_check_state: configured and enabled
_CHECKED = 0x02 | 0x04


class Server(NamedTuple):
    """One server of one HAProxy: the numbers of `show servers state`."""

    admin: int
    operation: int
    check: int

    @property
    def state(self) -> str:
        """The state that an administrator has set: READY, DRAIN or MAINT."""
        if self.admin & _FORCED_MAINT:
            return MAINT
        return DRAIN if self.admin & _FORCED_DRAIN else READY

    @property
    def is_up(self) -> bool:
        """Whether HAProxy takes it for usable, apart from `state`."""
        return self.operation in _UP

    @property
    def is_held(self) -> bool:
        """Whether a tracked server, or a host name without address, holds it in maintenance."""
        return bool(self.admin & _OTHER_MAINT)

    @property
    def has_check(self) -> bool:
        """Whether a health check of its own is configured and enabled."""
        return self.check & _CHECKED == _CHECKED


class Statistics(NamedTuple):
    """One server in `show stat`.

    Attributes:
        sessions: those that it serves, and those that wait in its queue.
        check: the result of its last check.
        tracked: the server whose state it takes over, or "".
    """

    sessions: int
    check: str
    tracked: str


class RuntimeSocket:
    """The runtime socket of one HAProxy."""

    def __init__(self, at: Address, deadline: Deadline) -> None:
        self.address, self._at, self._deadline = str(at), at, deadline

    def ask(self, command: str) -> str:
        """Send a command, and return the answer. Raises HookError."""
        # each part of an answer can come in time, and the answer never end
        end = time.monotonic() + self._deadline.answer_limit(math.inf)
        try:
            with self._at.connect(self._deadline.answer_limit(_MOST_SECONDS)) as connection:
                connection.sendall(command.encode("ascii") + b"\n")
                answer = bytearray()
                while part := connection.recv(65536):
                    answer += part
                    if len(answer) > _MOST_BYTES:
                        raise HookError(self.address, f"the answer to {command!r} is too long")
                    if time.monotonic() > end:
                        raise OutOfTime(self.address, f"the answer to {command!r} did not end in time")
        except OSError as error:
            remedy = (
                "start HAProxy, or correct socket" if isinstance(error, ConnectionRefusedError) else "correct socket"
            )
            raise HookError(self.address, f"HAProxy does not answer: {error.strerror or error}", remedy) from None
        return answer.decode("utf-8", "replace").strip()

    def order(self, command: str) -> None:
        """Send a command that has no answer where it succeeds. Raises HookError."""
        answer = self.ask(command)
        if answer:
            remedy = "add `level admin` to its stats socket" if "denied" in answer else ""
            raise HookError(self.address, f"HAProxy refused {command!r}: {answer.splitlines()[0]}", remedy)

    def servers(self) -> dict[str, Server]:
        """Return the servers by BACKEND/SERVER. Raises HookError."""
        return parse_servers(self.ask("show servers state"), self.address)

    def statistics(self) -> dict[str, Statistics]:
        """Return the statistics of the servers by BACKEND/SERVER. Raises HookError."""
        return parse_statistics(self.ask("show stat -1 4 -1"), self.address)


def parse_server_name(value: object) -> str:
    """Return BACKEND/SERVER, which a command can contain. Raises ValueError."""
    if not re.fullmatch(r"[A-Za-z0-9_.:-]+/[A-Za-z0-9_.:-]+", arguments.text(value)):
        raise ValueError(f"expected BACKEND/SERVER, not {value!r}")
    return str(value)


def parse_servers(answer: str, address: str) -> dict[str, Server]:
    """Return the servers of an answer to `show servers state`. Raises HookError."""
    lines = answer.splitlines()
    if len(lines) < 2 or lines[0].strip() != "1" or not lines[1].startswith("# "):
        raise _unexpected(answer, address)
    names = lines[1][2:].split()
    found = {}
    for line in lines[2:]:
        row = dict(zip(names, line.split()))
        if row:
            try:
                numbers = (row["srv_admin_state"], row["srv_op_state"], row["srv_check_state"])
                found[f"{row['be_name']}/{row['srv_name']}"] = Server(*map(int, numbers))
            except (KeyError, ValueError):
                raise _unexpected(line, address) from None
    return found


def parse_statistics(answer: str, address: str) -> dict[str, Statistics]:
    """Return the servers of an answer to `show stat`. Raises HookError."""
    if not answer.startswith("# pxname,"):
        raise _unexpected(answer, address)
    try:
        return {
            f"{row['pxname']}/{row['svname']}": Statistics(
                int(row["scur"] or 0) + int(row["qcur"] or 0), _check(row), row.get("tracked") or ""
            )
            for row in csv.DictReader(answer[2:].splitlines())
        }
    except (KeyError, ValueError, csv.Error):
        raise _unexpected(answer, address) from None


def _check(row: Mapping[str, str]) -> str:
    words = (row.get("check_status"), row.get("last_chk"))
    return ": ".join(word.strip("* ") for word in words if word)


def _unexpected(answer: str, address: str) -> HookError:
    first = (answer.splitlines() or [""])[0][:80]
    return HookError(address, f"unexpected answer {first!r}", "is it the runtime socket of HAProxy 1.8 or later?")
