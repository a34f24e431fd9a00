# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Asking a simulated IMDS over a plain socket connection, with nothing added that a test did not ask for."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
HEADER: Mapping[str, str] = MappingProxyType({"Metadata": "true"})


class Got(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    endpoint: str,
    path: str = EVENTS,
    method: str = "GET",
    headers: Mapping[str, str] = HEADER,
    body: bytes | None = None,
    timeout: float = 60.0,
) -> Got:
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=timeout)
    try:
        connection.request(method, path, body=body, headers=dict(headers))
        answer = connection.getresponse()
        return Got(answer.status, answer.headers, answer.read())
    finally:
        connection.close()


def approve(endpoint: str, *ids: str, headers: Mapping[str, str] = HEADER, path: str = EVENTS) -> Got:
    body = json.dumps({"StartRequests": [{"EventId": each} for each in ids]}).encode()
    return ask(endpoint, path, "POST", headers, body)


def raw(endpoint: str, data: bytes = b"", timeout: float = 60.0) -> bytes:
    """Everything that comes back for ``data`` until the other side closes; OSError as it comes."""
    with connected(endpoint, timeout) as connection:
        connection.sendall(data or request_bytes())
        parts: list[bytes] = []
        while True:
            part = connection.recv(65536)
            if not part:
                return b"".join(parts)
            parts.append(part)


def connected(endpoint: str, timeout: float = 60.0) -> socket.socket:
    parts = urlsplit(endpoint)
    return socket.create_connection((parts.hostname or "", parts.port or 80), timeout)


def request_bytes(path: str = EVENTS, more: str = "Connection: close\r\n") -> bytes:
    return (f"GET {path} HTTP/1.1\r\nHost: 169.254.169.254\r\nMetadata: true\r\n{more}\r\n").encode()


def one_answer(connection: socket.socket) -> bytes:
    """One whole answer from a connection that stays open; servers may send head and body apart."""
    answer = b""
    while True:
        head, blank, body = answer.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
        if blank and len(body) >= int(length or 0):
            return answer
        part = connection.recv(65536)
        assert part, f"the connection closed after {answer!r}"
        answer += part
