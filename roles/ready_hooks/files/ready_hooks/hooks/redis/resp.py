# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""A client for Redis and Sentinel, so that the hook needs no redis-cli and shows no password to other processes.

It uses RESP2, which all versions of Redis and Valkey understand.
"""

from __future__ import annotations

import contextlib
import io
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from typing import Any, Union

from ready_hooks.core.address import Address
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError, OutOfTime

# seconds for one answer, bytes of one text, members of one list, lists in lists
_ANSWER_LIMIT = 5.0
_MOST_BYTES, _MOST_MEMBERS, _MOST_DEPTH = 4 << 20, 10_000, 4
# a linger time of 0: close discards what the system has not sent yet
_DISCARD = struct.pack("ii", 1, 0)

Reply = Union[str, int, None, "list[Reply]"]


class RedisError(HookError):
    """An error that the server has answered; `command` has only those of its words that are not secret."""

    def __init__(self, address: str, command: str, text: str) -> None:
        super().__init__(address, f"it refuses {command}: {text}")
        self.code = text.partition(" ")[0]


class ConnectionClosed(HookError):
    """The server has closed the connection."""


class Client:
    """A connection, which is opened again where the server has closed it.

    Sentinel closes the connections of clients when it reconfigures an instance. AUTH uses `user`, or the default one
    for None; without a password there is no AUTH.
    """

    def __init__(self, to: Address, deadline: Deadline, user: str | None, password: str | None) -> None:
        self.address = str(to)
        self._to, self._deadline = to, deadline
        self._login = () if password is None else ("AUTH", *([user] if user else []), password)
        self._socket: socket.socket | None = None
        self._parts: _Parts | None = None
        self._stream: io.BufferedReader | None = None

    def open(self) -> None:
        """Connect, with AUTH where there is a password. Raises HookError."""
        try:
            self._socket = self._to.connect(self._deadline.answer_limit(_ANSWER_LIMIT))
        except OSError as error:
            remedy = "start the server, or correct the address"
            raise HookError(self.address, f"it cannot be reached: {error.strerror or error}", remedy) from None
        self._parts = _Parts(self._socket)
        self._stream = io.BufferedReader(self._parts)
        if self._login:
            self._exchange(self._login, "AUTH")

    def ask(self, *words: str, again: bool = True) -> Reply:
        """Send a command, and return the answer; `again` sends it once more where the server closes the connection.

        Raises:
            RedisError: the server has answered with an error.
            HookError: the connection has failed.
        """
        if self._socket is None:
            self.open()
        try:
            return self._exchange(words, " ".join(words))
        except ConnectionClosed:
            if not again:
                raise
            self.open()
            return self._exchange(words, " ".join(words))

    def close(self) -> None:
        """End the connection."""
        for each in (self._stream, self._socket):
            if each is not None:
                with contextlib.suppress(OSError):
                    each.close()
        self._stream = self._socket = None

    def _abort(self) -> None:
        """End the connection; the system must not send the request later, after the network was interrupted."""
        if self._socket is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DISCARD)
        self.close()

    def _exchange(self, words: Sequence[str], command: str) -> Reply:
        request = b"".join(b"$%d\r\n%s\r\n" % (len(each), each) for each in (word.encode() for word in words))
        is_complete = False
        try:
            assert self._socket is not None and self._parts is not None
            most = self._deadline.answer_limit(_ANSWER_LIMIT)
            self._parts.end = time.monotonic() + most
            self._socket.settimeout(most)
            self._socket.sendall(b"*%d\r\n%s" % (len(words), request))
            answer = self._answer(command)
            is_complete = True
            return answer
        except RedisError:
            is_complete = True
            raise
        except socket.timeout:
            raise OutOfTime(self.address, f"it did not answer {words[0]} in time") from None
        except ValueError as error:
            raise HookError(self.address, f"the connection failed: {error}") from None
        except OSError as error:
            raise ConnectionClosed(self.address, f"the connection failed: {error.strerror or error}") from None
        finally:
            if not is_complete:
                self._abort()

    def texts(self, *words: str) -> list[str]:
        """Send a command whose answer is a list of texts. Raises HookError."""
        found = self.ask(*words)
        return [str(each) for each in found] if isinstance(found, list) else []

    def _answer(self, command: str, depth: int = 0) -> Reply:
        assert self._stream is not None
        line = self._stream.readline(_MOST_BYTES)
        if not line.endswith(b"\r\n"):
            raise ConnectionResetError("the server has closed it")
        kind, rest = line[:1], line[1:-2].decode("utf-8", "replace")
        if kind == b"+":
            return rest
        if kind == b"-":
            raise RedisError(self.address, command, rest)
        number = int(rest)
        if kind == b":":
            return number
        if number < 0:
            return None
        if kind == b"$" and number <= _MOST_BYTES:
            content = self._stream.read(number + 2)
            if len(content) < number + 2:
                raise ConnectionResetError("the server has closed it")
            return content[:-2].decode("utf-8", "replace")
        if kind == b"*" and number <= _MOST_MEMBERS and depth < _MOST_DEPTH:
            return [self._answer(command, depth + 1) for _element in range(number)]
        raise ValueError("the server does not use the protocol of Redis")


class _Parts(io.RawIOBase):
    """The parts of an answer, until an end: each of them can come in time, and the answer never end."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._socket, self.end = connection, 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read a part into the buffer, and return its size. Raises OSError."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise socket.timeout("the answer has not ended")
        self._socket.settimeout(left)
        return self._socket.recv_into(buffer)


@contextlib.contextmanager
def connected(to: Address, deadline: Deadline, user: str | None, password: str | None) -> Iterator[Client]:
    """A connection for the block, with AUTH where there is a password. Raises HookError."""
    client = Client(to, deadline, user, password)
    try:
        client.open()
        yield client
    finally:
        client.close()
