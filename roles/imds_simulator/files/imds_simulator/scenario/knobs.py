# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Knobs: behaviour that Azure does not document, as named values. The defaults are those of the reference.

A field of ``Knobs`` is a knob. Its metadata has the allowed values and the statement of
docs/reference/scheduled-events.md that it refers to.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ..api_versions import ADVICE, EVENT_TYPES
from ..suggestions import suggestion
from ..times import parse_duration

_NOTICE = MappingProxyType(
    {"Freeze": 900.0, "Reboot": 900.0, "Redeploy": 600.0, "Preempt": 30.0, "Terminate": 300.0, ADVICE: 3600.0}
)
_STARTED = MappingProxyType(
    {"Freeze": 600.0, "Reboot": 600.0, "Redeploy": 600.0, "Preempt": 30.0, "Terminate": 60.0, ADVICE: 0.0}
)
# all readers of JSON have whole numbers up to this one; Python refuses to write longer ones than its limit
MAX_NUMBER = 2**53 - 1


def _knob(kind: str, statement: str, meaning: str, choices: Sequence[Any] = ()) -> Mapping[str, Any]:
    return {"kind": kind, "statement": statement, "meaning": meaning, "choices": tuple(choices)}


@dataclass(frozen=True)
class Knobs:
    """All knobs with their values. Durations are simulated seconds."""

    # -- answers to an approval (reference 1.5)
    unknown_event_status: int = field(
        default=400,
        metadata=_knob(
            "choice", "1.5", "status for a POST whose ids are all unknown, finished or cancelled", (400, 200, 404)
        ),
    )
    partial_batch: str = field(
        default="reject",
        metadata=_knob(
            "choice",
            "1.5",
            "a POST that mixes valid and unknown ids: reject all, or apply the valid ones and answer 200",
            ("reject", "apply_valid"),
        ),
    )
    post_body: str = field(
        default="empty",
        metadata=_knob(
            "choice", "1.5", "body of the 200 answer to a POST: nothing, or the document", ("empty", "document")
        ),
    )
    approval_shortens: bool = field(
        default=True,
        metadata=_knob("switch", "2.2.7", "an approved event may start before NotBefore; off: never before NotBefore"),
    )
    approve_hold: float = field(
        default=0.0,
        metadata=_knob(
            "hold",
            "2.2.3",
            "how long other tenants on the same hardware hold an approved event, counted from its appearance; "
            "on: until released or NotBefore",
        ),
    )
    start_delay: float = field(
        default=1.0, metadata=_knob("seconds", "1.5", "time from approval (and release by other tenants) to Started")
    )
    approve_changes_incarnation: bool = field(
        default=False, metadata=_knob("switch", "2.5.8", "whether an approval by itself raises DocumentIncarnation")
    )

    # -- the HTTP contract (reference 1.1 to 1.4, 1.6, 1.7)
    xff_status: int = field(
        default=400, metadata=_knob("status", "1.2.5", "status for a request with an X-Forwarded-For header")
    )
    etag: bool = field(
        default=True, metadata=_knob("switch", "1.2.7", "send ETag and answer 304 to a matching If-None-Match")
    )
    type_gating: str = field(
        default="hide",
        metadata=_knob(
            "choice",
            "1.3.2",
            "events of a type that is newer than the requested api-version: hidden, or shown",
            ("hide", "show"),
        ),
    )
    extra_api_versions: tuple[str, ...] = field(
        default=(),
        metadata=_knob(
            "names", "1.3.3", "further api-versions of scheduledevents to accept; they answer like the newest"
        ),
    )
    unknown_version_status: int = field(
        default=400,
        metadata=_knob(
            "choice",
            "1.6.11",
            "status for an api-version that scheduledevents does not know; 404: without a list",
            (400, 404),
        ),
    )
    error_wording: str = field(
        default="new",
        metadata=_knob(
            "choice",
            "1.6",
            "the header and api-version errors: those of today, or those of 2022 and before",
            ("new", "old"),
        ),
    )
    rate_limit: int = field(
        default=5,
        metadata=_knob("count", "1.7.1", "requests per second (real time) and VM before 429; 0 or off: no limit"),
    )

    # -- the document (reference 2.3, 2.5, 3.1)
    not_before_format: str = field(
        default="rfc1123",
        metadata=_knob(
            "choice", "2.3.3", "NotBefore as RFC 1123 (Mon, 19 Sep 2016 18:29:47 GMT) or ISO 8601", ("rfc1123", "iso")
        ),
    )
    incarnation_step: int = field(
        default=1, metadata=_knob("count", "2.5.3", "how much one visible change raises DocumentIncarnation")
    )
    incarnation_reset: bool = field(
        default=True,
        metadata=_knob(
            "switch", "2.5.5", "DocumentIncarnation restarts after the service was disabled and enabled again"
        ),
    )
    zone_split: bool = field(
        default=False,
        metadata=_knob("switch", "3.1.4", "members of a group see, and enable, only their own zone"),
    )
    placement_group_split: bool = field(
        default=True,
        metadata=_knob("switch", "3.1.8", "members of a scale set see, and enable, only their own placement group"),
    )

    # -- times and types of events (reference 2.1, 2.4, 5.8)
    notice_overrides: Mapping[str, float] = field(
        default_factory=lambda: _NOTICE,
        metadata=_knob(
            "by_type", "2.4", "time from appearance to NotBefore per event type; other types keep their default"
        ),
    )
    started_duration: Mapping[str, float] = field(
        default_factory=lambda: _STARTED,
        metadata=_knob(
            "by_type", "2.4.6", "time from Started to removal per event type; other types keep their default"
        ),
    )
    hardware_failure_type: str = field(
        default="Reboot",
        metadata=_knob(
            "choice", "2.1 (4a)", "EventType of an event that a hardware failure starts", ("Reboot", "Redeploy")
        ),
    )

    # -- enabling (reference 4.1)
    enable_delay: float = field(
        default=0.0, metadata=_knob("seconds", "4.1.2", "delay of the first answer (Azure: up to 2m)")
    )
    empty_body_until_enabled: bool = field(
        default=False,
        metadata=_knob(
            "switch",
            "1.4.13",
            "during enable_delay answer 200 with an empty body immediately instead of a delayed answer",
        ),
    )
    events_delay: float = field(
        default=0.0,
        metadata=_knob(
            "seconds", "4.1.2", "time after enabling in which the Events list stays empty (Azure: up to 5m)"
        ),
    )
    idle_disable: float = field(
        default=86400.0,
        metadata=_knob(
            "seconds", "4.1.3", "time without requests after which the service is disabled again; 0 or off: never"
        ),
    )

    # -- the control plane (reference 5.11, 5.12)
    arm_token: str = field(
        default="",
        metadata=_knob(
            "token", "5.12.2", "bearer token that an acknowledge has to have; empty: that of --control-token, else any"
        ),
    )
    arm_stable_version: bool = field(
        default=True,
        metadata=_knob("switch", "5.12.7", "api-version 2025-11-01 of an acknowledge is known; off: only the preview"),
    )


