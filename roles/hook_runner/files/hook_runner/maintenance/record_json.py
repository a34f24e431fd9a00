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
        # NamedTuple wraps the texts of its annotations
        types = {name: str(getattr(hint, "__forward_arg__", hint)) for name, hint in kind.__annotations__.items()}
        if data.keys() != types.keys():
            raise LookupError(f"missing or unknown: {', '.join(sorted(data.keys() ^ types.keys()))}")
        return make(**{name: _READ[types[name]](value) for name, value in data.items()})
    except (TypeError, LookupError, AttributeError) as error:
        raise ValueError(f"not a stored {kind.__name__}: {type(error).__name__} {error}") from None


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
    **dict.fromkeys(
        (State, Maintenance, EventRecord, HookRun, Entry, ApprovalRequest, Pause, Vm),
        lambda value: {name: to_json(getattr(value, name)) for name in type(value).__annotations__},
    ),
}
# how a member is read, by the text of its annotation
_READ: Mapping[str, Callable[[Any], Any]] = {
    "str": _text,
    "bool": bool,
    "int": integer,
    "int | None": _or_none(integer),
    "datetime": _time,
    "datetime | None": _or_none(_time),
    "tuple[str, ...]": _texts,
    "frozenset[str]": frozenset,
    "Cause": Cause,
    "ScheduledEvent": ScheduledEvent.from_json,
    "Vm": partial(from_json, Vm),
    "Pause | None": _or_none(partial(from_json, Pause)),
    "ApprovalRequest | None": _or_none(partial(from_json, ApprovalRequest)),
    "list[Entry]": _each(Entry),
    "list[HookRun]": _each(HookRun),
    "list[EventRecord]": _each(EventRecord),
    "dict[str, EventRecord]": _by_key,
}
