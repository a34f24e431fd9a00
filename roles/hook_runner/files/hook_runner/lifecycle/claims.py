# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""When a running hook of a less urgent event has to end, because a more urgent event needs the time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from azure_scheduled_events.hook_input import LATE_BUDGET
from hook_runner.hooks.discovery import Hook
from hook_runner.lifecycle.stage_plan import is_late, prepare_budget
from hook_runner.records import EventRecord


class Claim(NamedTuple):
    """A more urgent event that waits for a hook of another one.

    Attributes:
        record: the event that waits.
        end: aware UTC time at which the hook has to end for it.
        inherits: whether a success of the hook counts for the waiting event too.
    """

    record: EventRecord
    end: datetime
    inherits: bool


def end_of_claim(
    record: EventRecord, hook: Hook, margin: float, now: datetime, inherits: bool, before: Claim | None
) -> datetime:
    """Return when a running hook has to end for `hook` of a more urgent event.

    1. The event's time lasts until its preparation has to be over. If that is unknown, or NotBefore has passed,
       it is LATE_BUDGET seconds from now.
    2. A claim that the event has already (`before`) keeps its end if the event does not inherit the hook's
       success or the event's time is counted from now; only less time makes the end earlier.
    3. A hook whose success counts for that event (`inherits`) may use all of the event's time.
    4. Any other hook leaves half of it to `hook`: at least what `hook` needs, and at most its timeout.
    """
    budget = prepare_budget(record, margin, now)
    end = now + timedelta(seconds=max(0.0, LATE_BUDGET if budget is None else budget))
    if before is not None and (not inherits or budget is None or is_late(record, now)):
        return min(before.end, end)  # otherwise the end would move with each tick
    if inherits:
        return end
    half = max(hook.settings.needs, (end - now).total_seconds() / 2)
    return end - timedelta(seconds=min(hook.settings.timeout, half))
