# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Knobs: behaviour that Azure does not document, as named values. The defaults are those of the reference.

A key of ``Knobs`` is a knob; its meaning ends with the statement of docs/reference/scheduled-events.md.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from ..api_versions import ADVICE, EVENT_TYPES
from ..keys import Path, Problems, Type, json_schema, key, keys_of, list_of, read_values
from ..value_types import BOOLEAN, DURATION, HOLD, NAME, TOKEN, integer, one_of, switchable

_NOTICE = MappingProxyType(
    {"Freeze": 900.0, "Reboot": 900.0, "Redeploy": 600.0, "Preempt": 30.0, "Terminate": 300.0, ADVICE: 3600.0}
)
_STARTED = MappingProxyType(
    {"Freeze": 600.0, "Reboot": 600.0, "Redeploy": 600.0, "Preempt": 30.0, "Terminate": 60.0, ADVICE: 0.0}
)


_ByType = dataclasses.make_dataclass(
    "_ByType", [(name, float, key(DURATION, f"the time of a {name}", default=0.0)) for name in EVENT_TYPES]
)
# Freeze:5m,Reboot:1m on a command line
_BY_TYPE = Type(
    lambda value, path, problems: read_values(_ByType, value, path, problems),
    json_schema(_ByType),
    "TYPE:DURATION,TYPE:DURATION",
    lambda text: dict(part.partition(":")[::2] for part in text.split(",")),
)
_ERROR_STATUS = integer(400, 599, "an error status from 400 to 599")
_LIMIT = switchable(integer(0), {False: 0}, "a whole number from 0, or off")
_SECONDS = switchable(DURATION, {False: 0.0}, "a duration such as 30s or 2h, or off")
_VERSIONS = dataclasses.replace(
    list_of(NAME, what="a list of names"),
    from_text=lambda text: [each.strip() for each in text.split(",") if each.strip()],
)

