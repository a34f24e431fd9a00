# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The process that becomes the command of ``exec --imds-address``.

It enters a new network namespace, opens the sockets of the simulator there, sends them to the simulator, which stays
outside, and executes the command when the simulator serves them. Only the standard library is imported.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Iterator, Sequence
from typing import Any

IMDS_ADDRESS = "169.254.169.254"
IMDS_PORT = 80
# the first step in the namespace, when it has the address
BIND = "bind"

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
# linux/sockios.h, linux/if.h
_SIOCSIFFLAGS, _SIOCSIFADDR, _SIOCSIFNETMASK, _IFF_UP = 0x8914, 0x8916, 0x891C, 0x1


class Failure(Exception):
    """A ``step`` failed by an error of the kernel; the arguments are the last message of the process, as JSON."""

    def __init__(self, step: str, code: int, text: str) -> None:
        super().__init__(step, code, text)
        self.step = step
        self.code = code
        self.text = text


@contextlib.contextmanager
def _step(step: str) -> Iterator[None]:
    """Raise Failure in place of an OSError of the block."""
    try:
        yield
    except OSError as error:
        raise Failure(step, error.errno or 0, error.strerror or str(error)) from None


def main(arguments: Sequence[str]) -> int:
    """Execute a command; return 1 if it does not start.

    ``arguments`` are the descriptor of the socket to the simulator, each address to listen at as a list [HOST, PORT]
    in JSON, ``--``, and the command.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # without a traceback; and the command gets the default
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    separator = arguments.index("--")
    addresses = [json.loads(each) for each in arguments[1:separator]]
    with socket.socket(fileno=int(arguments[0])) as simulator:
        simulator.set_inheritable(False)
        try:
            _execute(simulator, addresses, arguments[separator + 1 :])
        except Failure as failure:
            simulator.send(json.dumps(failure.args).encode())
        except ConnectionError:
            # the simulator has ended
            pass
    return 1


def _execute(simulator: socket.socket, addresses: Sequence[tuple[str, int]], command: Sequence[str]) -> None:
    enter()
    for host, port in addresses:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as sock:
            with _step(BIND):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind((host, port))
            socket.send_fds(simulator, [b"socket"], [sock.fileno()])
    if not simulator.recv(1024):
        # the simulator has ended
        return
    # Python ignores these, and the command would inherit that
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    with _step("execute"):
        os.execvp(command[0], list(command))


def enter() -> None:
    """Enter a new network namespace whose lo has the address of IMDS.

    A user who may create one without a user namespace (root) keeps all user ids. Every other user enters a
    user namespace, too, with the own user id.

    Raises:
        Failure: the kernel refuses it.
    """
    try:
        _unshare(_CLONE_NEWNET)
        _prepare_loopback()
    except Failure:
        _enter_user_namespace()
        _prepare_loopback()


def _enter_user_namespace() -> None:
    user, group = os.geteuid(), os.getegid()
    _unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
    with _step("map-user"):
        # a group can be mapped only after setgroups is denied (user_namespaces(7))
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)


def _prepare_loopback() -> None:
    """Bring lo up, which gives it 127.0.0.1 and ::1, and add the address of IMDS; the program ``ip`` may be missing."""
    # not on Windows, where the simulator starts without a namespace
    import fcntl

    with _step("add-address"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))
        # without the mask the whole class of the address would be local
        for request, value in ((_SIOCSIFADDR, IMDS_ADDRESS), (_SIOCSIFNETMASK, "255.255.255.255")):
            fcntl.ioctl(sock, request, struct.pack("16sH2x4s16x", b"lo:imds", socket.AF_INET, socket.inet_aton(value)))


def _unshare(flags: int) -> None:
    with _step("unshare"):
        if sys.version_info >= (3, 12):
            os.unshare(flags)  # novm
            return
        # the program unshare is not everywhere, and cannot map a user before it adds an address
        import ctypes

        libc: Any = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(flags):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
