# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The local sockets between the command and the daemon: one line of JSON for a request, one for its answer.

Owner, group and mode of a socket's file decide which users may connect.
"""

from __future__ import annotations

import collections
import contextlib
import json
import logging
import os
import selectors
import socket
import struct
from typing import Any, Mapping

from hook_runner.service.control_requests import ControlRequests

log = logging.getLogger(__name__)


NAME = "control.sock"
# the read-only socket
STATUS_NAME = "status.sock"
READ_ONLY = ("status", "history")
MAX_REQUEST = 65536
# bytes of an answer that a client reads
_MAX_ANSWER = 1 << 26
_LOG = "journalctl --unit azure-scheduled-events"
# clients of one socket at a time; a further one takes the place of the oldest client of the user who has most of them
_MOST_CLIENTS = 8
# clients that the kernel keeps in their order until they are accepted; a further one waits for a place. One user can
# take all of these places, and each client costs the time of an answer before the next user has its turn
_MOST_WAITING = 32
NOT_PERMITTED = "the members of status_group may ask for the status and the history only"
_CREDENTIALS = struct.Struct("3i")
# seconds that connecting, and each step of the exchange, may take
_TIMEOUT = 10
# of setsockopt(2)
_TIMEVAL = struct.Struct("@ll")


class _Client:
    """A client that is connected: what it has sent so far, then what it has not received yet."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        # at the time of its connection
        credentials = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _pid, self.uid, _gid = _CREDENTIALS.unpack(credentials)
        self.request = bytearray()
        self.unsent = b""


class ControlSocket:
    """The daemon's end of a socket. Call `listen` before anything else.

    It never waits for a client. `group` is the gid that may connect in addition to root, or None. The socket
    STATUS_NAME accepts only the requests of READ_ONLY.
    """

    def __init__(self, directory: str, name: str, group: int | None, requests: ControlRequests) -> None:
        self.path = os.path.join(directory, name)
        self._is_read_only = name == STATUS_NAME
        self._group = group
        self._requests = requests
        self._listener: socket.socket | None = None
        self._identity = (0, 0)
        self._selector = selectors.DefaultSelector()
        # the oldest first
        self._clients: list[_Client] = []

    def listen(self) -> None:
        """Create the socket's file, and accept connections from now on. Raises OSError."""
        remove_stale(self.path)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.bind(self.path)
            # no client can connect before listen()
            if self._group is not None:
                os.chown(self.path, -1, self._group)
            os.chmod(self.path, 0o600 if self._group is None else 0o660)
            made.listen(_MOST_WAITING)
            made.setblocking(False)
            self._identity = _identity_of(self.path)
        except BaseException:
            made.close()
            raise
        if self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener.close()
        self._listener = made
        self._selector.register(made, selectors.EVENT_READ)

    def fileno(self) -> int:
        """Return the descriptor for poll(2): readable when `serve` has something to do."""
        return self._selector.fileno()

    def serve(self) -> None:
        """Accept a client, and read from and write to those that are ready; answer one request at most."""
        # the client that the first round accepts has usually sent its request already, and the main loop can be slow
        for _round in range(2):
            for key, _events in self._selector.select(0):
                if key.fileobj is self._listener:
                    self._accept(self._listener)
                elif key.data in self._clients and self._has_answered(key.data):
                    return  # the main loop has other work, too

    def _accept(self, listener: socket.socket) -> None:
        try:
            channel, _address = listener.accept()
        except OSError:
            return
        channel.setblocking(False)
        if len(self._clients) >= _MOST_CLIENTS:
            # no user takes the places of all others
            (uid, _count), *_others = collections.Counter(client.uid for client in self._clients).most_common()
            self._leave(next(client for client in self._clients if client.uid == uid))
        self._clients.append(_Client(channel))
        self._selector.register(channel, selectors.EVENT_READ, self._clients[-1])

    def _has_answered(self, client: _Client) -> bool:
        """Continue with a client that is ready; return True if this was the answer to its request.

        1. A request that is not complete waits for more. It is complete at the end of a line or of the client's
           data, or with MAX_REQUEST bytes.
        2. A complete request is answered, and as much as possible of the answer is sent.
        3. The client leaves when it has the whole answer or has disconnected, or if its request gets no answer.
        """
        is_asking = not client.unsent
        try:
            if is_asking:
                piece = client.channel.recv(65536)
                client.request += piece
                if piece and not piece.endswith(b"\n") and len(client.request) < MAX_REQUEST:
                    return False
                client.unsent = self._answer_to(client)
                self._selector.modify(client.channel, selectors.EVENT_WRITE, client)
            client.unsent = client.unsent[client.channel.send(client.unsent) :]
        except BlockingIOError:
            return False
        except OSError:
            client.unsent = b""  # it has disconnected
        if not client.unsent:
            self._leave(client)
        return is_asking

    def _answer_to(self, client: _Client) -> bytes:
        """Return the answer to the client's request; b"" if this is not a JSON object.

        The answer is an error if the read-only socket gets a request other than READ_ONLY, or if the request
        fails.
        """
        try:
            request = json.loads(client.request)
        except (ValueError, RecursionError):
            return b""
        if not isinstance(request, dict):
            return b""
        answer: Mapping[str, Any] = {"error": NOT_PERMITTED}
        try:
            if not self._is_read_only or request.get("ask") in READ_ONLY:
                answer = self._requests.answer(request, client.uid)
            return json.dumps(answer).encode("ascii") + b"\n"
        except Exception as error:  # no request may end the daemon
            text = f"the request causes an error of this program: {error!r}"
            log.error("the control socket %s: %s", self.path, text)
            return json.dumps({"error": text}).encode("ascii") + b"\n"

    def _leave(self, client: _Client) -> None:
        self._clients.remove(client)
        self._selector.unregister(client.channel)
        client.channel.close()

    def close(self) -> None:
        """Close the socket and remove its file."""
        for client in self._clients[:]:
            self._leave(client)
        if self._listener is not None:
            self._listener.close()
        self._selector.close()
        if self.is_ours():
            remove_stale(self.path)

    def is_ours(self) -> bool:
        """Return True if the file is the socket that this process created."""
        try:
            return _identity_of(self.path) == self._identity
        except OSError:
            return False


