# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Option 245 in the registry value in which Windows notes the DHCP options of an interface."""

from __future__ import annotations

import random
import struct
import sys
import time
import uuid

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    windows_dhcp_leases,
)

NOW = 1_795_000_000.0
LATER = 1_795_003_600
ADDRESS = bytes([168, 63, 129, 16])
FOUND = "168.63.129.16"

# as Windows 7 and later write it: domain name servers, server identifier, message type (1 byte and 3 of padding), an
# option without data that was requested, and a domain name of 11 bytes
OTHERS = bytes.fromhex(
    "060000000000000004000000000000003317b6570a000001"
    "360000000000000004000000000000003317b6570a000001"
    "350000000000000001000000000000003317b65705000000"
    "01000000000000000000000000000000016f98b5"
    "0f000000000000000b000000000000003317b657786d706c65772d746573740a"
)


def record(data=ADDRESS, code=245, vendor=0, expires=LATER, length=None):
    header = struct.pack("<5I", code, 0, len(data) if length is None else length, vendor, expires)
    return header + data + b"\0" * (-len(data) % 4)


def addresses(value, now=NOW):
    return windows_dhcp_leases.distinct_addresses([value], now)


def test_address_among_other_options_is_found():
    assert addresses(OTHERS + record() + OTHERS) == [FOUND]
    assert addresses(OTHERS, 0.0) == []


def test_padding_of_data_of_each_length_is_skipped():
    for size in range(10):
        assert addresses(record(b"x" * size, code=15) + record()) == [FOUND], size


@pytest.mark.parametrize("size", [0, 3, 5, 8])
def test_option_that_does_not_have_the_size_of_an_address_is_left_out(size):
    assert addresses(record(b"\xa8" * size) + record()) == [FOUND]


def test_value_that_was_cut_short_keeps_its_complete_records():
    value = record() + record(bytes([168, 63, 129, 17]))
    for size in range(len(value)):
        assert addresses(value[:size]) == [FOUND] * (size >= len(record())), size


@pytest.mark.parametrize("length", [5, 8, 2**16, 2**31, 2**32 - 1])
def test_length_beyond_the_end_of_the_value_ends_the_reading(length):
    assert addresses(record() + record(length=length)) == [FOUND]
    assert addresses(record(length=length)) == []


@pytest.mark.parametrize(
    "now, valid", [(LATER - 1.0, True), (LATER, False), (LATER + 1.0, False), (-1.0, True), (2.0**40, False)]
)
def test_lease_counts_until_it_expires_by_the_present_clock(now, valid):
    assert addresses(record(), now) == [FOUND] * valid


def test_lease_without_an_end_counts_and_one_that_was_never_given_does_not():
    endless = record(expires=2**32 - 1)
    never = record(bytes([168, 63, 129, 17]), expires=0)
    assert addresses(endless + never) == [FOUND]


def test_option_245_of_a_vendor_is_another_option():
    assert addresses(record(vendor=1)) == []


def test_any_bytes_are_read_without_an_error():
    source = random.Random(245)
    sound = OTHERS + record()
    for _attempt in range(2000):
        value = bytearray(sound)
        for _change in range(source.randint(1, 8)):
            value[source.randrange(len(value))] = source.randrange(256)
        for address in addresses(bytes(value[: source.randint(0, len(value))])):
            assert all(0 <= int(part) <= 255 for part in address.split("."))


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


@pytest.mark.skipif(sys.platform != "win32", reason="only Windows has a registry")
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
