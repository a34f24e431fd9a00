# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Warnings about a scenario: content that the simulator can show, but Azure does not send."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..times import parse_duration
from .instance_warnings import instance_warnings
from .knobs import Knobs
from .placement_group_warnings import placement_group_warnings
from .plans import BY_NOTICE
from .yaml_lines import Path

# seconds; docs/reference/scheduled-events.md 2.4
_LEAST_NOTICE = 300.0
_LARGEST_NOTICE = 900.0


def scenario_warnings(data: Mapping[str, Any], knobs: Knobs) -> list[tuple[Path, str]]:
    """Return the warnings about checked ``data`` as (path, message); ``knobs`` has the values of the scenario."""
    return [*event_warnings(data, knobs), *instance_warnings(data)]


def event_warnings(data: Mapping[str, Any], knobs: Knobs) -> Iterator[tuple[Path, str]]:
    """Yield the warnings about the events of checked ``data``, which has the keys ``groups`` and ``events``."""
    for index, event in enumerate(data.get("events", ())):
        yield from ((("events", index, *path), text) for path, text in _terminate_warnings(event, knobs))
    yield from placement_group_warnings(data)


def _terminate_warnings(event: Mapping[str, Any], knobs: Knobs) -> Iterator[tuple[Path, str]]:
    if event.get("type") != "Terminate":
        return
    if event.get("starts", BY_NOTICE) == BY_NOTICE:
        seconds = parse_duration(event.get("notice", knobs.notice_overrides["Terminate"]))
        if not _LEAST_NOTICE <= seconds <= _LARGEST_NOTICE:
            given = event.get("notice", f"{seconds:g}s")
            yield ("notice",), f"{given} is not a notice of a Terminate event on Azure: 5 to 15 minutes (reference 2.4)"
    if len(event["resources"]) > 1:
        count = len(event["resources"])
        yield ("resources",), f"{count} VMs; on Azure a Terminate event has one instance (reference 2.2.8)"
