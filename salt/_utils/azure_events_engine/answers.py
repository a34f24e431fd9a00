# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Parses and checks the answers of minions, field by field.

An invalid answer raises ``InvalidAnswer``, which concerns its minion alone.
"""

from __future__ import annotations

import math
from typing import Any, Mapping, NamedTuple

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.release import UNKNOWN_VALUES

VERSION = 1

SCHEDULED = "Scheduled"
STARTED = "Started"

PREPARED = "prepared"
PREPARING = "preparing"
PREPARE_FAILED = "prepare_failed"
RECOVERING = "recovering"
RECOVER_FAILED = "recover_failed"
RECORD_STATES = (PREPARED, PREPARING, PREPARE_FAILED, RECOVERING, RECOVER_FAILED)

# without those of test=True
OUTCOMES: Mapping[str, frozenset[str]] = {
    "prepare": frozenset(
        (
            "prepared",
            "already_prepared",
            "not_listed",
            "not_affected",
            "not_selected",
            "started",
            "no_steps",
            "failed",
            "unavailable",
            "busy",
        )
    ),
    "recover": frozenset(("recovered", "not_prepared", "still_listed", "no_steps", "failed", "unavailable", "busy")),
    "approve_prepared": frozenset(
        (
            "approved",
            "already_approved",
            "started",
            "not_listed",
            "not_prepared",
            "not_affected",
            "not_selected",
            "others_affected",
            "failed",
            "unavailable",
            *UNKNOWN_VALUES,
        )
    ),
}

# events of one minion that the engine keeps; a document of Azure has a few
MAX_EVENTS = 200
_MAX_LISTED = 10000
_MAX_RESOURCES = 5000
_MAX_NAMES = 50000
_MAX_RECORDS = 1000
_MAX_ID = 200
_MAX_NAME = 256
_MAX_TEXT = 500


class InvalidAnswer(Exception):
    """An answer that this version of the modules does not return; the text names the difference."""


class ListedEvent(NamedTuple):
    """An event as a minion's own IMDS lists it; ``readable`` says whether its Resources are."""

    event: ScheduledEvent
    readable: bool
    not_before: str
    selected: bool
    not_selected: str


class Record(NamedTuple):
    """An entry of a minion's own record of preparations; event_id "" is a preparation by hand.

    ``state`` is that for an event of the type ``event_type``.
    """

    event_id: str
    state: str
    this_boot: bool
    event_type: str


class Status(NamedTuple):
    """Answer of ``azure_events.status``.

    ``left_out`` counts the events and records whose IDs are too long or not printable.
    """

    resource_name: str
    available: bool
    reason: str
    complete: bool
    events: tuple[ListedEvent, ...]
    records: tuple[Record, ...]
    working: str | None
    left_out: int


class JobResult(NamedTuple):
    """Answer of ``azure_events.prepare``, ``recover`` and ``approve_prepared``.

    ``event_type`` is the type of the event that the minion read for the job, or "".
    """

    outcome: str
    reason: str
    event_type: str = ""


def tracked_event(
    event_id: str,
    event_type: str,
    status: str,
    resources: tuple[str, ...],
    resource_type: str | None = None,
    source: str | None = None,
) -> ScheduledEvent:
    """Return the event with the fields that the engine compares."""
    return ScheduledEvent(event_id, event_type, status, resources, resource_type, None, None, source, None)


def event_key(event_id: str) -> str:
    """Return the same key for all spellings of an event ID."""
    return event_id.casefold()


def is_event_id(value: Any) -> bool:
    """Return True if the value can be the ID of an event."""
    return isinstance(value, str) and bool(value.strip()) and len(value) <= _MAX_ID and value.isprintable()


def printable(text: str, longest: int = _MAX_TEXT) -> str:
    """Return the text on one line, without control characters, truncated to ``longest`` characters."""
    line = "".join(letter if letter.isprintable() else " " for letter in text[: 2 * longest])
    return line if len(line) <= longest else line[: longest - 3] + "..."


def parse_status(answer: Any) -> Status:
    """Return the checked answer of ``azure_events.status``; raise InvalidAnswer for others."""
    given = _of_this_version(answer)
    listed_items, records = _list(given, "events", _MAX_LISTED), _list(given, "records", _MAX_RECORDS)
    listed = {item.event.key: item for item in (_event(one) for one in listed_items if not _has_invalid_id(one))}
    if sum(len(item.event.resources) for item in listed.values()) > _MAX_NAMES:
        raise InvalidAnswer(f"the events have more than {_MAX_NAMES} names of VMs")
    return Status(
        resource_name=_name(given, "resource_name") if given.get("resource_name") is not None else "",
        available=_boolean(given, "available"),
        reason=_text(given, "reason"),
        complete=_boolean(given, "complete") and len(listed) <= MAX_EVENTS,
        events=tuple(listed.values())[:MAX_EVENTS],
        records=tuple(_record(one) for one in records if not _has_invalid_id(one)),
        working=event_key(_text(given, "working")) if given.get("working") is not None else None,
        left_out=sum(map(_has_invalid_id, [*listed_items, *records])),
    )


