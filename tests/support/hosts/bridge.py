# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The network between the hosts: a bridge with the address 169.254.169.254, like the fabric of Azure.

The bridge is in the network namespace of the process that creates it (namespaces.py creates a
separate one for the tests). A simulator or an ansible-playbook of that process is therefore on the
bridge, and reaches the hosts by their addresses.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

IMDS = "169.254.169.254"
BRIDGE, BRIDGE_MAC = "fabric", "02:00:0a:4d:00:01"
GATEWAY = "10.77.0.1"
NAMESPACES = Path("/run/netns")


class Bridge:
    """The bridge, and a network namespace for each host."""

    def __init__(self) -> None:
        ip("link", "set", "lo", "up")
        ip("link", "add", BRIDGE, "type", "bridge")
        # otherwise it takes the lowest address of its ports, and each new host may change it: the others
        # then send to the old one for some seconds
        ip("link", "set", BRIDGE, "address", BRIDGE_MAC, "up")
        ip("address", "add", GATEWAY + "/24", "dev", BRIDGE)
        ip("address", "add", IMDS + "/32", "dev", BRIDGE)

    def attach(self, name: str, number: int) -> str:
        """Create the namespace of a host, connect it to the bridge, and return the address of the host."""
        address, cable = f"10.77.0.{10 + number}", f"host{number}"
        ip("netns", "add", name)
        ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", cable, "master", BRIDGE, "up")
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "link", "set", "eth0", "up")
        ip("-n", name, "address", "add", address + "/24", "dev", "eth0")
        ip("-n", name, "route", "add", "default", "via", GATEWAY)
        ip("-n", name, "route", "add", IMDS + "/32", "via", GATEWAY)  # as Azure's DHCP hands out
        return address

    def detach(self, name: str) -> None:
        ip("netns", "delete", name)

    def remove(self) -> None:
        ip("link", "delete", BRIDGE)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=30)
