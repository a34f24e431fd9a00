# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The record of one change of an event, which the rulebooks of Event-Driven Ansible read.

It needs the standard library only: the ready hook notify has a link to this file, and nothing else of the helper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

SCHEMA = "azure_imds.scheduled_events/change/1"


def change_record(
    kind: str,
    event: Mapping[str, Any],
    record_id: str,
    observed_at: str,
    reported_by: str,
    reporter: str = "",
    outcome: str | None = None,
    resource_id: str | None = None,
    other_events: Iterable[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the record as plain JSON values, with SCHEMA as its ``schema``.

    Args:
        kind: "appeared", "changed", "started" or "gone".
        event: the event as it is now, or as it was last; as ``ScheduledEvent.as_dict`` returns it.
        record_id: unique; the same if the delivery is repeated.
        observed_at: ISO 8601.
        reported_by: the program that reports the change.
        reporter: the VM that observed the change, or "".
        outcome: for "gone", one of OUTCOMES of the module outcome, else None.
        resource_id: the resource ID of the event in Azure, or None.
        other_events: further events that are not gone for the reporter, each in the form of ``event``.
    """
    return {
        "schema": SCHEMA,
        "id": record_id,
        "change": kind,
        "outcome": outcome,
        "event": dict(event),
        "observed_at": observed_at,
        "reporter": reporter,
        "reported_by": reported_by,
        "resource_id": resource_id,
        "other_events": [dict(each) for each in other_events],
    }
