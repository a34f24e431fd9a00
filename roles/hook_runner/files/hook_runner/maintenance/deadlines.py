# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The time that an event leaves for its preparation, in aware times by the server's clock. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from azure_scheduled_events.hook_input import margin_within, preparation_seconds
from hook_runner.maintenance.record import EventRecord

# part of the time that is left, which the end of a hook may take at most
_END_DIVISOR = 4


def notice(record: EventRecord) -> float:
    """Return the seconds from the first observation to NotBefore; 0 without NotBefore."""
    not_before = record.event.not_before
    return 0.0 if not_before is None else max(0.0, (not_before - record.first_seen).total_seconds())


def seconds_to_prepare(record: EventRecord, now: datetime, margin: float) -> float | None:
    """Return the seconds that are left for a prepare hook; None if the event has started and no longer limits it."""
    if record.is_started:
        return None
    return preparation_seconds(record.event.seconds_left(now), notice(record), margin)


def deadline(record: EventRecord, now: datetime, margin: float) -> datetime | None:
    """Return when the preparation has to end; None if NotBefore has passed or is unknown."""
    not_before = record.event.not_before
    if not_before is None or now >= not_before:
        return None
    return not_before - timedelta(seconds=margin_within(notice(record), margin))


def others_end_at(record: EventRecord, end: datetime, kill_after: float, needs: float) -> datetime:
    """Return when the hook of another event gets TERM; ``end`` is the `deadline` of this event.

    Half of the time is left for the event then, or ``needs`` seconds, if that is more.
    """
    began = record.taken_up_at or record.first_seen
    seconds = max(0.0, (end - began).total_seconds())
    return end - timedelta(seconds=max(seconds / 2, needs) + min(kill_after, seconds / _END_DIVISOR))


def seconds_to_kill(record: EventRecord, now: datetime, kill_after: float) -> float:
    """Return the seconds between TERM and KILL: ``kill_after``, but only a part of the time that the event leaves."""
    left = record.event.seconds_left(now)
    return min(kill_after, left / _END_DIVISOR) if left > 0 else kill_after
