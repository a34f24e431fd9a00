# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Warnings about events that affect VMs of several placement groups (docs/reference/scheduled-events.md 3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .groups import placement_group_name
from .yaml_lines import Path


def placement_group_warnings(data: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield (path, text) for each event of a valid scenario whose VMs have different placement groups."""
    placement_group = {
        name: placement_group_name((vm or {}).get("placement_group", ""))
        for group in data["groups"].values()
        for name, vm in group["vms"].items()
    }
    for index, event in enumerate(data.get("events", ())):
        if len({placement_group[name] for name in event["resources"]}) > 1:
            text = "these VMs have different placement groups; Azure documents no such event (reference 3.1.9)"
            yield ("events", index, "resources"), text
