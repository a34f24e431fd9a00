# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The local socket between the command and the daemon: one line of JSON for a request, one for its answer.

Owner, group and mode of the socket's file decide which users may connect.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import socket
import struct
import time
from typing import Any, Callable, Mapping

NAME = "control.sock"
# the read-only socket
STATUS_NAME = "status.sock"
READ_ONLY = ("status", "history")
MAX_REQUEST = 65536
# seconds for which a slow client may block the daemon, once with its request and once with the answer
_CLIENT_TIMEOUT = 0.5
NOT_PERMITTED = "the members of status_group may ask for the status and the history only"
_CREDENTIALS = struct.Struct("3i")


class ControlSocket:
    """The daemon's end of a socket. Call `listen` before anything else.

    Args:
        directory: of the socket.
        group: gid that may connect in addition to root, or None.
        answer: takes (request, name of the client's user) and returns the answer.
        name: the socket's file name; STATUS_NAME accepts only the requests of READ_ONLY.
    """

    def __init__(
        self,
        directory: str,
        group: int | None,
        answer: Callable[[Mapping[str, Any], str], Mapping[str, Any]],
        name: str = NAME,
    ) -> None:
        self._answer = answer
        self._group = group
        self._is_read_only = name == STATUS_NAME
        self._directory, self._name = directory, name
        self.path = os.path.join(directory, name)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._socket.setblocking(False)
        self._identity = (0, 0)

    def listen(self) -> None:
        """Create the socket's file, and accept connections from now on. Raises OSError."""
        with self._bound() as made:
            os.dup2(made.fileno(), self._socket.fileno(), inheritable=False)

    def renew(self) -> bool:
        """Create the socket again if its file was removed or replaced; return True if it was.

        The descriptor stays the same. Raises OSError.
        """
        if self._is_ours():
            return False
        self.listen()
        return True

    def _bound(self) -> socket.socket:
        remove_stale(self._directory, self._name)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            before = os.umask(0o177)
            try:
                made.bind(self.path)
            finally:
                os.umask(before)
            if self._group is not None:
                os.chown(self.path, -1, self._group)
                os.chmod(self.path, 0o660)
            made.listen(8)
            made.setblocking(False)
            found = os.lstat(self.path)
            self._identity = found.st_dev, found.st_ino
        except BaseException:
            made.close()
            raise
        return made

    def fileno(self) -> int:
        """Return the descriptor for poll(2): readable when a client wants to connect."""
        return self._socket.fileno()

    def answer_one(self) -> None:
        """Answer one client, if there is one."""
        try:
            client, _address = self._socket.accept()
        except OSError:
            return
        with client:
            until = time.monotonic() + _CLIENT_TIMEOUT
            try:
                request = json.loads(_read_line(client, MAX_REQUEST, until))
                if not isinstance(request, dict):
                    raise ValueError("not an object")
                permitted = not self._is_read_only or request.get("ask") in READ_ONLY
                answer = self._answer(request, _user_of(client)) if permitted else {"error": NOT_PERMITTED}
                client.settimeout(_CLIENT_TIMEOUT)  # the limit of sendall as a whole
                client.sendall(json.dumps(answer).encode("ascii") + b"\n")
            except (OSError, ValueError, RecursionError):
                return  # the client disconnected or sent something other than a JSON object

    def close(self) -> None:
        """Close the socket and remove its file."""
        is_ours = self._is_ours()
        self._socket.close()
        try:
            if is_ours:
                os.unlink(self.path)
        except OSError:
            pass

    def _is_ours(self) -> bool:
        """Return True if the file is the socket that this process created."""
        try:
            found = os.lstat(self.path)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity


def remove_stale(directory: str, name: str) -> None:
    """Remove the socket of a daemon that was killed. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, name))


def send_request(directory: str, request: Mapping[str, Any], timeout: float = 10.0) -> dict[str, Any]:
    """Send a request to the daemon and return its answer.

    Args:
        directory: of the socket.
        request: the members of the request.
        timeout: seconds for the whole exchange.

    Raises:
        FileNotFoundError: no daemon runs.
        ConnectionRefusedError: no daemon runs.
        PermissionError: this user may not connect.
        OSError: the daemon does not answer.
    """
    try:
        return _asked(os.path.join(directory, NAME), request, timeout)
    except PermissionError:
        if request.get("ask") not in READ_ONLY or not os.path.exists(os.path.join(directory, STATUS_NAME)):
            raise
        return _asked(os.path.join(directory, STATUS_NAME), request, timeout)


def _asked(path: str, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as channel:
        until = time.monotonic() + timeout
        channel.settimeout(timeout)
        channel.connect(path)
        channel.sendall(json.dumps(request).encode("ascii") + b"\n")
        try:
            answer = json.loads(_read_line(channel, 1 << 26, until))
        except ValueError as error:
            raise OSError(f"the service sent an invalid answer: {error}") from None
    return answer if isinstance(answer, dict) else {}


def _read_line(channel: socket.socket, longest: int, until: float) -> bytes:
    """Read up to the end of a line. Raises OSError when monotonic time reaches `until`."""
    data = bytearray()
    while not data.endswith(b"\n") and len(data) < longest:
        left = until - time.monotonic()
        if left <= 0:
            raise socket.timeout("timed out")
        channel.settimeout(left)
        piece = channel.recv(65536)
        if not piece:
            break
        data += piece
    return bytes(data)


def _user_of(client: socket.socket) -> str:
    _pid, uid, _gid = _CREDENTIALS.unpack(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