# a knob that was removed -> the statement of docs/reference/scheduled-events.md that has the behaviour
_REMOVED: Mapping[str, str] = MappingProxyType(
    {
        "started_event_status": "1.5.4",
        "duplicate_ids": "1.5.7",
        "id_case": "1.5.13",
        "max_body": "1.5.20",
        "approval_needed": "2.2.4",
        "trailing_slash": "1.1.5",
        "metadata_value": "1.2.4",
        "newest_versions": "1.6.2",
        "event_order": "1.4.12",
        "rate_limit_scope": "1.7.3",
        "rate_limit_counts": "1.7.5",
        "started_not_before": "2.3.5",
        "incarnation_start": "2.5.2",
        "terminate_source": "5.8",
        "terminate_waits_for": "2.2.8",
        "disabled_service": "4.1.4",
        "acknowledge_started_status": "5.12.6",
        "notification_type": "5.11.4",
        "notification_ids": "5.11.3",
        "notification_not_before": "5.11.6",
    }
)


class KnobError(ValueError):
    """A knob does not exist, or cannot have the value."""


def knob_fields() -> Mapping[str, dataclasses.Field[Any]]:
    """Return name -> dataclass field of every knob, in the order of the documentation."""
    return {each.name: each for each in dataclasses.fields(Knobs)}


