# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Whether this minion prepares for an event, by its own selection. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Iterable, NamedTuple

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.identity import affects, is_same_vm

from .configuration import Configuration

# why an event is not selected: the key of the configuration that leaves it out
AFFECTS = "affects"
TYPES, SOURCES, STATUSES, MINIMUM_NOTICE = "types", "sources", "statuses", "minimum_notice"


class SelectionResult(NamedTuple):
    """Whether an event is selected: ``code`` is "" if it is, else the key that leaves it out; ``reason`` is a sentence."""

    code: str = ""
    reason: str = ""

    @property
    def selected(self) -> bool:
        return self.code == ""


def evaluate(
    event: ScheduledEvent, own_name: str, configuration: Configuration, now: datetime, notice: bool = True
) -> SelectionResult:
    """Whether the configuration selects the event for this VM.

    now: aware, best by the server's clock.
    notice: whether minimum_notice counts; it does when a preparation begins.
    """
    if not affects(event, own_name):
        return SelectionResult(AFFECTS, f"the event does not affect this VM ({own_name})")
    for selection in configuration.selections:
        for code, words, value in (
            (TYPES, selection.types, event.event_type),
            (SOURCES, selection.sources, event.source or ""),
            (STATUSES, selection.statuses, event.status),
        ):
            if words is not None and value.casefold() not in {word.casefold() for word in words}:
                return SelectionResult(code, f"{code} leaves {value!r} out; it has {', '.join(words)}")
    left = event.seconds_left(now)
    if notice and left < configuration.minimum_notice:
        return SelectionResult(
            MINIMUM_NOTICE,
            f"{left:.0f} seconds are left until NotBefore; minimum_notice is {configuration.minimum_notice:g}",
        )
    return SelectionResult()


def not_released(event: ScheduledEvent, names: Iterable[str]) -> list[str]:
    """The VMs that an approval of the event would release although they are none of these names."""
    listed = list(names)
    return [resource for resource in event.resources if not any(is_same_vm(resource, name) for name in listed)]
