# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Starts a command in a network namespace whose sockets are served outside of it; names what forbids that."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Callable

from .entry import BIND, IMDS_ADDRESS, Failure

_SOURCES = str(Path(__file__).parent.parent.parent)
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from imds_simulator.namespace.entry import main; "
    "sys.exit(main(sys.argv[2:]))"
)
# file: value that forbids user namespaces
_SETTINGS = {
    "/proc/sys/user/max_user_namespaces": "0",
    "/proc/sys/user/max_net_namespaces": "0",
    "/proc/sys/kernel/unprivileged_userns_clone": "0",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
}
_ALTERNATIVES = (
    "run the command as root, give a container the capabilities SYS_ADMIN and NET_ADMIN, or run it by exec without "
    "--imds-address, and give the client the URL in $IMDS_SIMULATOR_ENDPOINT"
)


class CannotEnter(Exception):
    """No network has the address of IMDS; the text is one line."""


@contextlib.asynccontextmanager
async def entered(
    command: Sequence[str],
    environment: Mapping[str, str],
    addresses: Sequence[tuple[str, int]],
    in_own_session: bool = False,
) -> AsyncIterator[tuple[asyncio.subprocess.Process, list[socket.socket]]]:
    """Yield a process in a new network namespace, and its sockets, which are bound to ``addresses`` in this order.

    The block serves the sockets; after it the process executes ``command``. With ``in_own_session`` the command leads
    a session, and a process group, of its own.

    Raises:
        CannotEnter: there is no such namespace.
        OSError: the command cannot be executed.
    """
    if sys.platform != "linux":
        raise CannotEnter(f"{IMDS_ADDRESS}: only Linux has network namespaces; run exec without --imds-address")
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with here:
        with there:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", "-c", _PROGRAM, _SOURCES, str(there.fileno())),
                *(json.dumps(address) for address in addresses),
                "--",
                *command,
                env=environment,
                pass_fds=[there.fileno()],
                start_new_session=in_own_session,
            )
        try:
            yield process, await asyncio.to_thread(_receive_sockets, here, len(addresses))
            await asyncio.to_thread(_execute, here)
        except BaseException:
            here.close()
            await process.wait()
            raise


def _receive_sockets(process: socket.socket, count: int) -> list[socket.socket]:
    """Return the sockets that the process has bound; raise CannotEnter if it reports a failure, or ends."""
    found: list[socket.socket] = []
    for _socket in range(count):
        data, descriptors, _flags, _sender = socket.recv_fds(process, 1024, 1)
        if not descriptors:
            ended = Failure("unshare", 0, "the process ended")
            raise refused_namespace(Failure(*json.loads(data)) if data else ended)
        found.append(socket.socket(fileno=descriptors[0]))
        found[-1].setblocking(False)
    return found


def _execute(process: socket.socket) -> None:
    """Let the process execute the command; raise OSError if it cannot."""
    process.send(b"execute")
    # the socket is closed when the command begins
    data = process.recv(1024)
    if data:
        failure = Failure(*json.loads(data))
        raise OSError(failure.code, failure.text)


def _content(file: str) -> str | None:
    try:
        return Path(file).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None


def refused_namespace(failure: Failure, read: Callable[[str], str | None] = _content) -> CannotEnter:
    """Return the error for a ``failure`` before the command was executed.

    ``read`` returns the content of a file, or None.
    """
    if failure.step == BIND:
        return CannotEnter(
            f"{IMDS_ADDRESS}: cannot listen in the namespace: {failure.text}; change --listen or --control"
        )
    causes = [f"{file} is {value}" for file, value in _SETTINGS.items() if read(file) == value]
    cause = " and ".join(causes) or "the kernel, or the seccomp filter of a container, forbids it"
    change = "change that setting, " if causes else ""
    return CannotEnter(
        f"{IMDS_ADDRESS}: cannot create a user and network namespace ({failure.step}: {failure.text}): {cause}; "
        f"{change}{_ALTERNATIVES}"
    )
