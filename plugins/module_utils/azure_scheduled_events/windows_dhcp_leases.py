# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Reads option 245 in the registry, where Windows notes the DHCP options of each interface."""

from __future__ import annotations

import sys
import time
from typing import Iterator

from .dhcp_options import distinct_addresses

INTERFACES = r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces"
OPTIONS = "DhcpInterfaceOptions"

# an interface has one key; the limit bounds the search in a damaged registry
_MAX_INTERFACES = 1000


def lease_addresses() -> list[str]:
    """Return the distinct addresses of option 245 of all interfaces, the lease that expires last first."""
    return distinct_addresses(_values(), time.time())


def _values() -> Iterator[bytes]:
    """Yield the DHCP options of each interface; an interface without options or permission to read them has none."""
    if sys.platform != "win32":
        return
    import winreg  # Windows only

    try:
        interfaces = winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, INTERFACES)
    except OSError:
        return
    with interfaces:
        for number in range(min(winreg.QueryInfoKey(interfaces)[0], _MAX_INTERFACES)):
            try:
                with winreg.OpenKey(interfaces, winreg.EnumKey(interfaces, number)) as interface:
                    value, _type = winreg.QueryValueEx(interface, OPTIONS)
            except OSError:
                continue
            if isinstance(value, bytes):
                yield value
