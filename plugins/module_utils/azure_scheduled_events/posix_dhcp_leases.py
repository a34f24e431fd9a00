# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Reads option 245 in the lease files of Linux's DHCP clients."""

from __future__ import annotations

import glob
import re
import socket
from datetime import datetime, timezone
from typing import Iterable

# dhclient (Debian and Ubuntu, RHEL), NetworkManager with dhclient and with its own client,
# systemd-networkd
LEASE_FILES = (
    "/var/lib/dhcp/dhclient*.lease*",
    "/var/lib/dhclient/dhclient*.lease*",
    "/var/lib/NetworkManager/dhclient-*.lease",
    "/var/lib/NetworkManager/internal-*.lease",
    "/run/systemd/netif/leases/*",
)

_LEASE_BLOCK = re.compile(r"lease\s*\{(.*?)\}", re.DOTALL)
_EXPIRY = re.compile(r"^\s*expire\s+(?:epoch\s+(\d+)|\d\s+(\d+)/(\d+)/(\d+)\s+(\d+):(\d+):(\d+))", re.MULTILINE)
_OPTION_245 = re.compile(r"unknown-245[ =]+([0-9a-fA-F]{1,2}(?::[0-9a-fA-F]{1,2}){3}|[0-9.]+)\s*;?")
_KEYED_245 = re.compile(r"^OPTION_245=(\S+)", re.MULTILINE)


def lease_addresses(patterns: Iterable[str] = LEASE_FILES, now: datetime | None = None) -> list[str]:
    """Return the distinct addresses of option 245 in the lease files, the newest lease of a file first."""
    moment = now or datetime.now(timezone.utc)
    found: dict[str, None] = {}
    for pattern in patterns:
        for path in sorted(glob.glob(pattern)):
            try:
                with open(path, encoding="utf-8", errors="replace") as file:
                    text = file.read(1 << 20)
            except OSError:
                continue
            for address in reversed(_addresses(text, moment)):
                found[address] = None
    return list(found)


def _addresses(text: str, now: datetime) -> list[str]:
    """Return the addresses in one lease file, in its order: blocks of dhclient, or KEY=VALUE lines of the others."""
    blocks = [block for block in _LEASE_BLOCK.findall(text) if not _expired(block, now)]
    values = [value for block in blocks for value in _OPTION_245.findall(block)] + _KEYED_245.findall(text)
    return [address for address in map(_address, values) if address]


def _expired(block: str, now: datetime) -> bool:
    match = _EXPIRY.search(block)
    if match is None:
        return False  # "expire never"
    try:
        if match.group(1):
            return datetime.fromtimestamp(int(match.group(1)), timezone.utc) <= now
        year, month, day, hour, minute, second = (int(part) for part in match.groups()[1:])
        return datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc) <= now
    except (ValueError, OverflowError, OSError):
        return True


def _address(value: str) -> str | None:
    """Return the IPv4 address in ``a8:3f:81:10``, ``a83f8110`` or ``168.63.129.16``, or None."""
    value = value.strip("\"'")
    try:
        if "." in value:
            packed = socket.inet_aton(value) if value.count(".") == 3 else b""
        elif ":" in value:
            packed = bytes(int(part, 16) for part in value.split(":"))
        else:
            packed = bytes.fromhex(value)
    except (OSError, ValueError):
        return None
    return socket.inet_ntoa(packed) if len(packed) == 4 else None
