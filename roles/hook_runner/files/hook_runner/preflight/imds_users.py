# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of `check` that finds users of IMDS, which `hook_runner_restrict_imds` of the role would cut off."""

from __future__ import annotations

import pwd
import socket
import sys
import time
from typing import Iterator

from hook_runner.preflight.report import INFO, WARNING, Report

IMDS = ("169.254.169.254", 80)
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
# seconds between two checks: a connection to IMDS lasts some milliseconds
PAUSE = 0.005
# state of a closed connection, for which the kernel has no user
_TIME_WAIT = "06"


def check_imds_users(seconds: float, report: Report, imds: tuple[str, int] = IMDS) -> None:
    """Report the users other than root that connect to IMDS within these seconds."""
    found = users_of(seconds, imds)
    where = "%s:%d" % imds
    for uid, count in sorted(found.items()):
        text = (
            "user %s connected to %s (%d connections): hook_runner_restrict_imds cuts it off, also from"
            " managed-identity tokens, unless hook_runner_imds_users names it"
        )
        report.add(WARNING, "imds-users", where, text % (_name(uid), where, count))
    if not found:
        text = "no user but root was seen to ask %s within %g s"
        text += "; a program that asks rarely, or in a container's own network, is not seen"
        report.add(INFO, "imds-users", where, text % (where, seconds))


def users_of(seconds: float, imds: tuple[str, int]) -> dict[int, int]:
    """Return the connections to an address within these seconds, by uid, without those of root."""
    number = int.from_bytes(socket.inet_aton(imds[0]), sys.byteorder)
    remote = f"{number:08X}:{imds[1]:04X}"
    seen: set[tuple[int, str]] = set()
    until = time.monotonic() + seconds
    while True:
        for table in TABLES:
            seen.update(_connections(table, remote))
        if time.monotonic() >= until:
            break
        time.sleep(PAUSE)
    return {uid: sum(other == uid for other, _socket in seen) for uid, _socket in seen}


def _connections(table: str, remote: str) -> Iterator[tuple[int, str]]:
    """Yield uid and inode of each connection to the remote end. A mapped IPv6 address ends with the IPv4 one."""
    try:
        with open(table, encoding="ascii") as file:
            lines = file.readlines()[1:]
    except OSError:
        return
    for line in lines:
        cells = line.split()
        if cells[2].endswith(remote) and cells[3] != _TIME_WAIT and cells[7] != "0":
            yield int(cells[7]), cells[9]


def _name(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return str(uid)
