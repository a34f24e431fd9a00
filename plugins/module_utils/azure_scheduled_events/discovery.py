# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Finds IMDS: at its usual address, else at the address that DHCP option 245 gave to this VM.

Leases are read as the DHCP client noted them: nothing is broadcast, and no firewall is changed.
"""

from __future__ import annotations

import socket
import sys
from typing import Callable

from .endpoint import DEFAULT_ENDPOINT

if sys.platform == "win32":
    from .windows_dhcp_leases import lease_addresses
else:
    from .posix_dhcp_leases import lease_addresses

# a VM outside a virtual network listens on one of these
_PORTS = ("", ":8080")


def discover_endpoint(
    connect_timeout: float,
    leased: Callable[[], list[str]] = lease_addresses,
    answers: Callable[[str, float], bool] | None = None,
) -> str:
    """Return the base URL of the first candidate that accepts a TCP connection, else the usual one.

    Args:
        connect_timeout: seconds for the whole search.
        leased: returns the IPv4 addresses of option 245 in the present leases.
        answers: returns whether a base URL accepts connections, within so many seconds.
    """
    named = leased()
    if not named:
        return DEFAULT_ENDPOINT
    candidates = [DEFAULT_ENDPOINT] + [f"http://{address}{port}" for address in named for port in _PORTS]
    accepts = answers or _accepts
    share = connect_timeout / len(candidates)
    for candidate in candidates:
        if accepts(candidate, share):
            return candidate
    return DEFAULT_ENDPOINT


def _accepts(endpoint: str, timeout: float) -> bool:
    host, _colon, port = endpoint[len("http://") :].partition(":")
    try:
        socket.create_connection((host, int(port or 80)), timeout).close()
    except OSError:
        return False
    return True
