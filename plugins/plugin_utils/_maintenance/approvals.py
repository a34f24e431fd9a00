# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides which events the hosts of a maintenance run may approve, and why not the others."""

from __future__ import annotations

import typing as t

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.release import (
    Obstacle,
    Report,
    approver_order,
    obstacles,
    release_set,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.hosts import (
    Event,
    MaintenanceHost,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.vm_hosts import (
    reports_by_vm,
    sighting_of,
)


def decide_approvals(hosts: t.Sequence[MaintenanceHost]) -> list[dict[str, t.Any]]:
    """Return one decision for each event for which a host is prepared.

    An event is approved if each VM that one of the hosts lists in its Resources is one host that is prepared for it.
    The first of these hosts that reads the events itself approves it, in the order of the names of their VMs.
    """
    events: dict[str, Event] = {}
    for host in hosts:
        for event in host.scheduled_events():
            events.setdefault(event["key"], event)
    return [_decision(event, hosts) for event in events.values()]


def _decision(event: Event, hosts: t.Sequence[MaintenanceHost]) -> dict[str, t.Any]:
    by_name = {host.name: host for host in hosts}
    reports, hosts_of = reports_by_vm(
        {host.name: host.approval_vm for host in hosts}, lambda name: _report(by_name[name], event["key"])
    )
    nameless = [host.name for host in hosts if not host.approval_vm]
    known_by = " by its maintenance_arm_resource_id" if any(host.arm_vm for host in hosts) else ""
    hint = known_by + (f" (not known: {', '.join(nameless)})" if nameless else "")
    found = obstacles(reports, f"no host of this play, or of its batch, is known to be this VM{hint}")
    # all hosts have the same plan, except those that were lost before it was made
    waits_because = next((host.waits_because(event["key"]) for host in hosts if host.has_plan), "")
    if waits_because:
        found = [Obstacle("waiting", f"it waits for a later run: {waits_because}")]
    known = [by_name[hosts_of[key]] for key in approver_order(reports) if key in hosts_of]
    first = next((host for host in known if host.reads_events), known[0] if known else None)
    if first and not first.reads_events and not first.approves_by_arm:
        found.append(Obstacle("no_reader", "no host of the event reads IMDS; set maintenance_approve_by to arm"))
    return {
        "event_id": event["event_id"],
        "event_type": event["event_type"],
        "resources": list(release_set(reports.values()).values()),
        "by": first.name if first else "",
        "approve": not found,
        "code": found[0].code if found else "",
        "why_not": "; ".join(map(str, found)),
    }


def _report(host: MaintenanceHost, key: str) -> Report:
    """Return what the host says about the event of this key."""
    listed = next((event for event in host.listed_events() if event["key"] == key), None)
    held = any(event["key"] == key for event in host.scheduled_events())
    obstacle = None
    if not host.is_prepared:
        obstacle = Obstacle("not_prepared", host.not_prepared_because() or "the host is not prepared")
    return Report(None if listed is None else sighting_of(listed), host.is_prepared and held, obstacle)