def change_knobs(knobs: Knobs, changes: Mapping[str, Any]) -> Knobs:
    """Return ``knobs`` with ``changes``: name -> value as in a scenario file.

    Raises:
        KnobError: a knob does not exist, or cannot have the value.
    """
    fields = knob_fields()
    values = {}
    for name, value in changes.items():
        if name in _REMOVED:
            raise KnobError(
                f"the knob {name} was removed; leave it out, and see {_REMOVED[name]} "
                "in docs/reference/scheduled-events.md for the behaviour"
            )
        if name not in fields:
            hint = suggestion(name, fields) or "; --list-knobs lists them"
            raise KnobError(f"there is no knob {name!r}{hint}")
        values[name] = _parse_knob(fields[name], value, getattr(knobs, name))
    return dataclasses.replace(knobs, **values)


def describe_knobs(knobs: Knobs) -> dict[str, Any]:
    """Return name -> present value for JSON; "on" is a hold without end."""
    return {name: _to_json(getattr(knobs, name)) for name in knob_fields()}


def _to_json(value: Any) -> Any:
    if isinstance(value, float):
        return "on" if math.isinf(value) else value
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def _parse_knob(knob: dataclasses.Field[Any], value: Any, present: Any) -> Any:
    kind = knob.metadata["kind"]
    try:
        if kind == "choice":
            return _choice(value, knob.metadata["choices"])
        if kind == "by_type":
            return _by_type(value, present)
        return _PARSERS[kind](value)
    except ValueError as error:
        raise KnobError(f"knob {knob.name}: {error}") from None


def _choice(value: Any, choices: Sequence[Any]) -> Any:
    for choice in choices:
        # the command line has only text: 400 and "400" are equal
        if str(value).lower() == str(choice).lower() and not isinstance(value, bool):
            return choice
    raise ValueError(f"{value!r} is not one of {', '.join(map(str, choices))}")


def _switch(value: Any) -> bool:
    values = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in values:
        return values[value.lower()]
    raise ValueError(f"{value!r} is not on or off")


def _count(value: Any) -> int:
    if value is False or value == "off":
        return 0
    count = int(value) if isinstance(value, str) and value.isdigit() else value
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MAX_NUMBER:
        raise ValueError(f"{value!r} is not a whole number from 0 to {MAX_NUMBER}")
    return count


def _status(value: Any) -> int:
    if not 400 <= _count(value) <= 599:
        raise ValueError(f"{value!r} is not an error status from 400 to 599")
    return int(value)


def _seconds(value: Any) -> float:
    return 0.0 if value is False or value == "off" else parse_duration(value)


def _hold(value: Any) -> float:
    return math.inf if value is True or value == "on" else _seconds(value)


def _by_type(value: Any, present: Mapping[str, float]) -> Mapping[str, float]:
    """Parse a mapping, or ``Freeze:5m,Reboot:1m`` from the command line."""
    if isinstance(value, str):
        value = dict(part.partition(":")[::2] for part in value.split(","))
    if not isinstance(value, Mapping):
        raise ValueError(f"{value!r} is not a mapping of event type to duration")
    for name in value:
        if name not in EVENT_TYPES:
            raise ValueError(f"{name!r} is not one of {', '.join(EVENT_TYPES)}")
    return MappingProxyType({**present, **{name: parse_duration(each) for name, each in value.items()}})


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [part for part in value.split(",") if part]
    if not isinstance(value, (list, tuple)) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"{value!r} is not a list of names")
    return tuple(value)


def _token(value: Any) -> str:
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError(f"{value!r} is not a token: ASCII characters without spaces")
    return value


_PARSERS = {
    "switch": _switch,
    "count": _count,
    "status": _status,
    "seconds": _seconds,
    "hold": _hold,
    "names": _names,
    "token": _token,
}
