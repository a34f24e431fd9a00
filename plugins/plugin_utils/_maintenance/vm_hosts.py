# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which VMs an event affects by the answers of all hosts, and which hosts of a run are these VMs."""

from __future__ import annotations

import typing as t

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.identity import (
    is_same_vm,
)

# event_approve reads the prepared VMs as shell patterns; names in Azure have none of these characters
_WILDCARDS = frozenset("*?[")


def hosts_of_vm(resource: str, vms: t.Mapping[str, str]) -> list[str]:
    """Return the hosts that are this entry of Resources; more than one if a host claims the name of another VM.

    An entry with a wildcard is no VM. A compromised host of that name would release VMs that Azure adds to the event.
    ``vms`` has the name of the VM by host, "" if unknown.
    """
    if _WILDCARDS.intersection(resource):
        return []
    return [host for host, vm in vms.items() if is_same_vm(resource, vm)]


def all_resources(lists: t.Iterable[t.Iterable[str]]) -> list[str]:
    """Return each VM that one of the lists names; letter case does not count.

    The answers of IMDS may differ between the VMs of an event, and a compromised host may omit a VM.
    """
    found: dict[str, str] = {}
    for resources in lists:
        for vm in resources:
            found.setdefault(vm.casefold(), vm)
    return list(found.values())
