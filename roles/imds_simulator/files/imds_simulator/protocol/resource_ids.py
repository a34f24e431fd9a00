# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Subscriptions, resource groups and resource ids of VMs and events (docs/reference/scheduled-events.md 5.11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from ..instance_metadata.identity import identity_of
from ..scenario.groups import Group, Vm

VIRTUAL_MACHINES = "virtualMachines"
SCALE_SETS = "virtualMachineScaleSets"


class ResourceGroup(NamedTuple):
    """A subscription and a resource group, as instance metadata names them."""

    subscription: str
    name: str

    @property
    def id(self) -> str:
        """The resource id of the resource group."""
        return f"/subscriptions/{self.subscription}/resourceGroups/{self.name}"

    def folded(self) -> ResourceGroup:
        """Return the resource group in lower case: resource ids are equal in any letter case."""
        return ResourceGroup(self.subscription.lower(), self.name.lower())


class Location(NamedTuple):
    """The place of a VM: its resource group and its region."""

    group: ResourceGroup
    region: str


class ResourceIds:
    """The resource ids of ``groups``."""

    def __init__(self, groups: Mapping[str, Group]) -> None:
        self._groups = groups

    @cached_property
    def _locations(self) -> Mapping[str, Location]:
        """VM name -> its location, for all VMs."""
        found = {}
        for group in self._groups.values():
            for vm in group.vms:
                identity = identity_of(group, vm)
                resource_group = ResourceGroup(identity.subscription, identity.resource_group)
                found[vm.name] = Location(resource_group, identity.location)
        return found

    @cached_property
    def _resources(self) -> Mapping[tuple[ResourceGroup, str, str], tuple[Vm, ...]]:
        """(resource group, type, name), all in lower case -> the VMs of that resource."""
        found: dict[tuple[ResourceGroup, str, str], tuple[Vm, ...]] = {}
        for group in self._groups.values():
            for vm in group.vms:
                names = [(VIRTUAL_MACHINES, vm.resource_name)]
                if group.kind == "scale_set":
                    names.append((SCALE_SETS, group.name))
                for kind, name in names:
                    key = (self.location(vm.name).group.folded(), kind.lower(), name.lower())
                    found[key] = (*found.get(key, ()), vm)
        return found

    @cached_property
    def resource_groups(self) -> frozenset[ResourceGroup]:
        """All resource groups that have a VM, in lower case."""
        return frozenset(each.group.folded() for each in self._locations.values())

    def location(self, vm: str) -> Location:
        """Return the location of the VM with the name ``vm``."""
        return self._locations[vm]

    def vms_of(self, group: ResourceGroup, kind: str, name: str) -> tuple[Vm, ...]:
        """Return the VMs of a resource; empty if it does not exist. ``kind`` is its type below Microsoft.Compute."""
        return self._resources.get((group.folded(), kind.lower(), name.lower()), ())

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
        return (
            f"{self.location(first.name).group.id}/providers/Microsoft.Compute/{resource}"
            f"/providers/microsoft.maintenance/scheduledevents/{event_id.lower()}"
        )
