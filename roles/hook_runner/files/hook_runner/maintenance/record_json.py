# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The records as JSON values, without loss."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from operator import index as integer
from typing import Any, Callable, Mapping, TypeVar

from azure_scheduled_events.document import ScheduledEvent
from hook_runner.maintenance.record import (
    ApprovalRequest,
    Entry,
    EventRecord,
    HookRun,
    Maintenance,
    Pause,
    State,
    Vm,
)
from hook_runner.records import Cause

_Value = TypeVar("_Value")


def to_json(value: Any) -> Any:
    """Return a value of the records, such as a Maintenance or a HookRun, as JSON values."""
    return _WRITE[type(value)](value) if type(value) in _WRITE else value


def from_json(kind: type[_Value], data: Any) -> _Value:
    """Return the value of this class that `to_json` stored.

    Raises:
        ValueError: a member is missing or unknown, or its value cannot be used; of an event, see `ScheduledEvent`.
    """
    make: Callable[..., _Value] = kind
    try:
        members = {**dict.fromkeys(data, _text), **_READ[kind]}
        return make(**{name: read(data[name]) for name, read in members.items()})
    except (TypeError, LookupError, AttributeError) as error:
        raise ValueError(f"not a stored {kind.__name__}: {type(error).__name__} {error}") from None


def _members_to_json(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: to_json(each) for name, each in members.items()}


def _text(data: Any) -> str:
    if not isinstance(data, str):
        raise TypeError(f"{data!r} is not a text")
    return data


def _texts(data: Any) -> tuple[str, ...]:
    return tuple(map(_text, data))


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text} has no time zone")  # it could not be compared with the time of now
    return found


def _or_none(read: Callable[[Any], _Value]) -> Callable[[Any], _Value | None]:
    return lambda data: None if data is None else read(data)


def _each(kind: type[_Value]) -> Callable[[Any], list[_Value]]:
    return lambda data: [from_json(kind, each) for each in data]


def _by_key(data: Any) -> dict[str, EventRecord]:
    return {record.key: record for record in _each(EventRecord)(data)}


# a value of any other type, also a Cause, is one of JSON
_WRITE: dict[type, Callable[[Any], Any]] = {
    ScheduledEvent: ScheduledEvent.as_dict,
    datetime: datetime.isoformat,
    frozenset: sorted,
    list: lambda values: [to_json(each) for each in values],
    # of events by key
    dict: lambda values: [to_json(each) for each in values.values()],
    **dict.fromkeys((State, Maintenance, EventRecord, HookRun), lambda value: _members_to_json(vars(value))),
    **dict.fromkeys((Entry, ApprovalRequest, Pause, Vm), lambda value: _members_to_json(value._asdict())),
}
# how the members of a class are read; any other member is a text
_READ: dict[type, Mapping[str, Callable[[Any], Any]]] = {
    State: {
        "pause": _or_none(partial(from_json, Pause)),
        "observed": _by_key,
        "past": _each(EventRecord),
        "vm": partial(from_json, Vm),
        "returned": _texts,
        "gone": _texts,
    },
    Vm: dict.fromkeys(Vm._fields, _text),
    Pause: {"since": _time, "until": _or_none(_time)},
    Maintenance: {
        "number": integer,
        "began": _time,
        "ended": _or_none(_time),
        "events": _each(EventRecord),
        "runs": _each(HookRun),
        "timeline": _each(Entry),
        "may_lack_events": bool,
        "retried_after": integer,
    },
    EventRecord: {
        "number": integer,
        "event": ScheduledEvent.from_json,
        "first_seen": _time,
        "taken_up_at": _or_none(_time),
        "gone_at": _or_none(_time),
        "requested": _or_none(partial(from_json, ApprovalRequest)),
    },
    ApprovalRequest: {"force": bool, "release_others": bool, "vms": frozenset},
    HookRun: {
        "number": integer,
        "event": integer,
        "attempt": integer,
        "began": _time,
        "limit": _time,
        "is_cut_short": bool,
        "may_be_ended": bool,
        "ended": _or_none(_time),
        "ending": Cause,
        "cause": Cause,
        "exit_status": _or_none(integer),
    },
    Entry: {"at": _time},
}
