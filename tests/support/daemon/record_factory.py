# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Values for the tests of the records: events, hook runs, and a maintenance with one of each."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from azure_scheduled_events.document import ScheduledEvent
from hook_runner.maintenance.record import Entry, EventRecord, HookRun, Maintenance
from hook_runner.records import OK, RUNNING

NOON = datetime(2026, 11, 21, 12, 0, 0, 123456, tzinfo=timezone.utc)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def make_event(event_id: str = "E-1", **fields: Any) -> ScheduledEvent:
    event = ScheduledEvent(
        event_id=event_id,
        event_type="Freeze",
        status="Scheduled",
        resources=("web-0", "web-1"),
        resource_type="VirtualMachine",
        not_before=datetime(2026, 11, 21, 12, 15, tzinfo=timezone.utc),
        description="Host maintenance",
        source="Platform",
        duration=timedelta(seconds=9),
    )
    return event._replace(**fields)


def make_record(number: int = 2, event_id: str = "E-1", **fields: Any) -> EventRecord:
    event = make_event(event_id, **fields)
    return EventRecord(event, NOON, event.event_type, event.status, number, NOON)


def make_run(number: int, event: int = 2, title: str = "prepare/10-app", state: str = RUNNING) -> HookRun:
    stage, name = title.split("/")
    run = HookRun(number, stage, name, event, "Freeze", 1, after(1), after(301), False, "boot-1", state)
    if state != RUNNING:
        run.ended, run.exit_status, run.output = after(3.5), int(state != OK), "done\n"
    return run


def make_maintenance(number: int = 1, is_open: bool = True) -> Maintenance:
    """Return a maintenance with an event and a run, whose numbers follow its own."""
    record = make_record(number + 1, f"E-{number}")
    run = make_run(number + 2, record.number, state=RUNNING if is_open else OK)
    entry = Entry(NOON, "taken-up", record.event.event_id, "Freeze of web-0, web-1")
    maintenance = Maintenance(number, NOON, [record], [run], [entry])
    if not is_open:
        record.gone_at, maintenance.ended = after(60), after(61)
    return maintenance
