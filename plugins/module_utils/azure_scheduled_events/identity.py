# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""This VM's resource name, and the events that affect it (docs/reference/scheduled-events.md 3.2).

The name is ``compute.name`` of the instance metadata. It is never derived from the host name, which
differs for every scale set and most Windows VMs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Mapping

from .document import ScheduledEvent
from .errors import OwnNameUnknown
from .printable import escape_surrogates


def resource_name_of(instance: Mapping[str, Any]) -> str | None:
    """Return ``compute.name`` of an instance document, or None where it is missing (reference 3.3)."""
    return _compute_text(instance, "name") or None


def vm_id_of(instance: Mapping[str, Any]) -> str:
    """Return ``compute.vmId`` of an instance document, which is unique; "" where it is missing."""
    return _compute_text(instance, "vmId")


def fault_domain_of(instance: Mapping[str, Any]) -> str:
    """Return the fault domain of an instance document, after its zone if it has one; "" where it is missing.

    The numbers of fault domains begin at 0 in each zone, therefore ``1/0`` and ``2/0`` are two fault domains.
    """
    domain, zone = _compute_text(instance, "platformFaultDomain"), _compute_text(instance, "zone")
    return f"{zone}/{domain}" if domain and zone else domain


def _compute_text(instance: Mapping[str, Any], member: str) -> str:
    compute = instance.get("compute")
    value = compute.get(member) if isinstance(compute, Mapping) else None
    return escape_surrogates(value) if isinstance(value, str) else ""


def own_name_in(resource: str) -> str:
    """Return a VM's own name for its entry of ``Resources``.

    Api-version 2017-03-01 puts an underscore before names of VMs, and no VM's own name can begin with one.
    """
    return resource[1:] if resource.startswith("_") else resource


# coordinators compare the names of 1,000 VMs again and again
@lru_cache(maxsize=20000)
def vm_key(name: str) -> str:
    """Return what is the same for all spellings of a VM's name, in Resources and elsewhere."""
    return own_name_in(name).casefold()


def is_same_vm(resource: str, name: str) -> bool:
    """Return True if an entry of ``Resources`` is the VM of that name, in any letter case; no VM has an empty one."""
    return bool(name) and vm_key(resource) == vm_key(name)


def affects(event: ScheduledEvent, name: str | None) -> bool:
    """Return True if the event affects the VM of that name; raise OwnNameUnknown if it is None or empty."""
    if not name:
        raise OwnNameUnknown()
    return any(is_same_vm(resource, name) for resource in event.resources)