def parse_result(function: str, answer: Any, event_id: str) -> JobResult:
    """Return the checked answer of a function about an event; raise InvalidAnswer for others."""
    given = _of_this_version(answer)
    outcome = given.get("outcome")
    if not isinstance(outcome, str) or outcome not in OUTCOMES[function]:
        raise InvalidAnswer(f"outcome {_preview(outcome)} is not one of {function}")
    named = given.get("event_id")
    if not isinstance(named, str) or event_key(named) != event_key(event_id):
        raise InvalidAnswer(f"the answer is about event {_preview(named)}, not {event_id}")
    event = given.get("event")
    return JobResult(outcome, _text(given, "reason"), _text(event, "event_type") if isinstance(event, dict) else "")


def _of_this_version(answer: Any) -> dict[str, Any]:
    if isinstance(answer, str):
        raise InvalidAnswer(
            f"the answer is a text: {_preview(answer)}; synchronize the modules of the minion if it lacks them"
        )
    if not isinstance(answer, dict):
        raise InvalidAnswer(f"expected a dictionary, not {_preview(answer)}")
    version = answer.get("version")
    if isinstance(version, bool) or version != VERSION:
        raise InvalidAnswer(
            "answer of another version (%s, expected %d); synchronize the modules of minions and master"
            % (_preview(version), VERSION)
        )
    return answer


def _has_invalid_id(given: Any) -> bool:
    """Return True for an event or a record that the engine cannot handle.

    The minion is not at fault: it reports what IMDS lists.
    """
    event_id = given.get("event_id") if isinstance(given, dict) else None
    return isinstance(event_id, str) and event_id != "" and not is_event_id(event_id)


def _event(given: Any) -> ListedEvent:
    if not isinstance(given, dict) or not is_event_id(given.get("event_id")):
        raise InvalidAnswer(f"event without an event ID: {_preview(given)}")
    return ListedEvent(
        tracked_event(
            given["event_id"],
            _text(given, "event_type"),
            _text(given, "status"),
            _names(given, "resources"),
            _text(given, "resource_type") or None,
            _text(given, "source") or None,
        ),
        readable=_boolean(given, "readable"),
        not_before=_text(given, "not_before") if given.get("not_before") is not None else "",
        selected=_boolean(given, "selected"),
        not_selected=_text(given, "not_selected_because"),
    )


def _record(given: Any) -> Record:
    event_id = given.get("event_id") if isinstance(given, dict) else None
    if not isinstance(event_id, str) or not (event_id == "" or is_event_id(event_id)):
        raise InvalidAnswer(f"record without an event ID: {_preview(given)}")
    state = given.get("state")
    if state not in RECORD_STATES:
        raise InvalidAnswer(f"state {_preview(state)} of a record is unknown")
    return Record(event_id, state, _boolean(given, "this_boot"), _text(given, "event_type"))


def _list(given: dict[str, Any], key: str, most: int) -> list[Any]:
    found = given.get(key)
    if not isinstance(found, list):
        raise InvalidAnswer(f"{key}: expected a list, not {_preview(found)}")
    if len(found) > most:
        raise InvalidAnswer(f"{key}: {len(found)} entries are more than {most}")
    return found


def _names(given: dict[str, Any], key: str) -> tuple[str, ...]:
    """Return the names, on one line and with those truncated that are too long.

    A changed name is not the name of a minion's VM, and no minion approves for it.
    """
    found = _list(given, key, _MAX_RESOURCES)
    for name in found:
        if not isinstance(name, str) or not name:
            raise InvalidAnswer(f"{key}: {_preview(name)} is not the name of a VM")
    return tuple(printable(name, _MAX_NAME) for name in found)


def _name(given: dict[str, Any], key: str) -> str:
    name = given.get(key)
    if not isinstance(name, str) or not name.strip() or len(name) > _MAX_NAME or not name.isprintable():
        raise InvalidAnswer(f"{key}: {_preview(name)} is not the name of a VM")
    return name


def _boolean(given: dict[str, Any], key: str) -> bool:
    found = given.get(key)
    if not isinstance(found, bool):
        raise InvalidAnswer(f"{key}: expected true or false, not {_preview(found)}")
    return found


def _text(given: dict[str, Any], key: str) -> str:
    found = given.get(key, "")
    if found is None:
        return ""
    if not isinstance(found, str):
        raise InvalidAnswer(f"{key}: expected a text, not {_preview(found)}")
    return printable(found)


def _preview(value: Any) -> str:
    if isinstance(value, (list, dict)):
        return f"a {'list' if isinstance(value, list) else 'dictionary'} with {len(value)} entries"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return printable(repr(value)[:200], 60)
