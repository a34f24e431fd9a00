# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Makes plans from checked scenario data; omitted keys get their defaults here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ..moments import parse_when
from ..times import parse_duration
from .answers import answer_from
from .fault_kinds import fault_from
from .groups import Group, Vm, parse_address, placement_group_name, source_address
from .knobs import Knobs, change_knobs
from .notify import notify_from
from .plans import Change, EventPlan, ImpactCommands, IncarnationStep, Scenario

_TEXTS = ("type", "source", "description", "duration", "status")


def scenario_from(data: Mapping[str, Any]) -> Scenario:
    """Return the scenario that checked ``data`` describes."""
    return Scenario(
        title=data.get("title", ""),
        groups=tuple(_group(name, each) for name, each in data["groups"].items()),
        events=tuple(event_from(each, f"event{number}") for number, each in enumerate(data.get("events", ()), 1)),
        incarnations=tuple(_incarnation(each) for each in data.get("incarnations", ())),
        faults=tuple(fault_from(each) for each in data.get("faults", ())),
        knobs=change_knobs(Knobs(), data.get("knobs", {})),
        impact=_impact(data.get("impact", {})),
        speed=float(data.get("speed", 1.0)),
        begin=data.get("begin", "start"),
        default_vm=data.get("default_vm"),
        notify=notify_from(data["notify"]) if "notify" in data else None,
        answers=tuple(answer_from(each) for each in data.get("answers", ())),
    )


def event_from(data: Mapping[str, Any], name: str) -> EventPlan:
    """Return one event; ``name`` is its name unless ``data`` has one."""
    changes = [change_from(each) for each in data.get("changes", ())]
    if "cancel_after" in data:
        changes.append(Change(parse_duration(data["cancel_after"]), action="cancel"))
    if "approve_after" in data:
        changes.append(Change(parse_duration(data["approve_after"]), action="approve"))
    return EventPlan(
        name=data.get("name", name),
        resources=tuple(data["resources"]),
        type=data.get("type"),
        at=parse_when(data.get("at", 0)),
        after=data.get("after"),
        starts=data.get("starts", "by_notice"),
        # IMDS shows ids in upper case (docs/reference/scheduled-events.md 1.4.3)
        id=data["id"].upper() if "id" in data else None,
        source=data.get("source"),
        description=data.get("description"),
        duration=data.get("duration"),
        notice=_seconds(data, "notice"),
        started_for=_seconds(data, "started_for"),
        hold=_hold(data.get("hold")),
        batch=data.get("batch"),
        actual=data.get("actual"),
        impact_for=_seconds(data, "impact_for"),
        not_before=data.get("not_before"),
        extra=data.get("extra", {}),
        changes=tuple(changes),
    )


def change_from(data: Mapping[str, Any]) -> Change:
    """Return one change of an event."""
    since_start = "after_start" in data
    return Change(
        after=parse_duration(data["after_start"] if since_start else data.get("after", 0)),
        since="start" if since_start else "appearing",
        action=data.get("action", "edit"),
        resources=tuple(data["resources"]) if "resources" in data else None,
        notice=_seconds(data, "notice"),
        impact_for=parse_duration(data.get("impact_for", 0)),
        **{name: data.get(name) for name in _TEXTS},
    )


def _group(name: str, data: Mapping[str, Any]) -> Group:
    return Group(
        name=name,
        kind=data.get("kind", "standalone" if len(data["vms"]) == 1 else "availability_set"),
        vms=tuple(_vm(each, name, more or {}) for each, more in data["vms"].items()),
        orchestration=data.get("orchestration", "uniform"),
        gpu_single_fault_domain=data.get("gpu_single_fault_domain", False),
        incarnation=data.get("incarnation"),
        instance=data.get("instance", {}),
    )


def _vm(name: str, group: str, data: Mapping[str, Any]) -> Vm:
    return Vm(
        name=name,
        group=group,
        resource_name=data.get("resource_name", name),
        listen=parse_address(data["listen"]) if "listen" in data else None,
        source=source_address(data["source"]) if "source" in data else None,
        zone=str(data.get("zone", "")),
        fault_domain=data.get("fault_domain", 0),
        update_domain=data.get("update_domain", 0),
        placement_group=placement_group_name(data.get("placement_group", "")),
        instance=data.get("instance", {}),
    )


def _incarnation(data: Mapping[str, Any]) -> IncarnationStep:
    return IncarnationStep(parse_when(data.get("at", 0)), data["group"], data.get("to"), data.get("add", 0))


def _impact(data: Mapping[str, Any]) -> ImpactCommands:
    phases: Iterable[tuple[str, str, Any]] = (
        (kind, phase, argv) for kind, phases in data.items() if kind != "timeout" for phase, argv in phases.items()
    )
    return ImpactCommands(
        {(kind, phase): tuple(argv) for kind, phase, argv in phases}, parse_duration(data.get("timeout", 60))
    )


def _seconds(data: Mapping[str, Any], key: str) -> float | None:
    return parse_duration(data[key]) if key in data else None


def _hold(value: Any) -> float | None:
    if value is None or value is False:
        return None if value is None else 0.0
    return math.inf if value is True else parse_duration(value)
