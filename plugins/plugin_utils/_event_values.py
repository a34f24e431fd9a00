# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads events in the form of the module event_info, for filters and tests."""

from __future__ import annotations

import typing as t
from datetime import timedelta

from ansible.errors import AnsibleFilterError

from ..module_utils.azure_scheduled_events.document import ScheduledEvent
from ..module_utils.azure_scheduled_events.timestamps import parse_time

_TEXTS = ("event_id", "event_type", "status")
_MEMBERS = (*_TEXTS, "resources", "not_before", "duration_seconds")
_REMEDY = "give an event of azure_imds.scheduled_events.event_info"


def event_of(value: t.Any, plugin: str) -> ScheduledEvent:
    """Return the event that a value of a template describes.

    The value is a dictionary in the form of event_info. Members that the plugins do not use may be missing. ``plugin``
    is the name of the plugin, for messages.

    Raises:
        AnsibleFilterError: the value is not such an event.
    """
    if not isinstance(value, t.Mapping):
        raise AnsibleFilterError(f"{plugin}: the value is {_kind(value)}, not an event; {_REMEDY}")
    missing = [name for name in _MEMBERS if name not in value]
    if missing:
        raise AnsibleFilterError(f"{plugin}: the event has no {', '.join(missing)}; {_REMEDY}")
    for name in _TEXTS:
        if not isinstance(value[name], str):
            raise _unusable(plugin, value, name, "a text")
    resources, seconds = value["resources"], value["duration_seconds"]
    if not isinstance(resources, (list, tuple)) or not all(isinstance(each, str) for each in resources):
        raise _unusable(plugin, value, "resources", "a list of names")
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int)):
        raise _unusable(plugin, value, "duration_seconds", "a whole number or null")
    not_before = None
    if value["not_before"] not in (None, ""):
        not_before = parse_time(value["not_before"]) if isinstance(value["not_before"], str) else None
        if not_before is None:
            raise _unusable(plugin, value, "not_before", "a time or null")
    return ScheduledEvent(
        event_id=value["event_id"],
        event_type=value["event_type"],
        status=value["status"],
        resources=tuple(resources),
        resource_type=value.get("resource_type"),
        not_before=not_before,
        description=value.get("description"),
        source=value.get("source"),
        # -1 is how IMDS writes an unknown duration
        duration=None if seconds is None or seconds < 0 else timedelta(seconds=seconds),
    )


def _unusable(plugin: str, value: t.Mapping[str, t.Any], name: str, expected: str) -> AnsibleFilterError:
    return AnsibleFilterError(f"{plugin}: {name} of the event is {_kind(value[name])}, not {expected}; {_REMEDY}")


def _kind(value: t.Any) -> str:
    if isinstance(value, str):
        return repr(value[:80])
    return "null" if value is None else f"of type {type(value).__name__}"
