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


class Claims:
    """The claims on hooks that run, by the id of the step."""

    def __init__(self) -> None:
        self._by_step: dict[int, dict[int, Claim]] = {}

    def of(self, step_id: int) -> list[Claim]:
        """All claims on a hook."""
        return list(self._by_step.get(step_id, {}).values())

    def earlier(self, step_id: int, record: EventRecord) -> Claim | None:
        """The claim of this event, or None."""
        return self._by_step.get(step_id, {}).get(record.id)

    def put(self, step_id: int, claim: Claim) -> None:
        """Add a claim in place of an earlier one of the same event."""
        self._by_step.setdefault(step_id, {})[claim.record.id] = claim

    def take(self, step_id: int) -> list[Claim]:
        """Remove the claims on a hook that has ended, and return them."""
        return list(self._by_step.pop(step_id, {}).values())

    def drop(self, record: EventRecord) -> None:
        """The event does not wait any more."""
        for claims in self._by_step.values():
            claims.pop(record.id, None)


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
