# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The status of this minion: events in IMDS, its record, and the event that a job works on."""

from __future__ import annotations

from typing import Any, Mapping

from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.identity import affects
from azure_scheduled_events.tracking import Sighting

from . import lock
from .answers import VERSION
from .imds_observation import STATUS_IMDS_TIMEOUT, VmObservation, observe
from .minion import Minion
from .record import Reason, Record
from .selection import evaluate


def status(minion: Minion, event_id: str | None = None, problem: str = "") -> dict[str, Any]:
    """Return the status; a failure of IMDS is part of it.

    ``event_id`` is that of the only event to show, whichever VM it affects; None shows all events that
    affect this VM, or may affect it because their Resources are not readable. ``problem`` says why IMDS is
    not read; "" reads it.
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
    listed: Mapping[str, Sighting] = {}
    if not problem:
        try:
            seen = observe(minion.session(STATUS_IMDS_TIMEOUT))
            listed = seen.tracked.events
            asked = [
                sighting
                for key, sighting in listed.items()
                if (_may_affect(sighting, seen.name) if event_id is None else key == event_id.casefold())
            ]
            answer.update(
                resource_name=seen.name,
                available=True,
                complete=seen.tracked.document.complete,
                incarnation=seen.tracked.document.incarnation,
                events=[_event(minion, sighting, seen) for sighting in asked],
            )
        except ImdsError as error:
            answer["reason"] = str(error)
    found = minion.readable_record()
    if found is not None:
        answer["records"] = [_record(minion, found, reason, listed.get(reason.key)) for reason in found.reasons]
    return answer


def _may_affect(sighting: Sighting, name: str) -> bool:
    return affects(sighting.event, name) or not sighting.readable


def _event(minion: Minion, sighting: Sighting, seen: VmObservation) -> dict[str, Any]:
    chosen = evaluate(sighting.event, seen.name, minion.configuration, seen.now)
    shown = dict(sighting.event.as_dict(), readable=sighting.readable)
    return dict(shown, selected=chosen.selected, not_selected_because=chosen.code)


def _record(minion: Minion, found: Record, reason: Reason, sighting: Sighting | None) -> dict[str, Any]:
    if sighting is not None:
        # a preparation for an earlier type of the event may not count for it
        reason = reason._replace(event_type=sighting.event.event_type)
    return {
        "event_id": reason.event_id,
        "state": found.state_of(reason),
        "boot": found.boot,
        "this_boot": found.boot != "" and found.boot == minion.boot,
        "prepared_at": found.prepared_at,
        "steps_done": found.steps_done,
        "why_not": found.why_not,
        "resources": list(reason.resources),
        "event_type": reason.event_type,
        "over": reason.over,
    }
