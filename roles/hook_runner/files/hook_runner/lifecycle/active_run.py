# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A hook run that has not ended: its event, its limit, and why the daemon ends it early."""

from __future__ import annotations

from typing import NamedTuple

from hook_runner.lifecycle.claims import Claim
from hook_runner.records import Cause, EventRecord, HookRun


class Ending(NamedTuple):
    """How a run that the daemon ends is recorded, unless the hook succeeds in the meantime.

    `state` is one of the states of a run, `reason` the cause as a sentence.
    """

    state: str
    cause: Cause
    reason: str


class ActiveRun:
    """One hook run that has not ended.

    Attributes:
        record: the event that it was started for.
        step: the run in the record.
        limit: monotonic seconds at which its time-out ends; None while the server's clock is
            unknown, for a run that an earlier daemon started.
        ending: how it is recorded once the daemon has requested its end; None before that.
        claims: the claims of more urgent events, by the number of their records.
    """

    __slots__ = ("claims", "ending", "limit", "record", "step")

    def __init__(self, record: EventRecord, step: HookRun, limit: float | None) -> None:
        self.record = record
        self.step = step
        self.limit = limit
        self.ending: Ending | None = None
        self.claims: dict[int, Claim] = {}
