# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Which resource name is this VM, and which events concern it (docs/reference/scheduled-events.md 3.2).

The name is ``compute.name`` of the instance metadata. It is never derived from the hostname, which
differs for every scale set and most Windows VMs.
"""

from __future__ import annotations

from typing import Any, Mapping

from .document import ScheduledEvent
from .errors import OwnNameUnknown


def resource_name_of(instance: Mapping[str, Any]) -> str | None:
    """``compute.name`` of an instance document, or None where IMDS left it out (reference 3.3: partial data happen)."""
    compute = instance.get("compute")
    name = compute.get("name") if isinstance(compute, Mapping) else None
    return name if isinstance(name, str) and name else None


def vm_id_of(instance: Mapping[str, Any]) -> str:
    """``compute.vmId`` of an instance document, which no other VM has; "" where IMDS left it out."""
    compute = instance.get("compute")
    vm_id = compute.get("vmId") if isinstance(compute, Mapping) else None
    return vm_id if isinstance(vm_id, str) else ""


def is_same_vm(resource: str, name: str) -> bool:
    """Whether an entry of ``Resources`` is the VM of that name: compared whole, letter case folded.

    Api-version 2017-03-01 puts an underscore before names of VMs. No VM's own name can begin with
    one, so that the form can be told from a name of its own in every version.
    """
    entry, own = resource.casefold(), name.casefold()
    return bool(own) and (entry == own or (entry == "_" + own and not own.startswith("_")))


def affects(event: ScheduledEvent, name: str | None) -> bool:
    """Whether the event hits the VM of that name. Raises OwnNameUnknown where the name is not known."""
    if not name:
        raise OwnNameUnknown()
    return any(is_same_vm(resource, name) for resource in event.resources)


def affects_only(event: ScheduledEvent, name: str | None) -> bool:
    """Whether the event hits the VM of that name and no other. Raises OwnNameUnknown where the name is not known."""
    return affects(event, name) and all(is_same_vm(resource, name or "") for resource in event.resources)


def leader_rank(event: ScheduledEvent, name: str | None) -> int | None:
    """Place of the VM of that name in ``Resources``, from 0, or None: the order in which VMs take the lead (reference 2.2.5).

    Raises OwnNameUnknown where the name is not known.
    """
    if not affects(event, name):
        return None
    return next(rank for rank, resource in enumerate(event.resources) if is_same_vm(resource, name or ""))
