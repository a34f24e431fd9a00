# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Subscriptions, resource groups and resource ids of VMs and events (docs/reference/scheduled-events.md 5.11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..instance_metadata.defaults import Identity, identity_of
from ..scenario.groups import Group, Vm


class ResourceIds:
    """The resource ids of ``groups``. Ids are equal in any letter case."""

    def __init__(self, groups: Mapping[str, Group]) -> None:
        self._identities = {vm.name: identity_of(group, vm) for group in groups.values() for vm in group.vms}
        # VM name -> id of the resource to which its events belong
        self._owners: dict[str, str] = {}
        # id of a resource in lower case -> its VMs
        self._vms: dict[str, list[Vm]] = {}
        for group in groups.values():
            for vm in group.vms:
                provider = self._identities[vm.name].compute_provider
                ids = [f"{provider}virtualMachines/{vm.resource_name}"]
                if group.kind == "scale_set":
                    ids.append(f"{provider}virtualMachineScaleSets/{group.name}")
                self._owners[vm.name] = ids[-1]
                for each in ids:
                    self._vms.setdefault(each.lower(), []).append(vm)

    def identity(self, vm: str) -> Identity:
        """Return the identity of the VM with the name ``vm``."""
        return self._identities[vm]

    def has_resource_group(self, subscription: str, name: str) -> bool:
        """Return True if a VM is in that resource group."""
        beginning = f"/subscriptions/{subscription}/resourceGroups/{name}/".lower()
        return any(each.startswith(beginning) for each in self._vms)

    def vms_of(self, resource_id: str) -> Sequence[Vm]:
        """Return the VMs of a resource; empty if it does not exist."""
        return self._vms.get(resource_id.lower(), ())

    def event_id(self, vm: str, event_id: str) -> str:
        """Return the resource id of an event, which belongs to the scale set of its first VM, else to that ``vm``."""
        return f"{self._owners[vm]}/providers/microsoft.maintenance/scheduledevents/{event_id.lower()}"
