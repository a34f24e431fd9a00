# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The values of ``compute`` and ``network`` that a VM has by default (docs/reference/scheduled-events.md 3.2, 3.3)."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..scenario.groups import Group, Vm
from .values import text

# values of ``compute`` that other values contain
_DEFAULTS = {
    "subscriptionId": "00000000-0000-4000-8000-00005eed0001",
    "resourceGroupName": "rg-simulated",
    "location": "westeurope",
    "osType": "Linux",
}
_ADMIN = "azureuser"
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"


class Identity(NamedTuple):
    """The subscription, resource group, region and operating system of a VM."""

    subscription: str
    resource_group: str
    location: str
    os_type: str

    @property
    def compute_provider(self) -> str:
        """The resource id of Microsoft.Compute in the resource group, with a slash at its end."""
        return f"/subscriptions/{self.subscription}/resourceGroups/{self.resource_group}/providers/Microsoft.Compute/"

    @property
    def is_windows(self) -> bool:
        """True if the operating system of the VM is Windows."""
        return self.os_type.lower() == "windows"


def identity_of(group: Group, vm: Vm) -> Identity:
    """Return the identity of ``vm``: that of the scenario, else the default."""
    found = dict(_DEFAULTS)
    for overrides in (group.instance, vm.instance):
        compute = overrides.get("compute") or {}
        found.update({name: text(compute[name]) for name in _DEFAULTS if name in compute})
    return Identity(found["subscriptionId"], found["resourceGroupName"], found["location"], found["osType"])


def compute_defaults(group: Group, vm: Vm) -> dict[str, Any]:
    """Return the values of ``compute`` for ``vm``; members without a value are absent."""
    name, identity = vm.resource_name, identity_of(group, vm)
    in_scale_set = group.kind == "scale_set"
    uniform = group.is_uniform
    number = name.rpartition("_")[2]
    scale_set = identity.compute_provider + f"virtualMachineScaleSets/{group.name}"
    return {
        "additionalCapabilities": {"hibernationEnabled": False},
        "azEnvironment": "AzurePublicCloud",
        "isHostCompatibilityLayerVm": False,
        "location": identity.location,
        "name": name,
        "osProfile": {
            "adminUsername": _ADMIN,
            "computerName": _host_name(group, number) if uniform else name,
            # empty on Windows (reference 3.3.7)
            "disablePasswordAuthentication": "" if identity.is_windows else True,
        },
        "osType": identity.os_type,
        "physicalZone": f"{identity.location}-az{vm.zone}" if vm.zone else "",
        "placementGroupId": _placement_group_id(group.name, vm.placement_group) if uniform else "",
        "platformFaultDomain": vm.fault_domain,
        "platformUpdateDomain": vm.update_domain,
        "priority": "Regular",
        "provider": "Microsoft.Compute",
        "publicKeys": [] if identity.is_windows else [_public_key(group, vm)],
        "resourceGroupName": identity.resource_group,
        "resourceId": f"{scale_set}/virtualMachines/{number}"
        if uniform
        else identity.compute_provider + f"virtualMachines/{name}",
        "securityProfile": {"encryptionAtHost": False, "secureBootEnabled": False, "virtualTpmEnabled": False},
        "storageProfile": _storage_profile(name, identity),
        "subscriptionId": identity.subscription,
        "virtualMachineScaleSet": {"id": scale_set if in_scale_set and not uniform else ""},
        "vmId": _guid("vm", vm.name),
        "vmScaleSetName": group.name if in_scale_set else "",
        "vmSize": "Standard_D2s_v5",
        "zone": vm.zone,
    }


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


def _placement_group_id(scale_set: str, name: str) -> str:
    """Return the id of a placement group: its name if that is a GUID, else a GUID made of both names."""
    try:
        return str(uuid.UUID(name))
    except ValueError:
        return _guid("placement", f"{scale_set}/{name}" if name else scale_set)


def _storage_profile(vm: str, identity: Identity) -> dict[str, Any]:
    """Return the disks of the VM with the name ``vm``: one managed OS disk, and no disk for temporary data."""
    disk = f"{vm}_OsDisk_1"
    return {
        "dataDisks": [],
        "osDisk": {
            "caching": "ReadWrite",
            "createOption": "FromImage",
            "diskSizeGB": 30,
            "encryptionSettings": {"enabled": False},
            "managedDisk": {
                "id": identity.compute_provider + f"disks/{disk}",
                "storageAccountType": "Premium_LRS",
            },
            "name": disk,
            "osType": identity.os_type,
            "writeAcceleratorEnabled": False,
        },
        # in kilobytes; 0 for a size of VM without a local disk, as the default one is (reference 3.3.5)
        "resourceDisk": {"size": 0},
    }


def _host_name(group: Group, number: str) -> str:
    """Return the host name of a uniform instance: prefix and six base-36 digits (reference 3.2.1)."""
    # six digits of base 36 are enough for nine decimal ones
    value, digits = int(number[-9:]) if number.isdecimal() else 0, ""
    while value:
        value, rest = divmod(value, 36)
        digits = _BASE36[rest] + digits
    return group.name + digits.rjust(6, "0")


def _public_key(group: Group, vm: Vm) -> dict[str, str]:
    """Return an SSH key in the form of OpenSSH; its bytes are a hash, therefore no private key exists for it."""
    kind = b"ssh-ed25519"
    key = hashlib.sha256(f"imds-simulator/{group.name}/{vm.name}".encode()).digest()
    data = b"".join(len(part).to_bytes(4, "big") + part for part in (kind, key))
    return {
        "keyData": f"{kind.decode()} {base64.b64encode(data).decode()} {_ADMIN}@{vm.resource_name}",
        "path": f"/home/{_ADMIN}/.ssh/authorized_keys",
    }


def _guid(kind: str, name: str) -> str:
    """Return an id that is the same at every start."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"imds-simulator/{kind}/{name}"))


def _free_addresses(taken: set[str]) -> Iterator[str]:
    for address in ipaddress.ip_network("10.0.0.0/8").hosts():
        # Azure keeps the first four addresses of a subnet, and the last one is for broadcasts
        if 4 <= address.packed[-1] < 254 and str(address) not in taken:
            yield str(address)
