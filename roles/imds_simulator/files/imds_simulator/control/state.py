# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The state of a running simulator as JSON data, for the control API."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..faults.registry import ActiveFault
from ..model.events import SimulatedEvent
from ..server.engine import Engine
from ..times import iso


def state(engine: Engine, endpoints: Mapping[str, str]) -> dict[str, Any]:
    """Return the whole state: clock, VMs, scopes, events and faults."""
    now, world = engine.settle(), engine.world
    return {
        "title": engine.scenario.title,
        "now": iso(now),
        "unix": now,
        "speed": world.rules.speed,
        "epoch": None if world.epoch is None else iso(world.epoch),
        "vms": {
            vm.name: {
                "group": vm.group,
                "endpoint": endpoints[vm.name],
                "source": vm.source,
                "zone": vm.zone,
                "resource_name": vm.resource_name,
                "scope": world.scope_for(vm).key,
            }
            for vm in world.vms.values()
        },
        "scopes": {
            scope.key: {
                "group": scope.group,
                "incarnation": scope.incarnation,
                "enabled": scope.enabled(now, world.rules),
                "last_request": _moment(scope.last_request),
            }
            for scope in world.scopes()
        },
        "events": [event_state(event) for event in list(world.ended) + world.events],
        "faults": [fault_state(active, now) for active in engine.faults.all(now)],
    }


def event_state(event: SimulatedEvent) -> dict[str, Any]:
    """Return one event, including its state that IMDS does not show (docs/reference/scheduled-events.md 2.6)."""
    content = event.content
    return {
        "name": event.name,
        "id": event.id,
        "group": event.group,
        "status": event.status,
        "type": content.type,
        "resources": list(content.resources),
        "source": content.source,
        "description": content.description,
        "duration": content.duration,
        "appears_at": _moment(event.appears_at),
        "not_before": iso(event.not_before) if event.not_before else None,
        "approved_by": sorted(event.approvals),
        "approvals": {by: iso(moment) for by, moment in event.approvals.items()},
        "approved": event.approved_at is not None,
        "held_until": _moment(event.released_at),
        "started_at": _moment(event.started_at),
        "ends_at": _moment(event.ends_at),
        "gone_at": _moment(event.gone_at),
        "cancelled": event.cancelled,
    }


def fault_state(active: ActiveFault, now: float) -> dict[str, Any]:
    """Return one fault with its time window and the numbers of matching requests."""
    return {**fault_window(active, now), "seen": dict(active.seen)}


def fault_window(active: ActiveFault, now: float) -> dict[str, Any]:
    """Return one fault with its time window."""
    window = active.fault.window
    return {
        "number": active.number,
        "kind": active.fault.kind,
        "route": window.route,
        "method": window.method,
        "vms": list(window.vms),
        "first": window.requests.first,
        "last": None if math.isinf(window.requests.last) else window.requests.last,
        "from": _moment(active.begins),
        "to": _moment(active.ends),
        "active": active.is_active_at(now),
    }


def _moment(moment: float | None) -> str | None:
    return None if moment is None or math.isinf(moment) else iso(moment)
