# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The records as JSON values, without loss."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Callable, Mapping

from azure_scheduled_events.document import ScheduledEvent
from hook_runner.maintenance.record import ApprovalRequest, Entry, EventRecord, HookRun, Maintenance, Pause, State
from hook_runner.records import Cause


def to_json(value: Any) -> Any:
    """Return a value of the records, such as a Maintenance or a HookRun, as JSON values."""
    return _WRITE[type(value)](value) if type(value) in _WRITE else value


def _members_to_json(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: to_json(each) for name, each in members.items()}


# a value of any other type, also a Cause, is one of JSON
_WRITE: dict[type, Callable[[Any], Any]] = {
    ScheduledEvent: ScheduledEvent.to_json,
    datetime: datetime.isoformat,
    frozenset: sorted,
    list: lambda values: [to_json(each) for each in values],
    **dict.fromkeys((Maintenance, EventRecord, HookRun), lambda value: _members_to_json(vars(value))),
    **dict.fromkeys((Entry, ApprovalRequest, Pause), lambda value: _members_to_json(value._asdict())),
}


def state_to_json(state: State) -> dict[str, Any]:
    """Return the state as JSON values; `state_from_json` reads them back."""
    observed = list(state.observed.values())
    return {"pause": to_json(state.pause), "observed": to_json(observed), "past": to_json(state.past)}


def maintenance_from_json(data: Mapping[str, Any]) -> Maintenance:
    """Return the maintenance that `to_json` stored.

    Raises:
        ValueError: a member is missing or unknown, or its value cannot be used.
    """
    try:
        found = Maintenance(
            **{
                **data,
                "began": _time(data["began"]),
                "ended": _time_or_none(data["ended"]),
                "events": [_event_from_json(each) for each in data["events"]],
                "runs": [run_from_json(each) for each in data["runs"]],
                "timeline": [Entry(**{**each, "at": _time(each["at"])}) for each in data["timeline"]],
            }
        )
        if not isinstance(found.last_number, int):
            raise ValueError(f"{found.last_number!r} is not a number")
        return found
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a stored maintenance: {type(error).__name__} {error}") from None


def state_from_json(data: Mapping[str, Any]) -> State:
    """Return the state that `state_to_json` stored.

    Raises:
        ValueError: a member is missing, or its value cannot be used.
    """
    try:
        pause = data["pause"]
        if pause is not None:
            times = {"since": _time(pause["since"]), "until": _time_or_none(pause["until"])}
            pause = Pause(**{**pause, **times})
        observed = [_event_from_json(each) for each in data["observed"]]
        past = [_event_from_json(each) for each in data["past"]]
        return State(pause, {record.key: record for record in observed}, past)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a stored state: {type(error).__name__} {error}") from None


def run_from_json(data: Mapping[str, Any]) -> HookRun:
    """Return the hook run that `to_json` stored.

    Raises:
        ValueError: a member is missing or unknown, or its value cannot be used.
    """
    try:
        times = {"began": _time(data["began"]), "limit": _time(data["limit"]), "ended": _time_or_none(data["ended"])}
        causes = {"ending": Cause(data["ending"]), "cause": Cause(data["cause"])}
        return HookRun(**{**data, **times, **causes})
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a stored hook run: {type(error).__name__} {error}") from None


def _event_from_json(data: Mapping[str, Any]) -> EventRecord:
    asked = data["requested"]
    return EventRecord(
        **{
            **data,
            "event": ScheduledEvent.from_json(data["event"]),
            "first_seen": _time(data["first_seen"]),
            "taken_up_at": _time_or_none(data["taken_up_at"]),
            "gone_at": _time_or_none(data["gone_at"]),
            "requested": asked and ApprovalRequest(**{**asked, "vms": frozenset(asked["vms"])}),
        }
    )


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text} has no time zone")  # it could not be compared with the time of now
    return found


def _time_or_none(text: str | None) -> datetime | None:
    return None if text is None else _time(text)
