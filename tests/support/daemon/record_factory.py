# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Values for the tests of the records and the history: events, records, and everything that a record holds."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.outcome import COMPLETED
from hook_runner.records import ACCEPTED, OK, RUNNING, ApprovalAttempt, EventRecord, HookRun, TimelineEntry

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


def make_record(id: int, event_id: str = "E-1", **fields: Any) -> EventRecord:
    record = EventRecord(id, 1, make_event(event_id, **fields), NOON)
    record.affects_this_vm = True
    record.timeline.append(TimelineEntry(NOON, "appeared", "Freeze by Platform hits this VM"))
    return record


def add_step(
    record: EventRecord, id: int, stage: str = "prepare", hook: str = "10-app", state: str = RUNNING
) -> HookRun:
    step = HookRun(id, stage, hook, 1, state, after(1))
    step.event_type = record.event.event_type
    record.steps.append(step)
    record.timeline.append(TimelineEntry(after(1), "hook-started", f"{stage}/{hook}"))
    return step


def end_step(record: EventRecord, step: HookRun, output: str = "done\n", state: str = OK, exit_status: int = 0) -> None:
    step.state, step.output, step.exit_status, step.ended_at = state, output, exit_status, after(3.5)
    record.timeline.append(TimelineEntry(after(3.5), "hook-ended", f"{step.stage}/{step.hook}: {state}"))


def close_record(record: EventRecord) -> None:
    record.seen_started, record.outcome = True, COMPLETED
    record.approval, record.approval_reason, record.approval_attempts, record.approval_asked_by = (
        ACCEPTED,
        "rule 1",
        2,
        "root",
    )
    record.gone_at, record.closed_at = after(60), after(61)
    record.timeline.append(TimelineEntry(after(61), "closed", "recovered"))


def everything(record: EventRecord) -> dict[str, Any]:
    """All that a record holds now, for comparisons."""
    held = {name: getattr(record, name) for name in EventRecord.__slots__}
    held["steps"] = [{name: getattr(step, name) for name in HookRun.__slots__} for step in record.steps]
    held["timeline"] = list(record.timeline)
    held["attempt"] = {name: getattr(record.attempt, name) for name in ApprovalAttempt.__slots__}
    return held
