# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""One event: its members in the document, its state, its scheduled steps, and its occurrences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ..api_versions import ADVICE
from ..scenario.knobs import Knobs
from ..scenario.plans import AUTOMATIC_APPROVAL, HARDWARE_FAILURE, Change, EventPlan

PLANNED = "Planned"
SCHEDULED = "Scheduled"
STARTED = "Started"
ENDED = "Gone"

CONTROL_PLANE = "control-plane"
# Azure Resource Manager's acknowledge (docs/reference/scheduled-events.md 5.12)
ARM = "arm"

_DESCRIPTIONS = {
    ("Freeze", "Platform"): "Host server is undergoing maintenance.",
    ("Reboot", "Platform"): "Host server is undergoing maintenance.",
    ("Redeploy", "Platform"): "Host server is undergoing an emergency repair.",
    ("Reboot", "User"): "Virtual machine is going to be restarted as requested by authorized user.",
    ("Redeploy", "User"): "Virtual machine is going to be redeployed as requested by authorized user.",
}
_FAILURE_DESCRIPTION = "Virtual machine has encountered a failure."
# medians of docs/reference/scheduled-events.md 2.4.6, in seconds; every other type has -1, "unknown or
# not applicable"
_TYPICAL_DURATIONS = {"Freeze": 9}


@dataclass(frozen=True)
class EventFields:
    """The members of an event in the document (reference 1.4).

    Without id, status and NotBefore, which depend on the state of the event.
    """

    type: str
    resources: tuple[str, ...]
    source: str
    description: str
    duration: int
    not_before: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def members(self, event_id: str, status: str, not_before: str, names: list[str]) -> dict[str, Any]:
        """Return all members, in the order of the document; ``names`` are those of the VMs in Resources."""
        return {
            "EventId": event_id,
            "EventStatus": status,
            "EventType": self.type,
            "ResourceType": "VirtualMachine",
            "Resources": names,
            "NotBefore": not_before,
            "Description": self.description,
            "EventSource": self.source,
            "DurationInSeconds": self.duration,
            **self.extra,
        }


class ScheduledStep(NamedTuple):
    """A step of an event that is due at ``moment`` of the simulator's clock.

    ``impact`` is the type of the interruption that ends.
    """

    moment: float
    step: str
    change: Change | None = None
    impact: str = ""


@dataclass(eq=False)
class SimulatedEvent:
    """An event of the running simulation. Only the model changes it, except for ``seen_by``: the VMs that received it.

    Moments are Unix times in seconds on the simulator's clock.
    """

    plan: EventPlan
    group: str
    id: str
    content: EventFields
    status: str = PLANNED
    appears_at: float = math.inf
    not_before: int = 0
    released_at: float = math.inf
    approvals: dict[str, float] = field(default_factory=dict)
    started_at: float | None = None
    ends_at: float = math.inf
    gone_at: float | None = None
    cancelled: bool = False
    pending: list[ScheduledStep] = field(default_factory=list)
    seen_by: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        """The name of the event in the scenario and in the control API."""
        return self.plan.name

    @property
    def visible(self) -> bool:
        """True while the event is in the document."""
        return self.status in (SCHEDULED, STARTED)

    @property
    def approved_at(self) -> float:
        """The moment of the first approval, infinity without one."""
        return next(iter(self.approvals.values()), math.inf)

    @property
    def advises(self) -> bool:
        """True if the event only advises: it ends at NotBefore without a start (reference 1.4.16)."""
        return self.content.type == ADVICE

    def edit(self, change: Change) -> None:
        """Replace the members that ``change`` sets."""
        edits = {
            name: getattr(change, name)
            for name in ("type", "resources", "source", "description", "duration")
            if getattr(change, name) is not None
        }
        self.content = replace(self.content, **edits)


@dataclass(frozen=True)
class Occurrence:
    """An occurrence of a ``kind`` at ``moment`` (the simulator's clock).

    ``kind`` is the kind of its line in the log; server/activity_log.py lists them.

    ``content`` and ``not_before`` (a Unix time, 0 before it appears) are those of the event at ``moment``.
    """

    moment: float
    kind: str
    group: str
    event: str = ""
    event_id: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    content: EventFields | None = None
    not_before: int = 0


def fields_of(plan: EventPlan, knobs: Knobs) -> EventFields:
    """Return the members of an event; omitted ones get the values that Azure usually shows (reference 1.4, 2.4.6)."""
    failure = plan.starts == HARDWARE_FAILURE
    kind = plan.type or knobs.hardware_failure_type
    by_user = kind == "Terminate" or plan.starts == AUTOMATIC_APPROVAL
    source = plan.source or ("User" if by_user else "Platform")
    usual = _FAILURE_DESCRIPTION if failure else _DESCRIPTIONS.get((kind, source), "")
    return EventFields(
        type=kind,
        resources=plan.resources,
        source=source,
        description=usual if plan.description is None else plan.description,
        duration=_TYPICAL_DURATIONS.get(kind, -1) if plan.duration is None else plan.duration,
        not_before=plan.not_before,
        extra=plan.extra,
    )


def ceil_second(moment: float) -> int:
    """Return the first whole second that is not earlier than ``moment``: NotBefore (reference 2.3.1)."""
    # binary fractions are not exact: without the microsecond, 900 s after a whole second could become 901 s
    return math.ceil(moment - 1e-6)


def impact_for(event: SimulatedEvent) -> tuple[str, float]:
    """Return the interruption that a start causes: (event type, simulated seconds); 0: there is none.

    Infinity means "until the event is removed". A Reboot may turn out to be a freeze (reference 2.4.8).
    """
    kind = event.plan.actual or event.content.type
    if event.plan.impact_for is not None:
        return kind, event.plan.impact_for
    duration = event.content.duration if event.content.duration >= 0 else _TYPICAL_DURATIONS.get(kind, -1)
    return kind, float(duration) if duration >= 0 else math.inf