def remove_stale(path: str) -> None:
    """Remove the socket of a daemon that was killed. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def send_request(directory: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Send a request to the daemon and return its answer.

    If this user may not connect to the socket for all requests, one of READ_ONLY goes to the read-only socket.

    Raises:
        FileNotFoundError: no daemon runs.
        ConnectionRefusedError: no daemon runs.
        PermissionError: this user may not connect.
        OSError: the daemon does not answer in time, or not completely; the text is one sentence.
    """
    try:
        return _asked(os.path.join(directory, NAME), request)
    except PermissionError:
        if request.get("ask") not in READ_ONLY or not os.path.exists(os.path.join(directory, STATUS_NAME)):
            raise
        return _asked(os.path.join(directory, STATUS_NAME), request)


def _asked(path: str, request: Mapping[str, Any]) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        # where other clients wait, connect waits for its turn, which a socket with a time-out of Python does not
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIMEVAL.pack(_TIMEOUT, 0))
        try:
            channel.connect(path)
            channel.settimeout(_TIMEOUT)
            channel.sendall(json.dumps(request).encode("ascii") + b"\n")
            with channel.makefile("rb") as received:
                answer = received.readline(_MAX_ANSWER)
        except (BlockingIOError, socket.timeout):
            raise OSError(f"the service did not answer within {_TIMEOUT} s; its log says why: {_LOG}") from None
        except (BrokenPipeError, ConnectionResetError):
            answer = b""
    if not answer.endswith(b"\n"):
        raise OSError(
            "the service closed the connection before the end of its answer: it is stopping, or has too many clients;"
            " see `azure-scheduled-events status`, and repeat the command"
        )
    return dict(json.loads(answer))


def _identity_of(path: str) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino
