# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The values of ``network`` that VMs have by default (docs/reference/scheduled-events.md 3.3)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..scenario.groups import Group


def network_defaults(groups: Iterable[Group]) -> Mapping[str, Any]:
    """Return VM name -> its values of ``network``, one interface, for all VMs.

    The address of a VM is the source address that identifies it, else the next free one of 10.0.0.0/8.
    """
    vms = [vm for group in groups for vm in group.vms]
    free = _free_addresses({vm.source for vm in vms if vm.source})
    found = {}
    for number, vm in enumerate(vms):
        source = vm.source or ""
        is_ipv6 = ":" in source
        ipv4 = next(free) if is_ipv6 or not source else source
        interface = {
            "ipv4": {
                "ipAddress": [{"privateIpAddress": ipv4}],
                "subnet": [{"address": ipv4.rpartition(".")[0] + ".0", "prefix": "24"}],
            },
            "ipv6": {"ipAddress": [{"privateIpAddress": source}] if is_ipv6 else []},
            "macAddress": f"000D3A{number:06X}",
        }
        found[vm.name] = {"interface": [interface]}
    return found


def _free_addresses(taken: set[str]) -> Iterator[str]:
    for address in ipaddress.ip_network("10.0.0.0/8").hosts():
        # Azure keeps the first four addresses of a subnet, and the last one is for broadcasts
        if 4 <= address.packed[-1] < 254 and str(address) not in taken:
            yield str(address)
