# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Checks of scopes and names (docs/reference/scheduled-events.md 3.1, 3.2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .evidence import Evidence, compute_of, resources_of
from .verdict import Verdict, judged, seen, statement


def _resources(evidence: Evidence, is_preview: bool) -> list[tuple[int, list[str]]]:
    """Return line and Resources of each event, in the version 2017-03-01 or in the others."""
    return [
        (each.document.line, resources_of(each.event))
        for each in evidence.sightings
        if (each.document.version == "2017-03-01") == is_preview
    ]


@statement("3.1.2", "D")
def events_of_others(evidence: Evidence) -> Verdict:
    """A client sees events for other VMs only, too."""
    name = evidence.name.lower()
    others = [
        line
        for line, names in _resources(evidence, False)
        if name and names and name not in [each.lower() for each in names]
    ]
    return seen(others, "no event affected other VMs only")


@statement("3.2", "D")
def preview_names(evidence: Evidence) -> Verdict:
    """With 2017-03-01 an entry of Resources is an underscore and the name."""
    names = {f"_{evidence.name}".lower()}
    good: list[int] = []
    bad: list[int] = []
    for line, entries in _resources(evidence, True):
        lowered = {each.lower() for each in entries}
        if lowered & names:
            good.append(line)
        elif evidence.name.lower() in lowered:
            bad.append(line)
    return judged(good, bad, "needs an event of this VM in version 2017-03-01 (--api-version)", "no underscore")


@statement("3.2.1", "D, O")
def entry_is_compute_name(evidence: Evidence) -> Verdict:
    """An entry of Resources equals compute.name, not the host name."""
    name = evidence.name
    profiles = [compute_of(data).get("osProfile") for _answer, data in evidence.instances]
    hosts = {str(each.get("computerName", "")).lower() for each in profiles if isinstance(each, dict)} - {
        "",
        name.lower(),
    }
    cases = _resources(evidence, False)
    bad = [line for line, names in cases if hosts & {each.lower() for each in names}]
    bad += [answer.line for answer, data in evidence.instances if _has_other_number(compute_of(data))]
    good = [line for line, names in cases if name and name.lower() in [each.lower() for each in names]]
    return judged(good, bad, "needs instance metadata and an event of this VM", "the host name, or another number")


def _has_other_number(compute: Mapping[str, Any]) -> bool:
    """Return True if the host name of a uniform instance ends in another number than its name."""
    name, profile = str(compute.get("name", "")), compute.get("osProfile")
    scale_set = str(compute.get("vmScaleSetName", ""))
    number = name[len(scale_set) + 1 :] if scale_set and name.lower().startswith(scale_set.lower() + "_") else ""
    host = str(profile.get("computerName", "")) if isinstance(profile, dict) else ""
    # a VM of a flexible scale set may have any name
    is_uniform = "/virtualmachinescalesets/" in str(compute.get("resourceId") or "/virtualMachineScaleSets/").lower()
    if not (number.isascii() and number.isdigit() and len(number) < 10) or not host or not is_uniform:
        return False
    return re.fullmatch(r"[0-9a-zA-Z]{6}", host[-6:]) is None or int(host[-6:], 36) != int(number)


@statement("3.2.4", "A")
def names_in_any_case(evidence: Evidence) -> Verdict:
    """Names have to be compared in any letter case."""
    name = evidence.name
    other = [
        line
        for line, names in _resources(evidence, False)
        if name and name not in names and name.lower() in [each.lower() for each in names]
    ]
    return seen(other, "the letter case did not differ")
