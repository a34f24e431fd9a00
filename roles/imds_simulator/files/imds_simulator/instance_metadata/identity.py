# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Values of ``compute`` that other values contain (docs/reference/scheduled-events.md 3.3)."""

from __future__ import annotations

from typing import NamedTuple

from ..scenario.groups import Group, Vm
from .values import text

_DEFAULTS = {
    "subscriptionId": "00000000-0000-4000-8000-00005eed0001",
    "resourceGroupName": "rg-simulated",
    "location": "westeurope",
    "osType": "Linux",
}


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
