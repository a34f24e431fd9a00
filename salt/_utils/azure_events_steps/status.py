# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The status of this minion: events in IMDS, its record, and the event that a job works on."""

from __future__ import annotations

from typing import Any

from azure_scheduled_events.document import ScheduledEvent, escape_surrogates
from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.identity import affects

from . import lock
from .answers import VERSION
from .imds_observation import STATUS_IMDS_TIMEOUT, Observation, observe
from .minion import Minion, damaged
from .record import BY_HAND, Reason, Record
from .selection import evaluate


def status(minion: Minion, event_id: str | None = None, problem: str = "") -> dict[str, Any]:
    """Return the status; a failure of IMDS is part of it.

    ``event_id`` is that of the only event to show, whichever VM it affects; None shows all events that
    affect this VM. ``problem`` says why IMDS is not read; "" reads it.
    """
    answer: dict[str, Any] = {
        "version": VERSION,
        "resource_name": minion.configuration.resource_name,
        "available": False,
        "reason": problem,
        "complete": False,
        "incarnation": None,
        "events": [],
        "records": [],
        "working": lock.holder_of(minion.folder, lock.PREPARATION),
    }
    seen: Observation | None = None
    if not problem:
        try:
            seen = observe(minion.session(STATUS_IMDS_TIMEOUT))
        except ImdsError as error:
            answer["reason"] = str(error)
    if seen is not None:
        document, name = seen.document, seen.name
        asked = [
            event
            for event in document.events
            if (affects(event, name) if event_id is None else event.key == event_id.casefold())
        ]
        answer.update(
            resource_name=escape_surrogates(name),
            available=True,
            complete=document.complete,
            incarnation=document.incarnation,
            events=[_event(minion, event, seen) for event in asked],
        )
    try:
        found = minion.file.read()
    except (ValueError, OSError) as error:
        found = damaged(str(error))
    answer["records"] = [_record(minion, found, reason, seen) for reason in found.reasons] if found is not None else []
    return answer


def _event(minion: Minion, event: ScheduledEvent, seen: Observation) -> dict[str, Any]:
    chosen = evaluate(event, seen.name, minion.configuration, seen.now)
    return dict(event.as_dict(), selected=chosen.selected, not_selected_because=chosen.code)


def _record(minion: Minion, found: Record, reason: Reason, seen: Observation | None) -> dict[str, Any]:
    over: bool | None = False
    if reason.key != BY_HAND:
        known = seen is not None and (seen.document.complete or seen.document.find(reason.event_id) is not None)
        over = not seen.is_listed(reason.event_id) if seen is not None and known else None
    return {
        "event_id": escape_surrogates(reason.event_id),
        "state": found.phase,
        "boot": found.boot,
        "this_boot": found.boot != "" and found.boot == minion.boot,
        "prepared_at": found.prepared_at,
        "steps_done": found.steps_done,
        "why_not": found.why_not,
        "resources": [escape_surrogates(name) for name in reason.resources],
        "event_type": escape_surrogates(reason.event_type),
        "over": over,
    }
