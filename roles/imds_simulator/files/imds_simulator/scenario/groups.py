# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""VMs, and groups of VMs that share a document (docs/reference/scheduled-events.md 3.1)."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from ..keys import Found, Path, Problems, Type, from_path, key, mapping_of, scalar
from ..value_types import BOOLEAN, JSON_OBJECT, NAME, NAMES, integer, one_of, text

# a server at one of these has the port at all addresses
_ANY_HOST = ("0.0.0.0", "::")
_Owner = TypeVar("_Owner")
KINDS = ("standalone", "availability_set", "scale_set", "cloud_service")


class Address(NamedTuple):
    """A host and a TCP port; port 0 means any free port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{(f'[{self.host}]' if ':' in self.host else self.host)}:{self.port}"

    @property
    def ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        """The host as an IP address; None for a name other than localhost, which is not looked up."""
        try:
            return ipaddress.ip_address(source_address("127.0.0.1" if self.host == "localhost" else self.host))
        except ValueError:
            return None


def parse_address(text: str) -> Address:
    """Parse ``HOST:PORT`` (``[::1]:80`` for IPv6); raise ValueError for any other text."""
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    is_port = port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65536
    if not colon or not host or "/" in host or not is_port:
        raise ValueError(f"{text!r} is not HOST:PORT")
    return Address(host, int(port))


def colliding(used: Iterable[tuple[Address, _Owner]]) -> Iterator[tuple[_Owner, _Owner]]:
    """Yield the owners of two addresses of ``used`` at which no two servers can listen, the later owner first."""
    by_port: dict[int, dict[str, _Owner]] = {}
    for address, owner in used:
        if not address.port:
            continue
        host = str(address.ip or address.host)
        taken = by_port.setdefault(address.port, {})
        for same in taken if host in _ANY_HOST else (host, *_ANY_HOST):
            if same in taken:
                yield owner, taken[same]
                break
        taken.setdefault(host, owner)


def source_address(text: str) -> str:
    """Return an IP address in canonical form, an IPv4-mapped one as IPv4; raise ValueError for any other text."""
    address = ipaddress.ip_address(text)
    return str(getattr(address, "ipv4_mapped", None) or address)


def stem_of(name: str) -> str | None:
    """Return STEM of a name STEM_NUMBER, which an instance of a uniform scale set has; None for any other name."""
    stem, _mark, number = name.rpartition("_")
    return stem if number.isdigit() else None


def _placement_group(name: str) -> str:
    """Return a GUID in canonical form, any other text unchanged."""
    try:
        return str(uuid.UUID(name))
    except ValueError:
        return name


def _zone(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise ValueError
    return str(value)


def _read_instance(value: Any, path: Path, problems: Problems) -> Any:
    compute = value.get("compute") if isinstance(value, Mapping) else None
    if compute is not None and not isinstance(compute, Mapping):
        problems.add((*path, "compute"), f"{compute!r} is not a mapping or nothing")
        return None
    return JSON_OBJECT.read(value, path, problems)


_ADDRESS = text("an address HOST:PORT", r".+:\d+", parse_address, "HOST:PORT")
_SOURCE = text("an IP address", parse=source_address, metavar="ADDRESS", least=2)
_PLACEMENT_GROUP = text("text of at least one character", parse=_placement_group, least=1)
_ZONE = scalar("text or a whole number", _zone, {"type": ["string", "integer"]})
_INSTANCE = Type(_read_instance, {"type": "object", "properties": {"compute": {"type": ["object", "null"]}}})


@dataclass(frozen=True)
class Vm:
    """One virtual machine.

    ``resource_name`` is its ``compute.name`` and its entry in Resources. See reference 3.2.1.
    """

    name: str = from_path(lambda path: path[-1], "")
    group: str = from_path(lambda path: path[-3], "")
    listen: Address | None = key(_ADDRESS, "an address HOST:PORT of its own", default=None)
    source: str | None = key(_SOURCE, "the source address of its requests", default=None)
    resource_name: str = key(
        NAME, "its name in Resources and compute.name; default: the VM name", default="", at=lambda path: path[-1]
    )
    zone: str = key(_ZONE, "the availability zone", default="")
    fault_domain: int = key(integer(0), "the fault domain", default=0)
    update_domain: int = key(integer(0), "the update domain", default=0)
    placement_group: str = key(
        _PLACEMENT_GROUP, "of an instance of a uniform scale set: its placement group", default=""
    )
    instance: Mapping[str, Any] = key(_INSTANCE, "merged into its instance metadata", default=MappingProxyType({}))

    def check(self) -> Found:
        """Yield the problems of its addresses."""
        if self.listen is not None and self.source is not None:
            yield ("source",), "give either listen or source, not both"


@dataclass(frozen=True)
class Group:
    """A deployment whose members see one document: the scope of reference 3.1.1."""

    name: str = from_path(lambda path: path[-1], "")
    given_kind: str | None = key(
        one_of(*KINDS), "default: standalone for one VM, else availability_set", default=None, name="kind"
    )
    vms: tuple[Vm, ...] = key(mapping_of(Vm, NAMES), "the VMs by name, or their names", default=(), required=True)
    orchestration: str | None = key(
        one_of("uniform", "flexible"), "of a scale set: uniform (default) or flexible", default=None
    )
    gpu_single_fault_domain: bool = key(
        BOOLEAN, "of a scale set: each VM sees only its own events (reference 3.1.3)", default=False
    )
    incarnation: int = key(integer(0), "the first DocumentIncarnation", default=1)
    instance: Mapping[str, Any] = key(
        _INSTANCE, "merged into the instance metadata of every VM", default=MappingProxyType({})
    )

    @property
    def kind(self) -> str:
        """The given kind, or that of the number of VMs."""
        return self.given_kind or ("standalone" if len(self.vms) == 1 else "availability_set")

    @property
    def is_uniform(self) -> bool:
        """True for a scale set with uniform orchestration."""
        return self.kind == "scale_set" and self.orchestration != "flexible"

    @property
    def own_events_only(self) -> bool:
        """True if each VM is a scope of its own (reference 3.1.1, 3.1.3)."""
        return self.kind == "standalone" or self.gpu_single_fault_domain

    @property
    def is_classic(self) -> bool:
        """True if the VMs belong to the classic deployment model."""
        return self.kind == "cloud_service"

    def check(self) -> Found:
        """Yield the problems of keys and names that depend on the kind."""
        for name in ("orchestration", "gpu_single_fault_domain"):
            if getattr(self, name) and self.kind != "scale_set":
                yield (name,), f"only a scale_set has {name}"
        named: dict[str, str] = {}
        for vm in self.vms:
            other = named.setdefault(vm.resource_name.lower(), vm.name)
            if other != vm.name:
                case = "names are compared in any letter case (reference 3.2.4)"
                yield ("vms", vm.name), f"{other} has the name {vm.resource_name} already; {case}"
            if self.is_uniform and stem_of(vm.resource_name) != self.name:
                text = f"the name of an instance of a uniform scale set is {self.name}_NUMBER (reference 3.2)"
                yield ("vms", vm.name), text
            if not self.is_uniform and vm.placement_group:
                text = "only an instance of a uniform scale_set has a placement_group"
                yield ("vms", vm.name, "placement_group"), text
