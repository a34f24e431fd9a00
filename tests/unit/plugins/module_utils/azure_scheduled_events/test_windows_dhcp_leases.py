# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Option 245 in the registry of this Windows."""

from __future__ import annotations

import struct
import sys
import time
import uuid

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    windows_dhcp_leases,
)

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="only Windows has a registry")


@pytest.fixture
def interface():
    """Return a function that adds an interface with DHCP options to the registry, until the end of the test."""
    import winreg

    added = []

    def add(value=None):
        path = windows_dhcp_leases.INTERFACES + "\\{" + str(uuid.uuid4()) + "}"
        try:
            key = winreg.CreateKey(winreg.HKEY_LOCAL_MACHINE, path)
        except PermissionError:
            pytest.skip("only an administrator may write HKEY_LOCAL_MACHINE")
        added.append(path)
        with key:
            if value is not None:
                kind = winreg.REG_BINARY if isinstance(value, bytes) else winreg.REG_SZ
                winreg.SetValueEx(key, windows_dhcp_leases.OPTIONS, 0, kind, value)

    yield add
    for path in added:
        winreg.DeleteKey(winreg.HKEY_LOCAL_MACHINE, path)


def option(address, seconds):
    """Return the record of option 245 with a lease that lasts so many seconds from now."""
    return struct.pack("<5I", 245, 0, 4, 0, int(time.time()) + seconds) + bytes(map(int, address.split(".")))


def test_addresses_of_all_interfaces_are_found_the_newest_lease_first(interface):
    before = windows_dhcp_leases.lease_addresses()
    interface(option("192.0.2.1", 600))
    interface()
    interface(option("192.0.2.2", 1200) + option("192.0.2.1", 300))
    interface(option("192.0.2.3", -600))
    interface(option("192.0.2.4", 600)[:-1])
    interface("192.0.2.5")
    interface(b"")
    found = [address for address in windows_dhcp_leases.lease_addresses() if address not in before]
    assert found == ["192.0.2.2", "192.0.2.1"]
