# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Subscriptions, resource groups and resource ids of VMs and events (docs/reference/scheduled-events.md 5.11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..instance_metadata.identity import Identity, identity_of
from ..scenario.groups import Group, Vm

VIRTUAL_MACHINES = "virtualMachines"
SCALE_SETS = "virtualMachineScaleSets"


class ResourceIds:
    """The resource ids of ``groups``. Ids are equal in any letter case."""

    def __init__(self, groups: Mapping[str, Group]) -> None:
        self._groups = groups
        self._identities = {vm.name: identity_of(group, vm) for group in groups.values() for vm in group.vms}
        # (subscription, resource group, type, name), all in lower case -> the VMs of that resource
        self._vms: dict[tuple[str, ...], list[Vm]] = {}
        for group in groups.values():
            for vm in group.vms:
                identity = self._identities[vm.name]
                names = [(VIRTUAL_MACHINES, vm.resource_name)]
                if group.kind == "scale_set":
                    names.append((SCALE_SETS, group.name))
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

    def event_id(self, group: str, vms: Sequence[str], event_id: str) -> str:
        """Return the resource id of an event.

        The event belongs to the scale set, else to the first VM of its Resources. ``group`` is the name of the group in
        the scenario; ``vms`` are the names of the affected VMs.
        """
        first = next(each for each in self._groups[group].vms if each.name == vms[0])
        if self._groups[group].kind == "scale_set":
            resource = f"{SCALE_SETS}/{group}"
        else:
            resource = f"{VIRTUAL_MACHINES}/{first.resource_name}"
        provider = self.identity(first.name).compute_provider
        return f"{provider}{resource}/providers/microsoft.maintenance/scheduledevents/{event_id.lower()}"


def _folded(*parts: str) -> tuple[str, ...]:
    return tuple(each.lower() for each in parts)
