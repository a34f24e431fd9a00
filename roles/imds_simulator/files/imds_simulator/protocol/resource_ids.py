# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Subscriptions, resource groups and resource ids of VMs and events (docs/reference/scheduled-events.md 5.11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..instance_metadata.defaults import Identity, identity_of
from ..scenario.groups import Group, Vm

VIRTUAL_MACHINES = "virtualMachines"
SCALE_SETS = "virtualMachineScaleSets"


class ResourceIds:
    """The resource ids of ``groups``. Ids are equal in any letter case."""

    def __init__(self, groups: Mapping[str, Group]) -> None:
        self._identities = {vm.name: identity_of(group, vm) for group in groups.values() for vm in group.vms}
        # VM name -> type and name of the resource to which its events belong
        self._owners: dict[str, tuple[str, str]] = {}
        # (subscription, resource group, type, name), all in lower case -> the VMs of that resource
        self._vms: dict[tuple[str, ...], list[Vm]] = {}
        for group in groups.values():
            for vm in group.vms:
                identity = self._identities[vm.name]
                names = [(VIRTUAL_MACHINES, vm.resource_name)]
                if group.kind == "scale_set":
                    names.append((SCALE_SETS, group.name))
                self._owners[vm.name] = names[-1]
                for kind, name in names:
                    key = _folded(identity.subscription, identity.resource_group, kind, name)
                    self._vms.setdefault(key, []).append(vm)

    def identity(self, vm: str) -> Identity:
        """Return the identity of the VM with the name ``vm``."""
        return self._identities[vm]

    def has_resource_group(self, subscription: str, name: str) -> bool:
        """Return True if a VM is in that resource group."""
        return any(key[:2] == _folded(subscription, name) for key in self._vms)

    def vms_of(self, subscription: str, resource_group: str, kind: str, name: str) -> Sequence[Vm]:
        """Return the VMs of a resource; empty if it does not exist. ``kind`` is its type below Microsoft.Compute."""
        return self._vms.get(_folded(subscription, resource_group, kind, name), ())

    def event_id(self, vm: str, event_id: str) -> str:
        """Return the resource id of an event, which belongs to the scale set of its first VM, else to that ``vm``."""
        kind, name = self._owners[vm]
        provider = self.identity(vm).compute_provider
        return f"{provider}{kind}/{name}/providers/microsoft.maintenance/scheduledevents/{event_id.lower()}"


def _folded(*parts: str) -> tuple[str, ...]:
    return tuple(each.lower() for each in parts)
