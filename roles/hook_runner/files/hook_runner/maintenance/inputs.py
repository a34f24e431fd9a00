# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The input of a hook run: one event as EVENT_* variables, and as JSON on stdin together with all events."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from azure_scheduled_events.hook_input import HookInput
from azure_scheduled_events.outcome import UNKNOWN
from azure_scheduled_events.timestamps import as_utc_text
from hook_runner.maintenance.record import EventRecord, HookRun, Maintenance
from hook_runner.records import ACCEPTED


def input_of(run: HookRun, maintenance: Maintenance, own_name: str, now: datetime) -> tuple[bytes, dict[str, str]]:
    """Return the JSON object for stdin, and the variables; the event is empty where the events are unknown."""
    record = maintenance.event(run.event)
    given = HookInput(
        {} if record is None else record.event.as_dict(),
        run.stage,
        own_name,
        UNKNOWN if record is None else record.outcome,
        "" if record is None else as_utc_text(record.first_seen),
        None if record is None else record.event.seconds_left(now),
        run.seconds,
    )
    approved = record is not None and record.approval == ACCEPTED
    return given.as_json(approved=approved, events=[_event(each) for each in maintenance.events]), given.variables()


def _event(record: EventRecord) -> dict[str, Any]:
    return {**record.event.as_dict(), "outcome": record.outcome, "first_seen": as_utc_text(record.first_seen)}
