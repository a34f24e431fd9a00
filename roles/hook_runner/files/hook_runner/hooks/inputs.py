# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The input of a hook: the event as JSON on stdin, and as EVENT_* variables.

The variables are printable, whatever text IMDS sends.
"""

from __future__ import annotations

import json
from datetime import datetime

from azure_scheduled_events.document import escape_surrogates
from azure_scheduled_events.printable import printable
from azure_scheduled_events.timestamps import as_utc_text
from hook_runner.records import ACCEPTED, EventRecord

MAX_VALUE = 8 * 1024
# the kernel takes at most 128 KiB for one variable
MAX_LIST = 32 * 1024


def event_json(record: EventRecord, stage: str, own_name: str, now: datetime, budget: float | None) -> bytes:
    """Return the event as one JSON object in ASCII, with escapes for all other characters.

    `now` is an aware time by the server's clock. `budget` is the seconds that the hook may take, or None.
    """
    fields = {
        **record.event.as_dict(),
        "stage": stage,
        "outcome": record.outcome,
        "resource_name": escape_surrogates(own_name),
        "seconds_left": int(record.event.seconds_left(now)),
        "first_seen": as_utc_text(record.first_seen),
        "life": record.occurrence,
        "approved": record.approval == ACCEPTED,
        "hook_seconds": None if budget is None else int(budget),
    }
    return json.dumps(fields).encode("ascii") + b"\n"


def event_environment(
    record: EventRecord, stage: str, own_name: str, now: datetime, budget: float | None
) -> dict[str, str]:
    """Return the same as variables; unknown values are empty."""
    event = record.event
    fields = {
        "EVENT_ID": event.event_id,
        "EVENT_TYPE": event.event_type,
        "EVENT_STATUS": event.status,
        "EVENT_SOURCE": event.source or "",
        "EVENT_RESOURCE_TYPE": event.resource_type or "",
        "EVENT_DESCRIPTION": event.description or "",
        "EVENT_NOT_BEFORE": "" if event.not_before is None else as_utc_text(event.not_before),
        "EVENT_SECONDS_LEFT": f"{int(event.seconds_left(now))}",
        "EVENT_DURATION": "" if event.duration is None else f"{int(event.duration.total_seconds())}",
        "EVENT_STAGE": stage,
        "EVENT_OUTCOME": record.outcome,
        "EVENT_RESOURCE": own_name,
        "EVENT_FIRST_SEEN": as_utc_text(record.first_seen),
        "HOOK_SECONDS": "" if budget is None else f"{int(budget)}",
    }
    cleaned = {name: truncate(printable(value), MAX_VALUE) for name, value in fields.items()}
    return {**cleaned, "EVENT_RESOURCES": truncate(" ".join(map(without_spaces, event.resources)), MAX_LIST)}


def without_spaces(name: str) -> str:
    """Return a resource name without white space, which separates names in a list; "?" for an empty name."""
    return "".join("?" if character.isspace() else character for character in printable(name)) or "?"


def truncate(text: str, most: int) -> str:
    """Return at most `most` bytes of a text; "..." replaces the end that was cut."""
    data = text.encode("utf-8")
    return text if len(data) <= most else data[: most - 3].decode("utf-8", "ignore") + "..."
