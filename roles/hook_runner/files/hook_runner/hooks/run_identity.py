# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The hook and event of a run folder, by which a daemon finds a run that no record has."""

from __future__ import annotations

import json
import os
from datetime import datetime
from typing import NamedTuple, Sequence

from hook_runner.records import RECOVER, STAGES

FILE = "about"


class RunIdentity(NamedTuple):
    """The hook and the event of a run.

    Attributes:
        key: identity of the event, as `EventRecord.key`.
        life: of the event, as `EventRecord.occurrence`.
        stage, hook: stage and file name of the hook.
        started_at: aware UTC time by the server's clock.
    """

    key: str
    life: int
    stage: str
    hook: str
    started_at: datetime


def as_bytes(identity: RunIdentity) -> bytes:
    """Return the content of FILE."""
    return json.dumps({**identity._asdict(), "started_at": identity.started_at.isoformat()}).encode("ascii")


def read_identity(folder: str) -> RunIdentity | None:
    """Return the identity of the run in this folder; None if it has no readable one."""
    try:
        with open(os.path.join(folder, FILE), encoding="ascii") as file:
            data = json.load(file)
        found = RunIdentity(
            str(data["key"]),
            int(data["life"]),
            data["stage"],
            str(data["hook"]),
            datetime.fromisoformat(data["started_at"]),
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return found if found.stage in STAGES and found.started_at.tzinfo is not None else None


def usable(found: Sequence[tuple[int, RunIdentity]], life: int, is_over: bool) -> list[tuple[int, RunIdentity]]:
    """Return the runs whose effect still holds for an event, of all runs for its key.

    Runs of an earlier occurrence do not count; `life` is the lowest occurrence that the event may have. An
    event that is listed although its recovery has begun is a new occurrence.
    """
    latest = max([identity.life for _number, identity in found], default=0)
    if latest < life:
        return []
    of_latest = [(number, identity) for number, identity in found if identity.life == latest]
    if not is_over and any(identity.stage == RECOVER for _number, identity in of_latest):
        return []
    return of_latest
