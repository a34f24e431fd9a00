# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Notifications in the schemas of Event Grid and of CloudEvents 1.0 (docs/reference/scheduled-events.md 5.11)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ..api_versions import LATEST_EVENTS_VERSION
from ..model.events import SCHEDULED, STARTED, Occurrence
from ..scenario.groups import Vm
from ..scenario.notify import CLOUD_EVENTS
from ..times import http_date, iso
from .resource_ids import ResourceIds
from .responses import JSON_TYPE, compact

# the origin that Event Grid names in the handshake of CloudEvents
ORIGIN = "eventgrid.azure.net"

# kind of an occurrence -> status; that of a changed event is in the detail
_STATUSES = {"scheduled": SCHEDULED, "started": STARTED, "finished": "Completed", "cancelled": "Canceled"}
_EVENT_TYPE = "Microsoft.ResourceNotifications.MaintenanceResources.ScheduledEventEmitted"
_API_VERSION = "2024-07-01"
_CLOUD_EVENTS_TYPE = "application/cloudevents+json; charset=utf-8"


class WebHookRequest(NamedTuple):
    """A notification or the handshake before the first one; ``fields`` are those of a notification in the log."""

    headers: Mapping[str, str]
    body: bytes
    fields: Mapping[str, str] = MappingProxyType({})
    method: str = "POST"


def notification(
    occurrence: Occurrence, notification_id: str, schema: str, ids: ResourceIds, vms: Mapping[str, Vm]
) -> WebHookRequest | None:
    """Return the notification about ``occurrence``; None if Event Grid publishes none.

    ``schema`` is "eventgrid" or "cloudevents"; ``vms``: VM name -> VM.
    """
    content = occurrence.content
    status = occurrence.detail["status"] if occurrence.kind == "changed" else _STATUSES.get(occurrence.kind)
    # clients have never seen an event without NotBefore
    if content is None or status is None or not occurrence.not_before:
        return None
    place = ids.identity(content.resources[0])
    subject = ids.event_id(content.resources[0], occurrence.event_id)
    not_before = http_date(occurrence.not_before) if content.not_before is None else content.not_before
    names = [vms[name].resource_name for name in content.resources]
    members = content.members(occurrence.event_id.lower(), status, not_before, names)
    data = {
        "resourceInfo": {
            "id": subject,
            "name": occurrence.event_id.lower(),
            "type": "microsoft.maintenance/scheduledEvents",
            "location": place.location,
            "properties": {"ScheduledEventApiVersion": LATEST_EVENTS_VERSION, **members},
        },
        "apiVersion": _API_VERSION,
    }
    topic, moment = f"/subscriptions/{place.subscription}", iso(occurrence.moment)
    fields = {"event": occurrence.event, "id": occurrence.event_id, "status": status, "notification": notification_id}
    if schema == CLOUD_EVENTS:
        cloud_event = {
            "specversion": "1.0",
            "id": notification_id,
            "source": topic,
            "subject": subject,
            "type": _EVENT_TYPE,
            "time": moment,
            "data": data,
        }
        return WebHookRequest({"Content-Type": _CLOUD_EVENTS_TYPE}, compact(cloud_event), fields)
    grid_event = {
        "id": notification_id,
        "topic": topic,
        "subject": subject,
        "data": data,
        "eventType": _EVENT_TYPE,
        "dataVersion": "3.0",
        "metadataVersion": "1",
        "eventTime": moment,
    }
    headers = {"Content-Type": JSON_TYPE, "aeg-event-type": "Notification"}
    return WebHookRequest(headers, compact([grid_event]), fields)


def handshake(schema: str, code: str, moment: float, topic: str) -> WebHookRequest:
    """Return the validation request of ``schema``, which is "eventgrid" or "cloudevents".

    The answer has to repeat ``code``. ``moment`` is the time of the simulator's clock, ``topic`` the id of the topic.
    """
    if schema == CLOUD_EVENTS:
        return WebHookRequest({"WebHook-Request-Origin": ORIGIN, "WebHook-Request-Rate": "120"}, b"", method="OPTIONS")
    event = {
        "id": code,
        "topic": topic,
        "subject": "",
        "data": {"validationCode": code},
        "eventType": "Microsoft.EventGrid.SubscriptionValidationEvent",
        "eventTime": iso(moment),
        "metadataVersion": "1",
        "dataVersion": "1",
    }
    return WebHookRequest({"Content-Type": JSON_TYPE, "aeg-event-type": "SubscriptionValidation"}, compact([event]))


def is_validated(schema: str, code: str, status: int, headers: Mapping[str, str], answer: Any) -> bool:
    """Return True if the answer to the validation request permits notifications.

    ``schema`` is "eventgrid" or "cloudevents", ``code`` that of the request. ``headers`` are in any letter case;
    ``answer`` is the body as JSON data, None if it is not JSON.
    """
    if schema == CLOUD_EVENTS:
        return 200 <= status < 300 and headers.get("WebHook-Allowed-Origin", "").strip().lower() in ("*", ORIGIN)
    return status == 200 and isinstance(answer, dict) and answer.get("validationResponse") == code
