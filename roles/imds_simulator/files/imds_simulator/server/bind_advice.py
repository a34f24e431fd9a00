# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Advice for a simulator that cannot listen on an address."""

from __future__ import annotations

import errno

from ..scenario.groups import Address


def bind_advice(address: Address, code: int | None) -> str:
    """Return what the operator can do about the error ``code``, an ``errno``; empty if it is another error."""
    if code == errno.EADDRNOTAVAIL:
        prefix = 128 if ":" in address.host else 32
        return f"; add the address: ip address add {address.host}/{prefix} dev lo"
    if code in (errno.EACCES, errno.EPERM) and address.port < 1024:
        return (
            f"; port {address.port} needs root, the capability CAP_NET_BIND_SERVICE, or: "
            f"sysctl net.ipv4.ip_unprivileged_port_start={address.port}; to give one command the address "
            "169.254.169.254 without root, use exec --imds-address"
        )
    if code == errno.EADDRINUSE:
        return (
            f"; find the program that uses port {address.port}: ss -ltnp 'sport = :{address.port}'; or choose another "
            "port, 0 for any free one"
        )
    return ""
