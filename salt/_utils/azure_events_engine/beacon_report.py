# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The report of a beacon as the record of a change, which rulebooks of Event-Driven Ansible read."""

from __future__ import annotations

from typing import Any, Mapping

from azure_scheduled_events.change_record import change_record
from azure_scheduled_events.document import ScheduledEvent

_KINDS = {"scheduled": "appeared", "changed": "changed", "started": "started", "gone": "gone"}


def change_of(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the record of the change; None for a report that is not of a change.

    A report that is repeated has the same id. One whose list of VMs was too long names no VM.
    """
    kind, event_id, minion = _KINDS.get(str(report.get("change"))), report.get("event_id"), report.get("id")
    if kind is None or not event_id:
        return None
    event = {name: report.get(name) for name in ScheduledEvent._fields if name != "duration"}
    event.update(resources=report.get("resources", []), duration_seconds=report.get("duration_seconds"))
    return change_record(
        kind,
        event,
        record_id=f"{minion}/{event_id}/{report.get('sequence', 0)}/{report['change']}",
        observed_at=report.get("changed_at", ""),
        reported_by="salt",
        reporter=report.get("resource_name") or minion or "",
        outcome=report.get("outcome"),
    )
