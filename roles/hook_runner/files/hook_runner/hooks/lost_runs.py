# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hook runs that the daemon's records lack. Unit and input of a run say which hook it is, and for which event."""

from __future__ import annotations

import json
from typing import NamedTuple, Sequence

from hook_runner.records import RECOVER


class LostRun(NamedTuple):
    """A hook run that no record has.

    Attributes:
        number: of the run.
        stage, hook: stage and file name of the hook.
        began: monotonic seconds.
        key: identity of the event, as `EventRecord.key`.
        life: of the event, as `EventRecord.occurrence`.
    """

    number: int
    stage: str
    hook: str
    began: float
    key: str
    life: int


def read_lost_run(path: str, number: int, stage: str, hook: str, began: float) -> LostRun | None:
    """Return the run whose input is in this file; None if that cannot be read."""
    try:
        with open(path, encoding="ascii") as file:
            data = json.load(file)
        return LostRun(number, stage, hook, began, str(data["event_id"]).casefold(), int(data["life"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def usable(found: Sequence[LostRun], life: int, is_over: bool) -> list[LostRun]:
    """Return the runs whose effect still holds for an event, of all runs for its key, in the order of their start.

    Runs of an earlier occurrence do not count; `life` is the lowest occurrence that the event may have. An
    event that is listed although its recovery has begun is a new occurrence.
    """
    latest = max([run.life for run in found], default=0)
    if latest < life:
        return []
    of_latest = sorted(run for run in found if run.life == latest)
    if not is_over and any(run.stage == RECOVER for run in of_latest):
        return []
    return of_latest
