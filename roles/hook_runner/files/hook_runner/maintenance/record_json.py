# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The records as JSON values, without loss."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Dict, Mapping

from azure_scheduled_events.document import ScheduledEvent
from hook_runner.maintenance.record import ApprovalRequest, Entry, EventRecord, HookRun, Maintenance, Pause, State
from hook_runner.records import Cause

Json = Dict[str, Any]


def maintenance_to_json(maintenance: Maintenance) -> Json:
    """Return a maintenance as JSON values; `maintenance_from_json` reads them back."""
    return {
        **vars(maintenance),
        "began": maintenance.began.isoformat(),
        "ended": _text(maintenance.ended),
        "events": [_event_to_json(record) for record in maintenance.events],
        "runs": [run_to_json(run) for run in maintenance.runs],
        "timeline": [{**entry._asdict(), "at": entry.at.isoformat()} for entry in maintenance.timeline],
    }


def maintenance_from_json(data: Mapping[str, Any]) -> Maintenance:
    """Return the maintenance that `maintenance_to_json` stored.

    Raises:
        ValueError: a member is missing or unknown, or its value cannot be used.
    """
    try:
        return Maintenance(
            **{
                **data,
                "began": datetime.fromisoformat(data["began"]),
                "ended": _time(data["ended"]),
                "events": [_event_from_json(each) for each in data["events"]],
                "runs": [run_from_json(each) for each in data["runs"]],
                "timeline": [Entry(**{**each, "at": datetime.fromisoformat(each["at"])}) for each in data["timeline"]],
            }
        )
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a stored maintenance: {type(error).__name__} {error}") from None


def state_to_json(state: State) -> Json:
    """Return the state as JSON values; `state_from_json` reads them back."""
    pause = state.pause
    return {
        "pause": pause and {**pause._asdict(), "since": pause.since.isoformat(), "until": _text(pause.until)},
        "observed": [_event_to_json(record) for record in state.observed.values()],
        "past": [_event_to_json(record) for record in state.past],
    }


def state_from_json(data: Mapping[str, Any]) -> State:
    """Return the state that `state_to_json` stored.

    Raises:
        ValueError: a member is missing, or its value cannot be used.
    """
    try:
        pause = data["pause"]
        if pause is not None:
            times = {"since": datetime.fromisoformat(pause["since"]), "until": _time(pause["until"])}
            pause = Pause(**{**pause, **times})
        observed = [_event_from_json(each) for each in data["observed"]]
        past = [_event_from_json(each) for each in data["past"]]
        return State(pause, {record.key: record for record in observed}, past)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a stored state: {type(error).__name__} {error}") from None


def run_to_json(run: HookRun) -> Json:
    """Return a hook run as JSON values, for the input file of its unit; `run_from_json` reads them back."""
    times = {"began": run.began.isoformat(), "limit": run.limit.isoformat(), "ended": _text(run.ended)}
    return {**vars(run), **times, "ending": run.ending.value, "cause": run.cause.value}


def run_from_json(data: Mapping[str, Any]) -> HookRun:
    """Return the hook run that `run_to_json` stored.

    Raises:
        ValueError: a member is missing or unknown, or its value cannot be used.
    """
    try:
        times = {"began": datetime.fromisoformat(data["began"]), "limit": datetime.fromisoformat(data["limit"])}
        causes = {"ending": Cause(data["ending"]), "cause": Cause(data["cause"])}
        return HookRun(**{**data, **times, **causes, "ended": _time(data["ended"])})
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a stored hook run: {type(error).__name__} {error}") from None


def _event_to_json(record: EventRecord) -> Json:
    asked = record.requested
    return {
        **vars(record),
        "event": record.event.to_json(),
        "first_seen": record.first_seen.isoformat(),
        "taken_up_at": _text(record.taken_up_at),
        "gone_at": _text(record.gone_at),
        "requested": asked and {**asked._asdict(), "vms": sorted(asked.vms)},
    }


def _event_from_json(data: Mapping[str, Any]) -> EventRecord:
    asked = data["requested"]
    return EventRecord(
        **{
            **data,
            "event": ScheduledEvent.from_json(data["event"]),
            "first_seen": datetime.fromisoformat(data["first_seen"]),
            "taken_up_at": _time(data["taken_up_at"]),
            "gone_at": _time(data["gone_at"]),
            "requested": asked and ApprovalRequest(**{**asked, "vms": frozenset(asked["vms"])}),
        }
    )


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
