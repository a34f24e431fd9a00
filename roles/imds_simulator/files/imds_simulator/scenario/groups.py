# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""VMs, and groups of VMs that share a document (docs/reference/scheduled-events.md 3.1)."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

KINDS = ("standalone", "availability_set", "scale_set", "cloud_service")


class Address(NamedTuple):
    """A host and a TCP port; port 0 means any free port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{(f'[{self.host}]' if ':' in self.host else self.host)}:{self.port}"


def parse_address(text: str) -> Address:
    """Parse ``HOST:PORT`` (``[::1]:80`` for IPv6); raise ValueError for any other text."""
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is not HOST:PORT")
    return Address(host, int(port))


def source_address(text: str) -> str:
    """Return an IP address in canonical form, an IPv4-mapped one as IPv4; raise ValueError for any other text."""
    address = ipaddress.ip_address(text)
    return str(getattr(address, "ipv4_mapped", None) or address)


def placement_group_name(text: str) -> str:
    """Return the name of a placement group: a GUID in canonical form, any other text unchanged."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return text


@dataclass(frozen=True)
class Vm:
    """One virtual machine.

    ``resource_name`` is its ``compute.name`` and its entry in Resources. See reference 3.2.1.
    """

    name: str
    group: str
    resource_name: str
    listen: Address | None = None
    source: str | None = None
    zone: str = ""
    fault_domain: int = 0
    update_domain: int = 0
    placement_group: str = ""
    instance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """A deployment whose members see one document: the scope of reference 3.1.1."""

    name: str
    kind: str
    vms: tuple[Vm, ...]
    orchestration: str = "uniform"
    gpu_single_fault_domain: bool = False
    incarnation: int | None = None
    instance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def own_events_only(self) -> bool:
        """True if each VM is a scope of its own (reference 3.1.1, 3.1.3)."""
        return self.kind == "standalone" or self.gpu_single_fault_domain

    @cached_property
    def has_placement_groups(self) -> bool:
        """True if the scenario gives placement groups to the VMs."""
        return any(vm.placement_group for vm in self.vms)

    @property
    def is_classic(self) -> bool:
        """True if the VMs belong to the classic deployment model."""
        return self.kind == "cloud_service"


def scope_key(group: Group, vm: Vm, *, zone_split: bool, placement_group_split: bool) -> str:
    """Return the key of the scope of ``vm``; VMs with equal keys share a document.

    ``zone_split``: zones have separate documents (reference 3.1.4). ``placement_group_split``: placement groups have
    separate documents (reference 3.1.1, 3.1.8).
    """
    if group.own_events_only:
        return f"{group.name}/{vm.name}"
    key = group.name
    if placement_group_split and vm.placement_group:
        key += f"/placement group {vm.placement_group}"
    if zone_split and vm.zone:
        key += f"/zone {vm.zone}"
    return key
