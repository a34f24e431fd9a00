# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""HTTP requests to a simulated IMDS without proxies, retries or added headers."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
HEADER: Mapping[str, str] = MappingProxyType({"Metadata": "true"})


class Response(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def send_request(endpoint: str, *arguments: Any, **options: Any) -> Response:
    """Send one request on a connection of its own; the arguments are those of ``send_requests``, without ``count``."""
    (response,) = send_requests(endpoint, 1, *arguments, **options)
    return response


def send_requests(
    endpoint: str,
    count: int,
    path: str = EVENTS,
    method: str = "GET",
    headers: Mapping[str, str] = HEADER,
    body: bytes | None = None,
    source: str = "",
) -> list[Response]:
    """Send a request so many times on one connection."""
    address = (source, 0) if source else None
    connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=60, source_address=address)
    responses = []
    with contextlib.closing(connection):
        for _each in range(count):
            connection.request(method, path, body=body, headers=dict(headers))
            responses.append(_whole(connection.getresponse()))
    return responses


def approve(endpoint: str, *sequential_ids: str, headers: Mapping[str, str] = HEADER, path: str = EVENTS) -> Response:
    body = json.dumps({"StartRequests": [{"EventId": each} for each in sequential_ids]}).encode()
    return send_request(endpoint, path, "POST", headers, body)


def send_raw(endpoint: str, data: bytes = b"") -> bytes:
    """Send ``data`` and return all bytes until the server closes the connection. Raises OSError."""
    with connect(endpoint) as connection:
        connection.sendall(data or request_bytes())
        return b"".join(iter(lambda: connection.recv(65536), b""))


def connect(endpoint: str, timeout: float = 60.0) -> socket.socket:
    """Return a connection to ``endpoint``, a URL."""
    parts = urlsplit(endpoint)
    return socket.create_connection((parts.hostname or "", parts.port or 80), timeout)


def request_bytes(path: str = EVENTS, more: str = "Connection: close\r\n") -> bytes:
    """Return a GET request; ``more`` are further header lines."""
    return (f"GET {path} HTTP/1.1\r\nHost: 169.254.169.254\r\nMetadata: true\r\n{more}\r\n").encode()


def read_response(connection: socket.socket) -> Response:
    """Read one response from a connection that stays open."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    return _whole(response)


def _whole(response: http.client.HTTPResponse) -> Response:
    return Response(response.status, response.headers, response.read())
