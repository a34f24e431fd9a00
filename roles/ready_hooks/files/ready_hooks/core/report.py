# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The values of an event that a hook reports: one name for each, in a log line as in a web hook."""

from __future__ import annotations

import socket
import time
from typing import Union

from ready_hooks.core.hook import EMERGENCY, PREPARE, RECOVER
from ready_hooks.core.occurrences import Occurrence

Value = Union[str, int, None]

NAMES = (
    *("event_id", "event_type", "status", "source", "description", "not_before", "first_seen"),
    *("resource", "resources", "stage", "outcome", "seconds_left", "expected_duration", "duration"),
    *("host", "time", "text"),
)
_MOST_CHARACTERS = 2000


def values(entry: Occurrence, now: float) -> dict[str, Value]:
    """Return the values by their NAMES; "" for each unknown text, None for each unknown number.

    The entry of an event at its end has stage recover; `now` is in seconds since 1970.
    """
    event = entry.event
    duration = None
    if event.stage == RECOVER:
        duration = max(0, round(now - (entry.seen if entry.started is None else entry.started)))
    found: dict[str, Value] = {name: getattr(event, name) for name in NAMES if name in event._fields}
    found["expected_duration"] = None if event.duration is None or event.duration < 0 else event.duration
    found["duration"] = duration
    found["host"] = socket.gethostname()
    found["time"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    found = {name: value[:_MOST_CHARACTERS] if isinstance(value, str) else value for name, value in found.items()}
    found["text"] = one_line(_sentence(found))
    return {name: found[name] for name in NAMES}


def one_line(text: str) -> str:
    """Return the text with a question mark for each control character."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _sentence(of: dict[str, Value]) -> str:
    subject = f"{of['resource'] or of['host']}: {of['event_type'] or 'an event'}"
    if of["stage"] == RECOVER:
        outcome = f" ({of['outcome']})" if of["outcome"] else ""
        return f"{subject} is over{outcome}, after {of['duration']} s"
    described = f": {of['description']}" if of["description"] else ""
    if of["stage"] != PREPARE:
        unprepared = " without a preparation" if of["stage"] == EMERGENCY else ""
        return f"{subject} has started{unprepared}{described}"
    not_before = f", not before {of['not_before']}" if of["not_before"] else ""
    left = f" (in {of['seconds_left']} s)" if of["seconds_left"] is not None else ""
    return f"{subject} is scheduled{not_before}{left}{described}"
