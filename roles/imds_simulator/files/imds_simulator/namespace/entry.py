# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The process that becomes the command of ``exec --imds-address``.

It enters a new network namespace, opens the sockets of the simulator there, sends them to the simulator, which stays
outside, and executes the command when the simulator serves them. Only the standard library is imported.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

from . import loopback
from .messages import Failure, Request, Step

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000


class _Failed(Exception):
    """A step failed."""

    def __init__(self, step: Step, error: OSError) -> None:
        super().__init__(step, error)
        self.failure = Failure(step.value, error.errno or 0, error.strerror or str(error))


def main(arguments: Sequence[str]) -> int:
    """Execute the command ``arguments[1:]``; return 1 if it does not start.

    ``arguments[0]`` is the descriptor of the socket to the simulator.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # without a traceback; and the command gets the default
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    with socket.socket(fileno=int(arguments[0])) as simulator:
        simulator.set_inheritable(False)
        try:
            _execute(simulator, arguments[1:])
        except _Failed as error:
            simulator.send(json.dumps(error.failure._asdict()).encode())
    return 1


def _execute(simulator: socket.socket, command: Sequence[str]) -> None:
    request = Request(**json.loads(simulator.recv(1024)))
    enter(request.address)
    for _socket in range(request.sockets):
        host, port = json.loads(simulator.recv(1024))
        with _listening_socket(host, port) as sock:
            socket.send_fds(simulator, [b"{}"], [sock.fileno()])
    if not simulator.recv(1024):
        # the simulator has ended
        return
    # Python ignores these, and the command would inherit that
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        raise _Failed(Step.EXECUTE, error) from None


def enter(address: str) -> None:
    """Enter a new network namespace whose lo has ``address``.

    A user who may create one without a user namespace (root) keeps all user ids. Every other user enters a
    user namespace, too, with the own user id.

    Raises:
        _Failed: the kernel refuses it.
    """
    try:
        _unshare(_CLONE_NEWNET)
        _prepare_loopback(address)
    except _Failed:
        _enter_user_namespace()
        _prepare_loopback(address)


def _enter_user_namespace() -> None:
    user, group = os.geteuid(), os.getegid()
    _unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
    try:
        # a group can be mapped only after that (user_namespaces(7))
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    except OSError as error:
        raise _Failed(Step.MAP_USER, error) from None


def _prepare_loopback(address: str) -> None:
    try:
        loopback.bring_up()
        loopback.add_address(address)
    except OSError as error:
        raise _Failed(Step.ADD_ADDRESS, error) from None


def _unshare(flags: int) -> None:
    try:
        if sys.version_info >= (3, 12):
            os.unshare(flags)  # novm
            return
        # the program unshare is not everywhere, and cannot map a user before it adds an address
        import ctypes

        libc: Any = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(flags):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
    except OSError as error:
        raise _Failed(Step.UNSHARE, error) from None


def _write(file: str, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _listening_socket(host: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise _Failed(Step.BIND, error) from None
    return sock
