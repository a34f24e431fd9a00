# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The network interfaces that VMs have by default (docs/reference/scheduled-events.md 3.3)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..scenario.groups import Group


class Interface(NamedTuple):
    """The addresses of a network interface; ``ipv6`` is empty for a VM without such an address."""

    ipv4: str
    ipv6: str
    mac: str


def interfaces(groups: Iterable[Group]) -> Mapping[str, Interface]:
    """Return VM name -> its interface, for all VMs.

    The address of a VM is the source address that identifies it, else the next free one of 10.0.0.0/8.
    """
    vms = [vm for group in groups for vm in group.vms]
    free = _free_addresses({vm.source for vm in vms if vm.source})
    found = {}
    for number, vm in enumerate(vms):
        source = vm.source or ""
        is_ipv6 = ":" in source
        ipv4 = next(free) if is_ipv6 or not source else source
        found[vm.name] = Interface(ipv4, source if is_ipv6 else "", f"000D3A{number:06X}")
    return found


def network_defaults(interface: Interface) -> dict[str, Any]:
    """Return the values of ``network``."""
    return {
        "interface": [
            {
                "ipv4": {
                    "ipAddress": [{"privateIpAddress": interface.ipv4}],
                    "subnet": [{"address": interface.ipv4.rpartition(".")[0] + ".0", "prefix": "24"}],
                },
                "ipv6": {"ipAddress": [{"privateIpAddress": interface.ipv6}] if interface.ipv6 else []},
                "macAddress": interface.mac,
            }
        ]
    }


def _free_addresses(taken: set[str]) -> Iterator[str]:
    for address in ipaddress.ip_network("10.0.0.0/8").hosts():
        # Azure keeps the first four addresses of a subnet, and the last one is for broadcasts
        if 4 <= address.packed[-1] < 254 and str(address) not in taken:
            yield str(address)
