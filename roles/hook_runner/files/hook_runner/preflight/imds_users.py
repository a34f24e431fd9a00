# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The part of `check` that watches which users ask IMDS, whom the role's `hook_runner_restrict_imds` would cut off."""

from __future__ import annotations

import pwd
import socket
import sys
import time
from typing import Iterator

from hook_runner.preflight.report import INFO, WARNING, Report

IMDS = ("169.254.169.254", 80)
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
# seconds between two looks: a connection to IMDS lasts some milliseconds
PAUSE = 0.005
# of a connection that is over the kernel does not know the user any more
_TIME_WAIT = "06"


def check_imds_users(seconds: float, report: Report, imds: tuple[str, int] = IMDS) -> None:
    """Name the users but root whose connections to IMDS are seen within these seconds."""
    found = users_of(seconds, imds)
    where = "%s:%d" % imds
    for uid, count in sorted(found.items()):
        text = "user %s asked %s (%d connections seen): hook_runner_restrict_imds cuts it off, from managed-identity tokens too"
        text += ", unless hook_runner_imds_users names it"
        report.add(WARNING, "imds-users", where, text % (_name(uid), where, count))
    if not found:
        text = "no user but root was seen to ask %s within %g s"
        text += "; a program that asks rarely, or in a container's own network, is not seen"
        report.add(INFO, "imds-users", where, text % (where, seconds))


def users_of(seconds: float, imds: tuple[str, int]) -> dict[int, int]:
    """How many connections of each user but root to this address and port were seen within these seconds."""
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
    """User and inode of each connection to the remote end; IPv6 has an IPv4 address at its end."""
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
