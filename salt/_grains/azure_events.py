# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The events that the beacon azure_events last saw, as a grain.

.. versionadded:: 0.1.0

The grain is off unless the minion's configuration has ``azure_events_grain: true``. It is read from
the beacon's state file; IMDS is not read. As all grains it is as old as the last refresh. For the
present events call ``azure_events.pending``.

.. code-block:: yaml

    azure_events:
      pending: true
      resource_name: vm1
      checked: '2026-11-21T10:00:00Z'
      events:
        - event_id: C7061BAC-AFDC-4513-B24B-AA5F13A16123
          event_type: Reboot
          status: Scheduled
          not_before: '2026-11-21T10:15:00Z'
"""

# Salt's loader puts __salt__, __opts__ and the like into the module
# pylint: disable=undefined-variable

from __future__ import annotations

try:
    from azure_events_watch import state_file
except ImportError:
    state_file = None

__virtualname__ = "azure_events"


def __virtual__():
    if not __opts__.get("azure_events_grain", False):
        return False, "azure_events_grain is not set"
    if state_file is None:
        return False, "azure_events: the package azure_events_watch is missing; run saltutil.sync_all"
    return __virtualname__


def azure_events():
    """Return the grain ``azure_events``, or no grain if no beacon has written a state file."""
    seen = state_file.read_all(__opts__["cachedir"])
    if not seen:
        return {}
    events = {}
    for data in seen.values():
        for entry in data["entries"]:
            event = entry.get("event") if isinstance(entry, dict) else None
            if isinstance(event, dict) and entry.get("meant") is True and entry.get("change") != "gone":
                events[event.get("event_id")] = {
                    key: event.get(key) for key in ("event_id", "event_type", "status", "not_before")
                }
    latest = max(seen.values(), key=lambda data: str(data.get("checked")))
    return {
        "azure_events": {
            "pending": bool(events),
            "resource_name": latest.get("resource_name"),
            "checked": latest.get("checked"),
            "events": list(events.values()),
        }
    }
