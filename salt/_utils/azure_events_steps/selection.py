# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Decides whether this minion prepares for an event, by its own selection. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.identity import affects

from .configuration import Configuration

# codes for an event that is not selected: the key of the configuration that excludes it
AFFECTS = "affects"
TYPES, MINIMUM_NOTICE = "types", "minimum_notice"


class SelectionResult(NamedTuple):
    """Whether an event is selected: ``code`` is "", or the key that excludes it; ``reason`` explains it."""

    code: str = ""
    reason: str = ""

    @property
    def selected(self) -> bool:
        """Return True if the event is selected."""
        return self.code == ""


def evaluate(
    event: ScheduledEvent, own_name: str, configuration: Configuration, now: datetime, notice: bool = True
) -> SelectionResult:
    """Return whether the configuration selects the event for this VM.

    ``now`` is an aware time, best by the server's clock. ``notice`` applies minimum_notice, as at the
    beginning of a preparation.
    """
    if not affects(event, own_name):
        return SelectionResult(AFFECTS, f"the event does not affect this VM ({own_name})")
    if not any(selection.heeds(event.event_type) for selection in configuration.selections):
        return SelectionResult(TYPES, f"types does not name {event.event_type!r}, which only advises")
    for selection in configuration.selections:
        excluded = selection.excluded_by(event)
        if excluded is not None:
            code, value = excluded
            allowed = ", ".join(getattr(selection, code))
            return SelectionResult(code, f"{code} excludes {value!r}; it has {allowed}")
    left = event.seconds_left(now)
    if notice and left < configuration.minimum_notice:
        return SelectionResult(
            MINIMUM_NOTICE,
            f"{left:.0f} seconds are left until NotBefore; minimum_notice is {configuration.minimum_notice:g}",
        )
    return SelectionResult()
