# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What an event leaves to hooks that run for less urgent events, while it waits for them."""

from __future__ import annotations

from datetime import datetime, timedelta

from azure_scheduled_events.named_tuple import NamedTuple
from hook_runner.hooks.discovery import Hook
from hook_runner.lifecycle.stage_plan import Times, is_late, prepare_budget
from hook_runner.records import EventRecord


class Claim(NamedTuple):
    """A more urgent event waits for a hook that runs for another one.

    Attributes:
        record: the event that waits.
        end: when the hook has to have ended for it, aware and in UTC.
        inherits: whether a success of the hook is a success for the waiting event, too.
    """

    record: EventRecord
    end: datetime
    inherits: bool


def end_of_claim(
    record: EventRecord, hook: Hook, times: Times, now: datetime, inherits: bool, before: Claim | None
) -> datetime:
    """When a hook that runs has to have ended, so that `hook` of a more urgent event has its time.

    A hook whose success counts for that event may use all of its time. Any other gets half of it,
    and `hook` the other half.
    """
    budget = prepare_budget(record, times, now)
    end = now + timedelta(seconds=max(0.0, times.minimum if budget is None else budget))
    if before is not None and (not inherits or budget is None or is_late(record, now)):
        return min(before.end, end)  # else the end would move on with each look
    if inherits:
        return end
    half = max(hook.settings.needs, (end - now).total_seconds() / 2)
    return end - timedelta(seconds=min(hook.settings.timeout, half))
