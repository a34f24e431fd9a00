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


class _Obstacle(t.NamedTuple):
    """Why an event is not approved: a code for programs, a sentence for readers."""

    code: str
    text: str


def decide_approvals(hosts: t.Sequence[MaintenanceHost]) -> list[dict[str, t.Any]]:
    """Return one decision for each event for which a host is prepared.

    An event is approved if each VM in its Resources is a host that is prepared for it. The host of the first VM
    approves it, or that of the first VM that reads the events itself.
    """
    events: dict[str, Event] = {}
    for host in hosts:
        for event in host.scheduled_events():
            events.setdefault(event["key"], event)
    return [_decision(event, hosts) for event in events.values()]


def _decision(event: Event, hosts: t.Sequence[MaintenanceHost]) -> dict[str, t.Any]:
    by_vm = {host.vm.casefold(): host for host in hosts if host.vm}
    nameless = [host.name for host in hosts if not host.vm]
    found = [_blocked_by(vm, event, by_vm.get(vm.casefold()), nameless) for vm in event["resources"]]
    obstacles = [obstacle for obstacle in found if obstacle is not None]
    if not found:
        obstacles.append(_Obstacle("no_vm", "the event names no VM"))
    # all hosts have the same plan, except those that were lost before it was made
    waits_because = next((host.waits_because(event["key"]) for host in hosts if host.has_plan), "")
    if waits_because:
        obstacles = [_Obstacle("waiting", f"it waits for a later run: {waits_because}")]
    known = [by_vm[vm.casefold()] for vm in event["resources"] if vm.casefold() in by_vm]
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


def _blocked_by(vm: str, event: Event, host: MaintenanceHost | None, nameless: list[str]) -> _Obstacle | None:
    """Return why this VM prevents the approval, or None; ``nameless`` are the hosts whose VM is unknown."""
    if host is None:
        hint = f" (not known: {', '.join(nameless)})" if nameless else ""
        text = f"{vm}: no host of this play, or of its batch, is known to be this VM{hint}"
        return _Obstacle("unknown_vm", text)
    if not host.is_prepared:
        return _Obstacle("not_prepared", f"{vm}: {host.not_prepared_because() or 'the host is not prepared'}")
    if all(event["key"] != held["key"] for held in host.scheduled_events()):
        return _Obstacle("not_listed", f"{vm}: the host does not list this event as Scheduled")
    return None
