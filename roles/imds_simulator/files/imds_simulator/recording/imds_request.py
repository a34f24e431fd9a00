# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""One request to IMDS: by GET, without proxy and redirect, and with an end in time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, IncompleteRead
from typing import NamedTuple

from ..scenario.groups import Address

MAX_BODY = 4 * 1024 * 1024
_CONNECT_TIMEOUT = 3.0
_HEADERS = {"Metadata": "true", "User-Agent": "imds-recorder", "Connection": "close"}


class Reply(NamedTuple):
    """An answer, or the code of the ``error`` in place of it. Names of ``headers`` are in lower case."""

    status: int = 0
    headers: Mapping[str, str] = {}
    body: bytes = b""
    error: str = ""


def get(endpoint: Address, path: str, timeout: float) -> Reply:
    """Return the answer to a request; the whole of it may take ``timeout`` seconds."""
    connection = HTTPConnection(endpoint.host, endpoint.port, timeout=min(timeout, _CONNECT_TIMEOUT))
    deadline = time.monotonic() + timeout
    try:
        connection.connect()
        connection.sock.settimeout(timeout)
        # a server may send a byte now and then: at the deadline each read ends
        watchdog = threading.Timer(timeout, connection.sock.shutdown, [socket.SHUT_RDWR])
        watchdog.start()
        try:
            reply = _get(connection, path)
        finally:
            watchdog.cancel()
    except socket.timeout:
        return Reply(error="timeout")
    except (OSError, HTTPException, ValueError) as error:
        reply = Reply(error=type(error).__name__)
    finally:
        connection.close()
    return reply if time.monotonic() < deadline else Reply(error="timeout")


def _get(connection: HTTPConnection, path: str) -> Reply:
    connection.request("GET", path, headers=_HEADERS)
    response = connection.getresponse()
    body = response.read(MAX_BODY + 1)
    if len(body) > MAX_BODY:
        return Reply(error="too-large")
    if response.length:
        raise IncompleteRead(body, response.length)
    return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, body)
