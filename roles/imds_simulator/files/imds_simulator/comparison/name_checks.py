# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Checks of names and instance metadata (docs/reference/scheduled-events.md 3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..recording.lines import Answer
from .document_checks import has_other_primitive
from .evidence import Evidence, decoded, version_of
from .verdict import Verdict, by_status, confirms, contradicts, is_open, judged, seen, statement

# the members that the statement lists, and their versions
_COMPUTE = {
    "2017-04-02": "name location osType vmId vmSize platformFaultDomain platformUpdateDomain",
    "2017-08-01": "placementGroupId resourceGroupName subscriptionId tags",
    "2017-12-01": "vmScaleSetName zone",
    "2019-03-11": "resourceId",
    "2019-06-04": "tagsList",
    "2020-07-15": "osProfile",
    "2020-12-01": "priority evictionPolicy",
    "2021-03-01": "virtualMachineScaleSet",
}
_INSTANCE_VERSIONS = (
    *("2017-03-01", "2017-04-02", "2017-08-01", "2017-10-01", "2017-12-01", "2018-02-01", "2018-04-02", "2018-10-01"),
    *("2019-02-01", "2019-03-11", "2019-04-30", "2019-06-01", "2019-06-04", "2019-08-01", "2019-08-15", "2019-11-01"),
    *("2020-06-01", "2020-07-15", "2020-09-01", "2020-10-01", "2020-12-01", "2021-01-01", "2021-02-01", "2021-03-01"),
    *("2021-05-01", "2021-08-01", "2021-10-01", "2021-11-01", "2021-11-15", "2021-12-13", "2023-07-01", "2023-11-15"),
    *("2024-03-15", "2024-07-17", "2025-04-07"),
)


def _compute(data: Mapping[str, Any]) -> Mapping[str, Any]:
    found = data.get("compute")
    return found if isinstance(found, dict) else {}


def _resources(evidence: Evidence, is_preview: bool) -> list[tuple[int, list[str]]]:
    """Return line and Resources of each event, in the version 2017-03-01 or in the others."""
    return [
        (each.document.line, [str(name) for name in each.event.get("Resources") or ()])
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
    profiles = [_compute(data).get("osProfile") for _answer, data in evidence.instances]
    hosts = {str(each.get("computerName", "")).lower() for each in profiles if isinstance(each, dict)} - {
        "",
        name.lower(),
    }
    cases = _resources(evidence, False)
    bad = [line for line, names in cases if hosts & {each.lower() for each in names}]
    bad += [answer.line for answer, data in evidence.instances if _has_other_number(_compute(data))]
    good = [line for line, names in cases if name and name.lower() in [each.lower() for each in names]]
    return judged(good, bad, "needs instance metadata and an event of this VM", "the host name, or another number")


def _has_other_number(compute: Mapping[str, Any]) -> bool:
    """Return True if the host name of a uniform instance ends in another number than its name."""
    name, profile = str(compute.get("name", "")), compute.get("osProfile")
    scale_set = str(compute.get("vmScaleSetName", ""))
    number = name[len(scale_set) + 1 :] if scale_set and name.lower().startswith(scale_set.lower() + "_") else ""
    host = str(profile.get("computerName", "")) if isinstance(profile, dict) else ""
    if not (number.isascii() and number.isdigit()) or not host:
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


@statement("3.3.1", "D")
def members_by_version(evidence: Evidence) -> Verdict:
    """Instance metadata has the members of its version."""
    good: list[int] = []
    bad: list[int] = []
    for answer, data in evidence.instances:
        version, found = version_of(answer), _compute(data)
        if not found:
            continue
        older = [name for since, names in _COMPUTE.items() if since <= version for name in names.split()]
        newer = [name for since, names in _COMPUTE.items() if since > version for name in names.split()]
        is_right = all(name in found for name in older) and not any(name in found for name in newer)
        (good if is_right else bad).append(answer.line)
    return judged(good, bad, "needs instance metadata", "a member is missing, or of a newer version")


@statement("3.3.2", "D")
def instance_versions(evidence: Evidence) -> Verdict:
    """The list of versions of instance metadata is complete."""
    for answer in evidence.probe("versions"):
        data = decoded(answer)
        found = data.get("apiVersions") if answer.status == 200 and isinstance(data, dict) else None
        if not isinstance(found, list):
            continue
        further = sorted({str(each) for each in found} - set(_INSTANCE_VERSIONS))
        missing = sorted(set(_INSTANCE_VERSIONS) - {str(each) for each in found})
        if missing:
            return contradicts([answer.line], f"without {', '.join(missing)}"[:120])
        return confirms([answer.line], f"further: {', '.join(further)}"[:120] if further else "")
    return is_open("needs an answer to the probe versions")


@statement("3.3.3", "D")
def strings_and_errors(evidence: Evidence) -> Verdict:
    """Primitives of instance metadata are strings, a leaf needs format=text, an unknown element is 404."""
    bad = [answer.line for answer, data in evidence.instances if has_other_primitive(data)]
    if bad:
        return contradicts(bad, "not a string")
    expected = {"leaf-as-json": 400, "leaf-as-text": 200, "unknown-element": 404}

    def is_expected(answer: Answer) -> bool:
        return answer.status == expected[answer.purpose]

    return by_status(evidence.probe(*expected), is_expected, "leaf-as-json")


@statement("3.3.4", "O")
def missing_name(evidence: Evidence) -> Verdict:
    """An answer 200 may lack members."""
    without = [answer.line for answer, data in evidence.instances if not _compute(data).get("name")]
    return seen(without, "no answer lacked compute.name")
