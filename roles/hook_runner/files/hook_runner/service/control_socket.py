# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The local socket by which the command talks to the running daemon: one line of JSON there, one back.

Who may connect is the business of the file's owner, group and mode.
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
# the socket of those who may look, and change nothing
STATUS_NAME = "status.sock"
READ_ONLY = ("status", "history")
MAX_REQUEST = 65536
# a client holds up the daemon no longer than this with its question, however slowly it sends it,
# and with taking the answer
_CLIENT_TIMEOUT = 0.5
NOT_PERMITTED = "the members of status_group may ask for the status and the history only"
_CREDENTIALS = struct.Struct("3i")


class ControlSocket:
    """The daemon's end.

    Args:
        directory: where the socket is made.
        group: gid that may connect beside root, or None.
        answer: takes (question, name of the asking user) and returns the answer.
        name: the socket's file name; by STATUS_NAME only the questions of READ_ONLY are answered.
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
        self._socket = self._listen()

    def renew(self) -> bool:
        """Make the socket anew where its file was removed or replaced; return True if that was so. Raises OSError. The descriptor stays."""
        if self._is_ours():
            return False
        with self._listen() as made:
            os.dup2(made.fileno(), self._socket.fileno(), inheritable=False)
        return True

    def _listen(self) -> socket.socket:
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
        """For select: readable when somebody wants to connect."""
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
                question = json.loads(_read_line(client, MAX_REQUEST, until))
                if not isinstance(question, dict):
                    raise ValueError("not an object")
                permitted = not self._is_read_only or question.get("ask") in READ_ONLY
                answer = self._answer(question, _user_of(client)) if permitted else {"error": NOT_PERMITTED}
                client.settimeout(_CLIENT_TIMEOUT)  # sendall takes it for the whole
                client.sendall(json.dumps(answer).encode("ascii") + b"\n")
            except (OSError, ValueError, RecursionError):
                return  # it went away, or speaks another language

    def close(self) -> None:
        """Nobody can connect any more."""
        is_ours = self._is_ours()
        self._socket.close()
        try:
            if is_ours:
                os.unlink(self.path)
        except OSError:
            pass

    def _is_ours(self) -> bool:
        """Whether the file is the socket that this process made."""
        try:
            found = os.lstat(self.path)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity


def remove_stale(directory: str, name: str) -> None:
    """Remove the socket that a daemon left which was killed. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, name))


def send_request(directory: str, question: Mapping[str, Any], timeout: float = 10.0) -> dict[str, Any]:
    """The client's end: the daemon's answer.

    Raises FileNotFoundError or ConnectionRefusedError where no daemon runs, PermissionError where
    this user may not ask, other OSErrors where it does not answer.
    """
    try:
        return _asked(os.path.join(directory, NAME), question, timeout)
    except PermissionError:
        if question.get("ask") not in READ_ONLY or not os.path.exists(os.path.join(directory, STATUS_NAME)):
            raise
        return _asked(os.path.join(directory, STATUS_NAME), question, timeout)


def _asked(path: str, question: Mapping[str, Any], timeout: float) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as channel:
        until = time.monotonic() + timeout
        channel.settimeout(timeout)
        channel.connect(path)
        channel.sendall(json.dumps(question).encode("ascii") + b"\n")
        try:
            answer = json.loads(_read_line(channel, 1 << 26, until))
        except ValueError as error:
            raise OSError(f"the service gave no answer: {error}") from None
    return answer if isinstance(answer, dict) else {}


def _read_line(channel: socket.socket, longest: int, until: float) -> bytes:
    """What comes up to the end of a line. Raises OSError where it has not come until then, in monotonic seconds."""
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
