# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""One occurrence in the simulation, for the log and for the impact commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .events import EventFields


@dataclass(frozen=True)
class EventSnapshot:
    """A visible event as it was at one moment. ``not_before`` is a Unix time."""

    status: str
    content: EventFields
    not_before: int


@dataclass(frozen=True)
class Occurrence:
    """An occurrence of a ``kind`` at ``moment`` (the simulator's clock).

    ``kind`` is the kind of its line in the log; server/activity_log.py lists them.

    ``snapshot`` is the event at ``moment``; for an event that ends it is the event before its end.
    None: clients do not see the event.
    """

    moment: float
    kind: str
    group: str
    event: str = ""
    event_id: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    snapshot: EventSnapshot | None = None