# a knob that was removed -> the statement of docs/reference/scheduled-events.md that has the behaviour
_REMOVED = {
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


def knob(statement: str, type_: Type, default: Any, meaning: str) -> Any:
    """Declare a knob that refers to ``statement`` of docs/reference/scheduled-events.md."""
    return key(type_, f"{meaning} (reference {statement})", default=default)


@dataclass(frozen=True)
class Knobs:
    """All knobs with their values. Durations are simulated seconds."""

    KEYS_ARE_LISTED: ClassVar = "--list-knobs lists them"
    REMOVED_KEYS: ClassVar[Mapping[str, str]] = {
        name: f"the knob {name} was removed; leave it out, and see {statement} "
        "in docs/reference/scheduled-events.md for the behaviour"
        for name, statement in _REMOVED.items()
    }

    # -- answers to an approval (reference 1.5)
    unknown_event_status: int = knob(
        "1.5", one_of(400, 200, 404), 400, "status for a POST whose ids are all unknown, finished or cancelled"
    )
    partial_batch: str = knob(
        "1.5",
        one_of("reject", "apply_valid"),
        "reject",
        "a POST that mixes valid and unknown ids: reject all, or apply the valid ones and answer 200",
    )
    post_body: str = knob(
        "1.5", one_of("empty", "document"), "empty", "body of the 200 answer to a POST: nothing, or the document"
    )
    approval_shortens: bool = knob(
        "2.2.7", BOOLEAN, True, "an approved event may start before NotBefore; off: never before NotBefore"
    )
    approve_hold: float = knob(
        "2.2.3",
        HOLD,
        0.0,
        "how long other tenants on the same hardware hold an approved event, counted from its appearance; "
        "on: until released or NotBefore",
    )
    start_delay: float = knob("1.5", _SECONDS, 1.0, "time from approval (and release by other tenants) to Started")
    approve_changes_incarnation: bool = knob(
        "2.5.8", BOOLEAN, False, "whether an approval by itself raises DocumentIncarnation"
    )

    # -- the HTTP contract (reference 1.1 to 1.4, 1.6, 1.7)
    xff_status: int = knob("1.2.5", _ERROR_STATUS, 400, "status for a request with an X-Forwarded-For header")
    etag: bool = knob("1.2.7", BOOLEAN, True, "send ETag and answer 304 to a matching If-None-Match")
    type_gating: str = knob(
        "1.3.2",
        one_of("hide", "show"),
        "hide",
        "events of a type that is newer than the requested api-version: hidden, or shown",
    )
    extra_api_versions: tuple[str, ...] = knob(
        "1.3.3", _VERSIONS, (), "further api-versions of scheduledevents to accept; they answer like the newest"
    )
    unknown_version_status: int = knob(
        "1.6.11",
        one_of(400, 404),
        400,
        "status for an api-version that scheduledevents does not know; 404: without a list",
    )
    error_wording: str = knob(
        "1.6",
        one_of("new", "old"),
        "new",
        "the header and api-version errors: those of today, or those of 2022 and before",
    )
    rate_limit: int = knob(
        "1.7.1", _LIMIT, 5, "requests per second (real time) and VM; more are a line of the log; 0 or off: no limit"
    )
    strict: bool = knob("1.7.1", BOOLEAN, False, "answer 429 to requests above rate_limit")

    # -- the document (reference 2.3, 2.5, 3.1)
    not_before_format: str = knob(
        "2.3.3",
        one_of("rfc1123", "iso"),
        "rfc1123",
        "NotBefore as RFC 1123 (Mon, 19 Sep 2016 18:29:47 GMT) or ISO 8601",
    )
    incarnation_step: int = knob("2.5.3", integer(0), 1, "how much one visible change raises DocumentIncarnation")
    incarnation_reset: bool = knob(
        "2.5.5", BOOLEAN, True, "DocumentIncarnation restarts after the service was disabled and enabled again"
    )
    zone_split: bool = knob("3.1.4", BOOLEAN, False, "members of a group see, and enable, only their own zone")
    placement_group_split: bool = knob(
        "3.1.8", BOOLEAN, True, "members of a scale set see, and enable, only their own placement group"
    )

    # -- times and types of events (reference 2.1, 2.4, 5.8)
    notice_overrides: Mapping[str, float] = knob(
        "2.4", _BY_TYPE, _NOTICE, "time from appearance to NotBefore per event type; other types keep their default"
    )
    started_duration: Mapping[str, float] = knob(
        "2.4.6", _BY_TYPE, _STARTED, "time from Started to removal per event type; other types keep their default"
    )
    hardware_failure_type: str = knob(
        "2.1 case 4a", one_of("Reboot", "Redeploy"), "Reboot", "EventType of an event that a hardware failure starts"
    )

    # -- enabling (reference 4.1)
    enable_delay: float = knob("4.1.2", _SECONDS, 0.0, "delay of the first answer; Azure: up to 2m")
    empty_body_until_enabled: bool = knob(
        "1.4.13",
        BOOLEAN,
        False,
        "during enable_delay answer 200 with an empty body immediately instead of a delayed answer",
    )
    events_delay: float = knob(
        "4.1.2", _SECONDS, 0.0, "time after enabling in which the Events list stays empty; Azure: up to 5m"
    )
    idle_disable: float = knob(
        "4.1.3", _SECONDS, 86400.0, "time without requests after which the service is disabled again; 0 or off: never"
    )

    # -- the control plane (reference 5.11, 5.12)
    arm_token: str = knob(
        "5.12.2", TOKEN, "", "bearer token that an acknowledge has to have; empty: that of --control-token, else any"
    )
    arm_stable_version: bool = knob(
        "5.12.7", BOOLEAN, True, "api-version 2025-11-01 of an acknowledge is known; off: only the preview"
    )


def changed_knobs(knobs: Knobs, changes: Any, path: Path, problems: Problems) -> Knobs:
    """Return ``knobs`` with ``changes``: name -> value as in a scenario file, or as text.

    ``problems`` gets the knobs that do not exist or cannot have the value; these do not change.
    """
    keys = keys_of(Knobs)
    if isinstance(changes, Mapping):
        # the command line has only text: 400 and "400" are equal
        changes = {
            name: keys[name].type.from_text(value) if name in keys and isinstance(value, str) else value
            for name, value in changes.items()
        }
    values = read_values(Knobs, changes, path, problems) or {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            values[name] = MappingProxyType({**getattr(knobs, name), **value})
    return dataclasses.replace(knobs, **values)


def describe_knobs(knobs: Knobs) -> dict[str, Any]:
    """Return name -> present value for JSON; "on" is a hold without end."""
    return {name: _to_json(getattr(knobs, name)) for name in keys_of(Knobs)}


def _to_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return "on" if value == math.inf else value


KNOBS = Type(lambda value, path, problems: changed_knobs(Knobs(), value, path, problems), json_schema(Knobs))
