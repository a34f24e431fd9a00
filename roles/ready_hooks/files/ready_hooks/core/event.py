# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The event that a hook runs for, from the variables that every frontend sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Event(NamedTuple):
    """The event; "" for each unknown text, None for each unknown number.

    Attributes:
        event_id, event_type, status, source, description, not_before, resource_type: as Azure lists them.
        resources: the affected VMs, separated by spaces.
        resource: this VM's name.
        stage: prepare, emergency, started or recover.
        outcome: completed, canceled or unknown, at the end.
        first_seen: ISO 8601, in UTC.
        duration: expected seconds of the interruption; -1 means unknown to Azure.
        seconds_left: until the event may start.
    """

    event_id: str
    event_type: str
    status: str
    source: str
    description: str
    not_before: str
    resource_type: str
    resources: str
    resource: str
    stage: str
    outcome: str
    first_seen: str
    duration: int | None
    seconds_left: int | None


def from_environment(environment: Mapping[str, str]) -> Event:
    """Return the event of the variables EVENT_*."""
    words = {
        name: environment.get("EVENT_" + name.upper(), "")
        for name in Event._fields
        if name not in ("event_id", "event_type", "duration", "seconds_left")
    }
    return Event(
        event_id=environment.get("EVENT_ID", ""),
        event_type=environment.get("EVENT_TYPE", ""),
        duration=_number(environment.get("EVENT_DURATION", "")),
        seconds_left=_number(environment.get("EVENT_SECONDS_LEFT", "")),
        **words,
    )


def _number(value: str) -> int | None:
    try:
        return int(value)
    except ValueError:
        return None
