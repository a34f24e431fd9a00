# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The network link of a VM, which can drop all packets, or those of ssh, without closing connections."""

from __future__ import annotations

import json
import subprocess

from support.hosts.bridge import BRIDGE, BRIDGE_MAC, GATEWAY, ip

TABLE = "77"
BLACK_HOLE = "black-hole"


class NetworkLink:
    """The link of one VM; ``name`` is that of the VM's network namespace, ``number`` that of its cable."""

    def __init__(self, name: str, number: int, address: str) -> None:
        self._name, self._cable, self._address = name, f"host{number}", address
        # the kernel fails connections after three seconds if it does not know the neighbour
        own = _hardware_address(name)
        ip("neighbour", "replace", address, "lladdr", own, "dev", BRIDGE, "nud", "permanent")
        ip("-n", name, "neighbour", "replace", GATEWAY, "lladdr", BRIDGE_MAC, "dev", "eth0", "nud", "permanent")
        create_black_hole("-n", name)
        self._is_cut = self._is_cut_for_ssh = False

    def cut(self) -> None:
        """Drop all packets from now on."""
        if not self._is_cut:
            ip("link", "set", self._cable, "nomaster")
            self._is_cut = True

    def cut_ssh(self) -> None:
        """Drop packets of ssh from now on; IMDS still answers the VM."""
        if not self._is_cut_for_ssh:
            self._rule("add")
            self._is_cut_for_ssh = True

    def mend(self) -> None:
        if self._is_cut:
            ip("link", "set", self._cable, "master", BRIDGE)
        if self._is_cut_for_ssh:
            self._rule("delete")
        self._is_cut = self._is_cut_for_ssh = False

    def _rule(self, verb: str) -> None:
        ip("rule", verb, "to", self._address, "ipproto", "tcp", "dport", "22", "table", TABLE)
        ip("-n", self._name, "rule", verb, "ipproto", "tcp", "sport", "22", "table", TABLE)


def create_black_hole(*where: str) -> None:
    """Create a route whose packets never arrive; ``where`` are words that select a namespace."""
    ip(*where, "link", "add", BLACK_HOLE, "type", "veth", "peer", "name", BLACK_HOLE + "-end")
    ip(*where, "link", "set", BLACK_HOLE, "arp", "off", "up")
    ip(*where, "link", "set", BLACK_HOLE + "-end", "up")
    ip(*where, "route", "add", "default", "dev", BLACK_HOLE, "table", TABLE)


def _hardware_address(name: str) -> str:
    shown = subprocess.run(
        ["ip", "-n", name, "-json", "link", "show", "eth0"], check=True, capture_output=True, text=True, timeout=30
    ).stdout
    return str(json.loads(shown)[0]["address"])
