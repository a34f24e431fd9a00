# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The wire between the controller and a VM: it can drop all packets, or those of ssh alone, without closing a connection."""

from __future__ import annotations

import json
import subprocess

from support.hosts.bridge import BRIDGE, GATEWAY, ip

TABLE = "77"
VOID = "void"


def lay_out() -> None:
    """Make ready the controller's end: its address on the bridge stays as it is whatever is connected there."""
    ip("link", "set", BRIDGE, "address", "02:00:00:00:00:01")
    _make_void()


class Wire:
    """The wire of one VM.

    Args:
        name: of the VM's network namespace.
        number: of its cable.
        address: of the VM.
    """

    def __init__(self, name: str, number: int, address: str) -> None:
        self._name, self._cable, self._address = name, f"host{number}", address
        # without known neighbours the kernel would report an error to connections after three
        # seconds
        ip(
            "neighbour",
            "replace",
            address,
            "lladdr",
            _hardware_address("eth0", "-n", name),
            "dev",
            BRIDGE,
            "nud",
            "permanent",
        )
        ip(
            "-n",
            name,
            "neighbour",
            "replace",
            GATEWAY,
            "lladdr",
            _hardware_address(BRIDGE),
            "dev",
            "eth0",
            "nud",
            "permanent",
        )
        _make_void("-n", name)
        self._is_cut = self._is_cut_for_ssh = False

    def cut(self) -> None:
        """All packets vanish from now on."""
        if not self._is_cut:
            ip("link", "set", self._cable, "nomaster")
            self._is_cut = True

    def cut_ssh(self) -> None:
        """Packets of ssh vanish from now on; IMDS still answers the VM."""
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


def _make_void(*where: str) -> None:
    """A way on which packets leave and never arrive."""
    ip(*where, "link", "add", VOID, "type", "veth", "peer", "name", VOID + "-end")
    ip(*where, "link", "set", VOID, "arp", "off", "up")
    ip(*where, "link", "set", VOID + "-end", "up")
    ip(*where, "route", "add", "default", "dev", VOID, "table", TABLE)


def _hardware_address(device: str, *where: str) -> str:
    shown = subprocess.run(
        ["ip", *where, "-json", "link", "show", device], check=True, capture_output=True, text=True, timeout=30
    ).stdout
    return str(json.loads(shown)[0]["address"])
