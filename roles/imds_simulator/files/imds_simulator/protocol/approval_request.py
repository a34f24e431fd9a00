# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The body of a POST: the ids of approved events (docs/reference/scheduled-events.md 1.5)."""

from __future__ import annotations

import json
from typing import Any

# bytes
MAX_BODY = 65536


class MalformedApproval(ValueError):
    """The body is not a list of start requests; the text names the reason."""


def event_ids(body: bytes) -> list[str]:
    """Return the ids of ``{"StartRequests":[{"EventId":"..."}]}`` in order.

    Other members are ignored.

    Raises:
        MalformedApproval: the body is anything else.
    """
    if not body:
        raise MalformedApproval("The request body is empty")
    try:
        document: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise MalformedApproval("The request body is not valid JSON") from None
    if not isinstance(document, dict) or not isinstance(document.get("StartRequests"), list):
        raise MalformedApproval("The request body has no list StartRequests")
    if not document["StartRequests"]:
        raise MalformedApproval("StartRequests is empty")
    return [_event_id(request) for request in document["StartRequests"]]


def _event_id(request: Any) -> str:
    if not isinstance(request, dict) or not isinstance(request.get("EventId"), str) or not request["EventId"]:
        raise MalformedApproval("A start request has no EventId")
    event_id: str = request["EventId"]
    return event_id
