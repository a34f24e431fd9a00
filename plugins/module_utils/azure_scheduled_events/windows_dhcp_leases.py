# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Reads option 245 in the registry, where Windows notes in a value what DHCP gave to each interface.

The value is a sequence of records: five numbers of 32 bits, then the data, padded to a multiple of four
bytes. The numbers are the code of the option, flags, the length of the data, 1 for an option of a vendor,
and the time in Unix seconds when it expires. An option that the server did not give has a record of length 0.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from operator import itemgetter
from typing import Iterable, Iterator

INTERFACES = r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces"
OPTIONS = "DhcpInterfaceOptions"

# an interface has one key; the limit bounds the search in a damaged registry
_MAX_INTERFACES = 1000
_HEADER = struct.Struct("<5I")
_ENDPOINT_OF_AZURE = 245
_ADDRESS_SIZE = 4


def lease_addresses() -> list[str]:
    """Return the distinct addresses of option 245 of all interfaces, the lease that expires last first."""
    return distinct_addresses(_values(), time.time())


def distinct_addresses(values: Iterable[bytes], now: float) -> list[str]:
    """Return the distinct addresses of option 245 whose leases have not expired, the lease that expires last first.

    ``values`` are those of the interfaces; ``now`` is in Unix seconds. Records after a damaged one are not read, and
    data that do not have the size of an address are left out.
    """
    found = [
        (expires, data)
        for value in values
        for code, vendor, expires, data in _records(value)
        if code == _ENDPOINT_OF_AZURE and not vendor and expires > now and len(data) == _ADDRESS_SIZE
    ]
    found.sort(key=itemgetter(0), reverse=True)
    return list(dict.fromkeys(socket.inet_ntoa(data) for _expires, data in found))


def _records(value: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield code, vendor, expiry and data of each complete record."""
    start = 0
    while start + _HEADER.size <= len(value):
        code, _flags, length, vendor, expires = _HEADER.unpack_from(value, start)
        start += _HEADER.size
        if length > len(value) - start:
            return
        yield code, vendor, expires, value[start : start + length]
        start += length + -length % 4


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
