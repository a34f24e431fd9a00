# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A client of the server-sent events of the live page."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit


class EventStream:
    """An open stream; ``bytes_read`` and ``kinds`` are about the messages that were read.

    ``control`` is the URL of the control API. ``receive_buffer`` is the number of bytes that the kernel keeps for
    this client; 0: the usual number.
    """

    def __init__(self, control: str, receive_buffer: int = 0, headers: Mapping[str, str] | None = None) -> None:
        address = urlsplit(control)
        self._sock = socket.socket()
        if receive_buffer:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._sock.settimeout(60)
        self._sock.connect((address.hostname, address.port))
        self._connection = http.client.HTTPConnection(address.netloc, timeout=60)
        self._connection.sock = self._sock
        self._connection.request("GET", "/stream", headers=dict(headers or {}))
        self.bytes_read = 0
        self.kinds: list[str] = []

    def answer(self) -> http.client.HTTPResponse:
        """Return the answer; its body is not read."""
        return self._connection.getresponse()

    def messages(self) -> Iterator[tuple[str, Any]]:
        """Yield the kind and the data of each message; wait for the next one."""
        kind = ""
        with self.answer() as answer:
            for line in answer:
                self.bytes_read += len(line)
                if line.startswith(b"event: "):
                    kind = line[7:].strip().decode()
                elif line.startswith(b"data: "):
                    self.kinds.append(kind)
                    yield kind, json.loads(line[6:])

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.close()
        self._connection.close()

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def until(messages: Iterator[tuple[str, Any]], found: Callable[[str, Any], Any]) -> Any:
    """Return the first true result of ``found(kind, data)``; at most 1,000 messages are read."""
    for _number, (kind, data) in zip(range(1000), messages):
        if result := found(kind, data):
            return result
    raise AssertionError("1,000 messages, or the end of the stream, without the expected one")
