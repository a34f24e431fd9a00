# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides which events the hosts of a maintenance run may approve, and why not the others."""

from __future__ import annotations

import typing as t

from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.hosts import (
    Event,
    MaintenanceHost,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.vm_hosts import (
    all_resources,
    hosts_of_vm,
)


class _Obstacle(t.NamedTuple):
    """Why an event is not approved: a code for programs, a sentence for readers."""

    code: str
    text: str


def decide_approvals(hosts: t.Sequence[MaintenanceHost]) -> list[dict[str, t.Any]]:
    """Return one decision for each event for which a host is prepared.

    An event is approved if each VM that one of the hosts lists in its Resources is one host that is prepared for it.
    The host of the first VM approves it, or that of the first VM that reads the events itself.
    """
    events: dict[str, Event] = {}
    for host in hosts:
        for event in host.scheduled_events():
            events.setdefault(event["key"], event)
    return [
        _decision(dict(event, resources=all_resources(host.resources_of(key) for host in hosts)), hosts)
        for key, event in events.items()
    ]


def _decision(event: Event, hosts: t.Sequence[MaintenanceHost]) -> dict[str, t.Any]:
    by_name = {host.name: host for host in hosts}
    vms = {host.name: host.approval_vm for host in hosts}
    owners = {vm: [by_name[name] for name in hosts_of_vm(vm, vms)] for vm in event["resources"]}
    nameless = [name for name, vm in vms.items() if not vm]
    known_by = " by its maintenance_arm_resource_id" if any(host.arm_vm for host in hosts) else ""
    hint = known_by + (f" (not known: {', '.join(nameless)})" if nameless else "")
    found = [_blocked_by(vm, event, own, hint) for vm, own in owners.items()]
    obstacles = [obstacle for obstacle in found if obstacle is not None]
    if not found:
        obstacles.append(_Obstacle("no_vm", "the event names no VM"))
    # all hosts have the same plan, except those that were lost before it was made
    waits_because = next((host.waits_because(event["key"]) for host in hosts if host.has_plan), "")
    if waits_because:
        obstacles = [_Obstacle("waiting", f"it waits for a later run: {waits_because}")]
    known = [host for own in owners.values() for host in own]
    first = next((host for host in known if host.reads_events), known[0] if known else None)
    if first and not first.reads_events and not first.approves_by_arm:
        obstacles.append(_Obstacle("no_reader", "no host of the event reads IMDS; set maintenance_approve_by to arm"))
    return {
        "event_id": event["event_id"],
        "event_type": event["event_type"],
        "resources": list(event["resources"]),
        "by": first.name if first else "",
        "approve": not obstacles,
        "code": obstacles[0].code if obstacles else "",
        "why_not": "; ".join(obstacle.text for obstacle in obstacles),
    }


def _blocked_by(vm: str, event: Event, owners: list[MaintenanceHost], hint: str) -> _Obstacle | None:
    """Return why this VM prevents the approval, or None.

    ``vm`` is an entry of Resources, ``owners`` are the hosts that are this VM, and ``hint`` says how hosts are known
    to be VMs.
    """
    if not owners:
        text = f"{vm}: no host of this play, or of its batch, is known to be this VM{hint}"
        return _Obstacle("unknown_vm", text)
    if len(owners) > 1:
        names = ", ".join(host.name for host in owners)
        return _Obstacle("claimed_twice", f"{vm}: several hosts claim to be this VM: {names}; leave out the wrong one")
    (host,) = owners
    if not host.is_prepared:
        return _Obstacle("not_prepared", f"{vm}: {host.not_prepared_because() or 'the host is not prepared'}")
    if all(event["key"] != held["key"] for held in host.scheduled_events()):
        return _Obstacle("not_listed", f"{vm}: the host does not list this event as Scheduled")
    return None
