# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts of a run are which VMs, and what they report about an event."""

from __future__ import annotations

import typing as t

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.document import (
    ScheduledEvent,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.identity import (
    is_same_vm,
    vm_key,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.release import (
    Obstacle,
    Report,
    all_vms,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.tracking import (
    Sighting,
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


def sighting_of(listings: t.Sequence[t.Mapping[str, t.Any] | None], also: t.Iterable[str] = ()) -> Sighting | None:
    """Return an event as the last answers of a host list it, the newest one last; None if no answer does.

    As for a `Tracker`, a VM that one of the answers names counts, and an event that was Started stays so. ``also`` has
    further VMs that count.
    """
    known = [event for event in listings if event is not None]
    if not known:
        return None
    last = known[-1]
    event = ScheduledEvent(
        last["event_id"],
        last["event_type"] or "",
        next((each["status"] for each in known if each["status"] == "Started"), last["status"]),
        tuple(all_vms([*(each["resources"] for each in known), also]).values()),
        last.get("resource_type"),
        None,
        None,
        last.get("source"),
        None,
    )
    named = frozenset(map(vm_key, last["resources"])) if listings[-1] is not None else frozenset()
    return Sighting(event, listings[-1] is not None, named, bool(last["resources"]))


def reports_by_vm(
    vms: t.Mapping[str, str], report_of: t.Callable[[str], Report]
) -> tuple[dict[str, Report], dict[str, str]]:
    """Return the reports for `obstacles`, and the host of each VM whose host is known.

    Args:
        vms: name of the VM by host, "" if unknown.
        report_of: returns what a host says.
    """
    reports: dict[str, Report] = {}
    hosts: dict[str, str] = {}
    for host, vm in vms.items():
        report = report_of(host)
        key = vm_key(vm)
        rivals = hosts_of_vm(vm, vms)
        if not rivals:
            reports[f"host {host}"] = report  # what it lists counts, though it is no VM that the run knows
        elif len(rivals) > 1:
            names = ", ".join(rivals)
            text = f"several hosts claim to be this VM: {names}; leave out the wrong one"
            reports[f"host {host}"] = report
            reports[key] = Report(None, False, Obstacle("claimed_twice", text))
        else:
            reports[key], hosts[key] = report, host
    return reports, hosts
