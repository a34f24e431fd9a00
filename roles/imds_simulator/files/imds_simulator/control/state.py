# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The state of a running simulator as JSON data: for the control API, the page, and the report."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from ..faults.registry import ActiveFault
from ..model.events import SimulatedEvent
from ..protocol.arm import PREVIEW
from ..protocol.resource_ids import ResourceIds
from ..server.activity_log import RequestEntry
from ..server.arm_handler import PREFIX
from ..server.clock import ManualClock
from ..server.engine import Engine
from ..times import iso

# one answer has at most so many of the newest lines, and of the newest groups of requests
MAX_NEW = 5000
# characters of a value in a line: the output of an impact command may be long
_MAX_TEXT = 300


def state(engine: Engine, endpoints: Mapping[str, str]) -> dict[str, Any]:
    """Return the whole state: clock, VMs, scopes, events and faults.

    ``run`` differs between two starts of the simulator.
    """
    now, world = engine.settle(), engine.world
    return {
        "run": f"{os.getpid()}-{engine.started}",
        "title": engine.scenario.title,
        "now": iso(now),
        "unix": now,
        "manual": isinstance(engine.clock, ManualClock),
        "speed": world.speed,
        "started": iso(engine.started),
        "epoch": None if world.epoch is None else iso(world.epoch),
        "groups": {group.name: {"kind": group.kind, "vms": len(group.vms)} for group in world.groups.values()},
        "vms": {
            vm.name: {
                "group": vm.group,
                "endpoint": endpoints[vm.name],
                "source": vm.source,
                "zone": vm.zone,
                "fault_domain": vm.fault_domain,
                "resource_name": vm.resource_name,
                "scope": world.scope_for(vm).key,
                "removed": vm.name in world.removed,
            }
            for vm in world.vms.values()
        },
        "scopes": {
            scope.key: {
                "group": scope.group,
                "incarnation": scope.incarnation,
                "enabled": world.is_enabled(scope, now),
                "last_request": _moment(scope.last_request),
            }
            for scope in world.scopes.values()
        },
        "events": [event_state(event, engine.resource_ids) for event in list(world.ended) + world.events],
        "faults": [fault_state(active, now) for active in engine.faults.all(now)],
    }


def run_data(
    engine: Engine, endpoints: Mapping[str, str], after_line: int = 0, after_request: int = 0
) -> dict[str, Any]:
    """Return the state and the log, for the page and the report.

    The log has the lines after number ``after_line``, and the requests after number ``after_request``, grouped by
    equal answers.
    """
    whole, log = state(engine, endpoints), engine.activity_log
    lines = log.lines_after(after_line, None)
    new = log.requests_after(after_request)
    return {
        **whole,
        "lines": [_short(each) for each in lines[-MAX_NEW:]],
        "last_line": lines[-1]["number"] if lines else after_line,
        "answers": equal_answers(new)[-MAX_NEW:],
        "last_request": new[-1].number if new else after_request,
    }


def equal_answers(requests: Iterable[RequestEntry]) -> list[dict[str, Any]]:
    """Return ``requests`` in groups of equal answers in a row to one VM, method and route."""
    groups: list[dict[str, Any]] = []
    last: dict[tuple[str, str, str], dict[str, Any]] = {}
    for each in requests:
        key = (each.vm, each.method, each.route)
        group = last.get(key)
        if group is None or (group["status"], group["fault"]) != (each.status, each.fault):
            group = last[key] = {
                "vm": each.vm,
                "method": each.method,
                "route": each.route,
                "status": each.status,
                "fault": each.fault,
                "from": round(each.moment, 3),
                "count": 0,
            }
            groups.append(group)
        group["to"] = round(each.moment, 3)
        group["count"] += 1
    return groups


def _short(line: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value[:_MAX_TEXT] if isinstance(value, str) else value
        for key, value in line.items()
        if value not in ("", [])
    }


def event_state(event: SimulatedEvent, ids: ResourceIds) -> dict[str, Any]:
    """Return one event, including its state that IMDS does not show (docs/reference/scheduled-events.md 2.6).

    ``acknowledge_path``: a POST to this path of the control address acknowledges the event by Azure Resource Manager.
    """
    content = event.content
    resource = quote(ids.event_id(content.resources[0], event.id)) if event.visible else ""
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
        "approved": bool(event.approvals),
        "held_until": _moment(event.released_at),
        "started_at": _moment(event.started_at),
        "ends_at": _moment(event.ends_at),
        "gone_at": _moment(event.gone_at),
        "cancelled": event.cancelled,
        "acknowledge_path": f"{PREFIX}{resource}/acknowledge?api-version={PREVIEW}" if resource else None,
    }


def fault_state(active: ActiveFault, now: float) -> dict[str, Any]:
    """Return one fault with its time window and the numbers of matching requests.

    ``active``: a further request may get the fault. ``exhausted``: when the last of its VMs had the last one that does.
    """
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
        "active": active.is_active_at(now) and not active.is_over(now),
        "exhausted": _moment(active.exhausted),
        "options": {
            name: _option_text(value)
            for name, value in vars(active.fault.effect).items()
            if value not in (None, "", b"", {})
        },
        "seen": dict(active.seen),
    }


def _option_text(value: object) -> str:
    return (value.decode(errors="replace") if isinstance(value, bytes) else str(value))[:80]


def _moment(moment: float | None) -> str | None:
    return None if moment is None or math.isinf(moment) else iso(moment)
