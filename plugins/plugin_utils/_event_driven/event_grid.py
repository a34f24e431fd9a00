# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notifications of Azure Event Grid, in its own schema and as CloudEvents 1.0, become changes.

The values are untrusted. The documents of Azure spell the members and IDs in several ways; letter case does not count.
"""

from __future__ import annotations

import json
import typing as t

from ...module_utils.azure_scheduled_events.change_record import change_record
from ...module_utils.azure_scheduled_events.changes import APPEARED, GONE, STARTED
from ...module_utils.azure_scheduled_events.document import parse_document
from ...module_utils.azure_scheduled_events.outcome import reported_outcome
from .change import REPORTED_BY_EVENT_GRID, NotAChange, read

_TYPES = (
    "microsoft.resourcenotifications.maintenanceresources.scheduledeventemitted",
    "microsoft.maintenance/scheduledevents/write",
)
_KINDS = {"scheduled": APPEARED, "started": STARTED}
_IN_RESOURCE_ID = "/scheduledevents/"


def is_notification(data: t.Mapping[str, t.Any]) -> bool:
    """Return True if the data is a notification of a scheduled event in one of the two schemas."""
    members = _folded(data)
    kind = members.get("type") if "specversion" in members else members.get("eventtype")
    return isinstance(kind, str) and kind.casefold() in _TYPES


def read_notification(data: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the change of a notification; raise NotAChange if a member is missing or unusable.

    `is_notification` shows which data are a notification. "Scheduled" counts as appeared; only the history of the
    event can show that it is known.
    """
    members = _folded(data)
    cloud_event = "specversion" in members
    if cloud_event and not str(members["specversion"]).startswith("1."):
        raise NotAChange("specversion: not 1.0")
    info = _folded(_object(_folded(_object(members.get("data"), "data")).get("resourceinfo"), "data.resourceInfo"))
    properties = _folded(_object(info.get("properties"), "data.resourceInfo.properties"))
    resource_id = next((item for item in (info.get("id"), members.get("subject")) if _is_text(item)), None)
    delivery_id, time = members.get("id"), members.get("time" if cloud_event else "eventtime")
    if not _is_text(delivery_id):
        raise NotAChange("id: not a text")
    if not _is_text(time):
        raise NotAChange(f"{'time' if cloud_event else 'eventTime'}: not a text")
    event_id = properties.get("eventid") or _event_id_of(resource_id)
    entry = {name: properties.get(name.casefold()) for name in _MEMBERS}
    document = parse_document(json.dumps({"Events": [{**entry, "EventId": event_id}]}))
    if not document.events:
        raise NotAChange("data.resourceInfo.properties.EventId: not a text")
    if document.doubtful:
        raise NotAChange("data.resourceInfo.properties.Resources: not a list of names")
    event = document.events[0]
    outcome = reported_outcome(event.status)
    kind = GONE if outcome is not None else _KINDS.get(event.status.strip().casefold())
    if kind is None:
        raise NotAChange(f"data.resourceInfo.properties.EventStatus: unknown value {event.status[:60]!r}")
    return read(
        change_record(
            kind,
            event.as_dict(),
            str(delivery_id),
            str(time),
            REPORTED_BY_EVENT_GRID,
            outcome=outcome,
            resource_id=resource_id,
        )
    )


_MEMBERS = (
    "EventType",
    "EventStatus",
    "Resources",
    "ResourceType",
    "NotBefore",
    "Description",
    "EventSource",
    "DurationInSeconds",
)


def _event_id_of(resource_id: str | None) -> str | None:
    position = -1 if resource_id is None else resource_id.casefold().rfind(_IN_RESOURCE_ID)
    return None if resource_id is None or position < 0 else resource_id[position + len(_IN_RESOURCE_ID) :].strip("/")


def _object(value: t.Any, name: str) -> dict[str, t.Any]:
    if not isinstance(value, dict):
        raise NotAChange(f"{name}: not an object")
    return value


def _folded(value: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    return {str(name).casefold(): item for name, item in value.items()}


def _is_text(value: t.Any) -> bool:
    return isinstance(value, str) and bool(value.strip())
