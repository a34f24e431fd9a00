# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The input of a hook: the record of its event as JSON on stdin, and as EVENT_* variables."""

from __future__ import annotations

from datetime import datetime

from azure_scheduled_events.hook_input import HookInput
from azure_scheduled_events.timestamps import as_utc_text
from hook_runner.records import ACCEPTED, EventRecord


def input_of(
    record: EventRecord, stage: str, own_name: str, now: datetime, budget: float | None
) -> tuple[bytes, dict[str, str]]:
    """Return the JSON object for stdin, and the variables.

    `now` is an aware time by the server's clock. `budget` is the seconds that the hook may take, or None.
    """
    given = HookInput(
        record.event.as_dict(),
        stage,
        own_name,
        record.outcome,
        as_utc_text(record.first_seen),
        record.event.seconds_left(now),
        budget,
    )
    return given.as_json(life=record.occurrence, approved=record.approval == ACCEPTED), given.variables()
