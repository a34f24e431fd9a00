# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The address of a server of the workload: the path of a socket, or host and port."""

from __future__ import annotations

import re
import socket
from typing import NamedTuple

from ready_hooks.core import arguments

_HOST_AND_PORT = re.compile(r"([^\s:\[\]]+|\[[0-9A-Fa-f:.]+\]):(\d+)")


class Address(NamedTuple):
    """An address; `path` is "" for one with host and port."""

    path: str
    host: str
    port: int

    def __str__(self) -> str:
        return self.path or host_and_port(self.host, self.port)

    def connect(self, limit: float) -> socket.socket:
        """Return a connection; each of its operations may last `limit` seconds. Raises OSError."""
        if not self.path:
            return socket.create_connection((self.host, self.port), limit)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.settimeout(limit)
            made.connect(self.path)
        except BaseException:
            made.close()
            raise
        return made


def host_and_port(host: str, port: object) -> str:
    """Return both as one text."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def address(value: object) -> Address:
    """Return the address of the path of a socket, or of HOST:PORT. Raises ValueError."""
    given = arguments.text(value)
    if given.startswith("/"):
        return Address(given, "", 0)
    match = _HOST_AND_PORT.fullmatch(given)
    if match is None:
        raise ValueError(f"expected the path of a socket, or HOST:PORT, not {value!r}")
    return Address("", match[1].strip("[]"), arguments.port(match[2]))
