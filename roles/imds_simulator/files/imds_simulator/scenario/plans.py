# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The content of a scenario as immutable values. Durations are simulated seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..moments import When
from .answers import Answer
from .fault import Fault
from .groups import Group
from .knobs import Knobs
from .notify import Notify

BY_NOTICE = "by_notice"
HARDWARE_FAILURE = "hardware_failure"
AUTOMATIC_APPROVAL = "automatic_approval"


@dataclass(frozen=True)
class Change:
    """A change of an event, due ``after`` simulated seconds. A field that is None stays as it is.

    ``since`` is "appearing" or "start". ``action`` is "edit", "cancel", "complete", "approve" (by
    the control plane), "release" (by the other tenants) or "impact" (a further short interruption,
    docs/reference/scheduled-events.md 2.1 case 4).
    """

    after: float
    since: str = "appearing"
    action: str = "edit"
    type: str | None = None
    resources: tuple[str, ...] | None = None
    source: str | None = None
    description: str | None = None
    duration: int | None = None
    notice: float | None = None
    status: str | None = None
    impact_for: float = 0.0


@dataclass(frozen=True)
class EventPlan:
    """One event of a scenario (reference 2.1); None: the knobs or the type decide."""

    name: str
    resources: tuple[str, ...]
    type: str | None = None
    at: When = 0.0
    after: str | None = None
    starts: str = BY_NOTICE
    id: str | None = None
    source: str | None = None
    description: str | None = None
    duration: int | None = None
    notice: float | None = None
    started_for: float | None = None
    hold: float | None = None
    batch: str | None = None
    actual: str | None = None
    impact_for: float | None = None
    not_before: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True)
class IncarnationStep:
    """A change of a group's DocumentIncarnation without a change of its events (reference 2.5)."""

    at: When
    group: str
    to: int | None = None
    add: int = 0


@dataclass(frozen=True)
class ImpactCommands:
    """Commands to run for each affected VM; ``timeout`` is in real seconds.

    ``commands``: (event type, "start" or "end") -> argument list.
    """

    commands: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    timeout: float = 60.0


@dataclass(frozen=True)
class Scenario:
    """A whole scenario file; ``begin``: simulated time 0 is the "start" or the "first_request"."""

    title: str
    groups: tuple[Group, ...]
    events: tuple[EventPlan, ...] = ()
    incarnations: tuple[IncarnationStep, ...] = ()
    faults: tuple[Fault, ...] = ()
    knobs: Knobs = field(default_factory=Knobs)
    impact: ImpactCommands = field(default_factory=ImpactCommands)
    speed: float = 1.0
    begin: str = "start"
    default_vm: str | None = None
    notify: Notify | None = None
    answers: tuple[Answer, ...] = ()
