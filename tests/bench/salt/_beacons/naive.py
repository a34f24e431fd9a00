# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A simple beacon: one blocking request per call, and one event for each new Azure event."""

from __future__ import annotations

from typing import Any

import requests

# Salt's loader puts it there
__context__: dict[str, Any]


def validate(config: Any) -> tuple[bool, str]:
    return True, "fine"


def beacon(config: list[dict[str, Any]]) -> list[dict[str, Any]]:
    endpoint = next(item["endpoint"] for item in config if "endpoint" in item)
    url = endpoint + "/metadata/scheduledevents?api-version=2020-07-01"
    told = __context__.setdefault("naive", set())  # pylint: disable=undefined-variable
    events = requests.get(url, headers={"Metadata": "true"}, timeout=10).json()["Events"]
    new = [event for event in events if event["EventId"] not in told]
    told.update(event["EventId"] for event in new)
    return [{"tag": "scheduled", "event_id": event["EventId"]} for event in new]
