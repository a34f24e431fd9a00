# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The record of a change for one stage of an event, for the rulebooks of Event-Driven Ansible."""

from __future__ import annotations

import hashlib
import json
import socket
from datetime import datetime, timezone
from typing import Any

from ready_hooks.core.hook import RECOVER
from ready_hooks.core.occurrences import Occurrence
from ready_hooks.hooks.notify.change_record import change_record

REPORTED_BY = "notify"
_AS_LISTED = ("event_id", "event_type", "status")
_OPTIONAL = ("resource_type", "not_before", "description", "source")


def stage_record(entry: Occurrence, now: float) -> dict[str, Any]:
    """Return the record; another attempt for the same stage has the same id.

    The entry of an event at its end has stage recover; `now` is in seconds since 1970.
    """
    event = entry.event
    shown = {
        **{name: getattr(event, name) for name in _AS_LISTED},
        "resources": event.resources.split(),
        **{name: getattr(event, name) or None for name in _OPTIONAL},
        "duration_seconds": event.duration,
    }
    reporter = event.resource or socket.gethostname()
    observed_at = datetime.fromtimestamp(now, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    content = json.dumps([reporter, entry.seen, event.stage, shown], sort_keys=True)
    record_id = hashlib.sha256(content.encode("ascii")).hexdigest()
    return change_record(_kind(entry), shown, record_id[:32], observed_at, REPORTED_BY, reporter, event.outcome or None)


def _kind(entry: Occurrence) -> str:
    if entry.event.stage == RECOVER:
        return "gone"
    return "started" if entry.reported else "appeared"
