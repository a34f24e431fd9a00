# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The path of a request to the simulated Azure Resource Manager (docs/reference/scheduled-events.md 5.12)."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from .resource_ids import ResourceGroup

# the fixed parts in lower case; None: any value
_LIST = (
    *("subscriptions", None, "resourcegroups", None, "providers", "microsoft.compute", None, None),
    *("providers", "microsoft.maintenance", "scheduledevents"),
)
_ROUTES = (_LIST, (*_LIST, None, "acknowledge"))


class Acknowledge(NamedTuple):
    """The resource that a path names, and the event to acknowledge; without ``event_id`` the body names the events."""

    group: ResourceGroup
    kind: str
    name: str
    event_id: str = ""


def parse_acknowledge(path: str) -> Acknowledge | None:
    """Return the parts of an acknowledge path; None for any other path. Fixed parts match in any letter case.

    ``path`` is the raw path below the address of Azure Resource Manager, without query.
    """
    parts = path.strip("/").split("/")
    route = next((each for each in _ROUTES if len(each) == len(parts)), None)
    if route is None:
        return None
    values = []
    for fixed, part in zip(route, map(unquote, parts)):
        if fixed is None:
            values.append(part)
        elif fixed != part.lower():
            return None
    subscription, group, *resource = values
    return Acknowledge(ResourceGroup(subscription, group), *resource)
