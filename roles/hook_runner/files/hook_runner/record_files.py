# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The files of records: one for each event, `open/ID.json`, which becomes `history/ID.json` when the daemon is done.

They are JSON in ASCII, which also holds texts with surrogates: JSON of IMDS and file names may have these.
"""

from __future__ import annotations

import json
import os
import stat
from datetime import datetime
from typing import Any, Iterable, Mapping, NamedTuple

from azure_scheduled_events import durable_file
from azure_scheduled_events.document import ScheduledEvent
from hook_runner.permissions import trusted_owners
from hook_runner.records import STAGES, STEP_STATES, Cause, EventRecord, HookRun, TimelineEntry

OPEN, HISTORY = "open", "history"
# a file of another version cannot be read
VERSION = 1
# the next process finds the other values out itself
_RECORD = frozenset(EventRecord.__slots__) - {"attempt", "is_missing", "on_hold", "sighting", "waiting_for"}
_STEP = frozenset(HookRun.__slots__)
_TIMES = ("first_seen", "gone_at", "closed_at", "started_at", "ended_at")


class Stored(NamedTuple):
    """The content of records' files, newest first, and a sentence for each file that cannot be read."""

    records: list[dict[str, Any]]
    unreadable: list[str]


def stored(directory: str, most: int | None = None) -> Stored:
    """Return the newest records, also while a daemon writes them; ``most``: how many, or all of them.

    Raises:
        FileNotFoundError: there is no such directory.
        OSError: it cannot be read.
    """
    os.listdir(directory)
    found, unreadable = {}, []
    # in this order: a record that moves meanwhile is found in the history
    for folder in (OPEN, HISTORY):
        for number in numbers(os.path.join(directory, folder))[::-1][:most]:
            try:
                found[number] = read(os.path.join(directory, name_of(folder, number)))
            except FileNotFoundError:
                pass  # it has moved, or was the oldest one
            except (OSError, ValueError) as error:
                unreadable.append(f"record {number} in {directory} cannot be read: {error}")
    return Stored([found[number] for number in sorted(found, reverse=True)[:most]], unreadable)


def name_of(folder: str, number: int) -> str:
    """Return the name of a record's file below the directory; ``folder``: OPEN or HISTORY."""
    return f"{folder}/{number}.json"


def numbers(path: str) -> list[int]:
    """Return the numbers of the records in a folder, oldest first; none if it does not exist. Raises OSError."""
    try:
        stems = [name[: -len(".json")] for name in os.listdir(path) if name.endswith(".json")]
    except FileNotFoundError:
        return []
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def read(path: str) -> dict[str, Any]:
    """Return the content of a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is damaged, of another version, not a file, or does not belong to a trusted user.
    """
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is not a regular file")
    if found.st_uid not in trusted_owners():
        raise ValueError(f"it belongs to user {found.st_uid}")
    data = durable_file.read_json(path)
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    if data.get("version") != VERSION:
        raise ValueError(f"it has version {data.get('version')!r}, and this program knows version {VERSION} only")
    return data


def write(path: str, data: Mapping[str, Any]) -> None:
    """Replace a file as a whole; only this user may read it. Raises OSError."""
    durable_file.write(path, json.dumps({"version": VERSION, **data}).encode("ascii"))


def to_data(record: EventRecord) -> dict[str, Any]:
    """Return a record as JSON values."""
    return {
        **_values(record, _RECORD),
        "event": record.event.to_json(),
        "steps": [_values(step, _STEP) for step in record.steps],
        "timeline": [[entry.at.isoformat(), entry.what, entry.detail] for entry in record.timeline],
    }


def from_data(data: Mapping[str, Any]) -> EventRecord:
    """Return the record of `to_data`. Raises ValueError."""
    try:
        event = ScheduledEvent.from_json(data["event"])
        if not isinstance(event.event_type, str) or not isinstance(event.status, str):
            raise ValueError("type or status of the event is not a text")
        record = EventRecord(0, 1, event, _time(data["first_seen"]))
        _take(record, _RECORD - {"event", "steps", "timeline"}, data)
        for each in data["steps"]:
            step = HookRun(0, "", "", 0, "", None)
            _take(step, _STEP, each)
            if step.stage not in STAGES or step.state not in STEP_STATES:
                raise ValueError(f"unknown stage or state of a hook: {step.stage!r}, {step.state!r}")
            record.steps.append(step)
        for at, what, detail in data["timeline"]:
            record.timeline.append(TimelineEntry(_time(at), str(what), str(detail)))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"it is not a record: {error!r}") from None
    return record


def _values(source: object, names: Iterable[str]) -> dict[str, Any]:
    values = {name: getattr(source, name) for name in sorted(names)}
    return {name: value.isoformat() if name in _TIMES and value else value for name, value in values.items()}


def _take(target: object, names: Iterable[str], data: Mapping[str, Any]) -> None:
    """Set the values of `_values`; each has to be of the type that the target has now."""
    for name in names:
        value, now = data[name], getattr(target, name)
        if name in _TIMES:
            value = None if value is None else _time(value)
        elif name == "cause":
            value = Cause(value)
        elif type(value) is not type(now) and not (name == "exit_status" and isinstance(value, int)):
            raise ValueError(f"{name} has a wrong type: {value!r}")
        setattr(target, name, value)


def _time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"the time {text} has no zone")
    return at
