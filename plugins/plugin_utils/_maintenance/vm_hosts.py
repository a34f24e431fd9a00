# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts of a run are which VMs, and what they report about an event."""

from __future__ import annotations

import typing as t

from ...module_utils.azure_scheduled_events.document import ScheduledEvent
from ...module_utils.azure_scheduled_events.identity import vm_key
from ...module_utils.azure_scheduled_events.release import Obstacle, Report, all_vms
from ...module_utils.azure_scheduled_events.tracking import Sighting

# event_approve reads the prepared VMs as shell patterns; names in Azure have none of these characters
_WILDCARDS = frozenset("*?[")


def hosts_by_vm(vms: t.Mapping[str, str]) -> dict[str, list[str]]:
    """Return the hosts that are each VM, by `vm_key`; more than one if a host claims the name of another VM.

    A name with a wildcard is that of no VM. A compromised host of that name would release VMs that Azure adds to the
    event. ``vms`` has the name of the VM by host, "" if unknown.
    """
    hosts: dict[str, list[str]] = {}
    for host, vm in vms.items():
        if vm and not _WILDCARDS.intersection(vm):
            hosts.setdefault(vm_key(vm), []).append(host)
    return hosts


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
        next((each["status"] for each in known if each["status"] == "Started"), last["status"] or ""),
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
    owners: t.Mapping[str, t.Sequence[str]], report_of: t.Mapping[str, Report], of_caller: Sighting | None
) -> tuple[dict[str, Report], dict[str, str]]:
    """Return the reports for `obstacles`, and the host of each VM whose host is known.

    Args:
        owners: as `hosts_by_vm` returns them.
        report_of: what each host says.
        of_caller: the event as the caller of the run lists it. Its VMs count, and none of them is the caller.
    """
    reports: dict[str, Report] = {}
    # what the others list counts, though they are no VM that the run knows
    others = dict(report_of)
    hosts: dict[str, str] = {}
    for key, names in owners.items():
        if len(names) == 1:
            hosts[key] = names[0]
            reports[key] = others.pop(names[0])
        else:
            text = f"several hosts claim to be this VM: {', '.join(names)}; leave out the wrong one"
            reports[key] = Report(None, False, Obstacle("claimed_twice", text))
    # no `vm_key` has an upper-case letter
    unknown = {f"HOST {name}": report for name, report in others.items()}
    return {**reports, **unknown, "CALLER": Report(of_caller, False)}, hosts
