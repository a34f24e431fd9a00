# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Checks of instance metadata (docs/reference/scheduled-events.md 3.3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ..recording.lines import Answer
from .evidence import Evidence, compute_of, decoded, has_other_primitive, version_of
from .verdict import Verdict, by_status, confirms, contradicts, is_open, judged, seen, statement

# members of compute by version
_COMPUTE = {
    "2017-04-02": (
        *("location", "name", "offer", "osType", "platformFaultDomain", "platformUpdateDomain", "publisher", "sku"),
        *("version", "vmId", "vmSize"),
    ),
    "2017-08-01": ("placementGroupId", "resourceGroupName", "subscriptionId", "tags"),
    "2017-12-01": ("vmScaleSetName", "zone"),
    "2018-04-02": ("plan", "publicKeys"),
    "2018-10-01": ("azEnvironment", "provider"),
    "2019-02-01": ("customData",),
    "2019-03-11": ("resourceId",),
    "2019-06-01": ("storageProfile",),
    "2019-06-04": ("tagsList",),
    "2020-06-01": ("isHostCompatibilityLayerVm", "securityProfile"),
    "2020-07-15": ("osProfile",),
    "2020-09-01": ("licenseType",),
    "2020-12-01": ("evictionPolicy", "priority"),
    "2021-01-01": ("userData",),
    "2021-03-01": ("extendedLocation", "virtualMachineScaleSet"),
    "2021-10-01": ("platformSubFaultDomain",),
    "2021-11-01": ("additionalCapabilities",),
    "2021-11-15": ("host", "hostGroup"),
    "2023-11-15": ("physicalZone",),
}
_INSTANCE_VERSIONS = (
    *("2017-03-01", "2017-04-02", "2017-08-01", "2017-10-01", "2017-12-01", "2018-02-01", "2018-04-02", "2018-10-01"),
    *("2019-02-01", "2019-03-11", "2019-04-30", "2019-06-01", "2019-06-04", "2019-08-01", "2019-08-15", "2019-11-01"),
    *("2020-06-01", "2020-07-15", "2020-09-01", "2020-10-01", "2020-12-01", "2021-01-01", "2021-02-01", "2021-03-01"),
    *("2021-05-01", "2021-08-01", "2021-10-01", "2021-11-01", "2021-11-15", "2021-12-13", "2023-07-01", "2023-11-15"),
    *("2024-03-15", "2024-07-17", "2025-04-07"),
)


def _each_compute(
    evidence: Evidence, is_good: Callable[[Mapping[str, Any]], bool | None], missing: str, remark: str = ""
) -> Verdict:
    """Return the verdict about all answers with compute; ``is_good`` returns None for those that say nothing."""
    cases = [(answer.line, is_good(compute_of(data))) for answer, data in evidence.instances if compute_of(data)]
    return judged(
        [line for line, found in cases if found], [line for line, found in cases if found is False], missing, remark
    )


@statement("3.3.1", "D")
def members_by_version(evidence: Evidence) -> Verdict:
    """Instance metadata has the members of its version."""
    good: list[int] = []
    bad: list[int] = []
    for answer, data in evidence.instances:
        version, found = version_of(answer), compute_of(data)
        if not found:
            continue
        older = [name for since, names in _COMPUTE.items() if since <= version for name in names]
        newer = [name for since, names in _COMPUTE.items() if since > version for name in names]
        # an answer may lack members (docs/reference/scheduled-events.md 3.3)
        others = {name for other, content in evidence.instances if version_of(other) == version
                  for name in compute_of(content)}  # fmt: skip
        missing = [name for name in older if name not in found]
        if set(missing) & (others | {"name", "vmId"}):
            continue
        is_right = not missing and not any(name in found for name in newer)
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
        if missing and further == [] and found and missing[0] > max(map(str, found)):
            # a host may be older than the list
            return is_open(f"without {', '.join(missing)}"[:120], [answer.line])
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
    without = [answer.line for answer, data in evidence.instances if not compute_of(data).get("name")]
    return seen(without, "no answer lacked compute.name")


@statement("3.3.5", "D")
def size_of_resource_disk(evidence: Evidence) -> Verdict:
    """storageProfile.resourceDisk.size is in kilobytes, 0 without such a disk."""

    def is_good(compute: Mapping[str, Any]) -> bool | None:
        size = _below(compute, "storageProfile", "resourceDisk", "size")
        if not isinstance(size, str) or not (size.isascii() and size.isdigit()):
            return None
        # no disk has less than a gigabyte
        return int(size) == 0 or int(size) >= 1_000_000

    return _each_compute(evidence, is_good, "needs storageProfile.resourceDisk.size", "too small for kilobytes")


@statement("3.3.7", "D")
def passwords_on_windows(evidence: Evidence) -> Verdict:
    """osProfile.disablePasswordAuthentication is an empty string on Windows."""

    def is_good(compute: Mapping[str, Any]) -> bool | None:
        value = _below(compute, "osProfile", "disablePasswordAuthentication")
        return None if compute.get("osType") != "Windows" or value is None else value == ""

    return _each_compute(evidence, is_good, "needs a VM with Windows")


@statement("3.3.8", "O")
def empty_objects_and_lists(evidence: Evidence) -> Verdict:
    """An object without values keeps its members, and a list without items is empty."""
    objects = {
        "plan": {"name", "product", "publisher"},
        "extendedLocation": {"name", "type"},
        "host": {"id"},
        "hostGroup": {"id"},
        "virtualMachineScaleSet": {"id"},
    }

    def is_good(compute: Mapping[str, Any]) -> bool | None:
        present = [(compute[name], names) for name, names in objects.items() if name in compute]
        lists = [compute[name] for name in ("publicKeys", "tagsList") if name in compute]
        if not present and not lists:
            return None
        kept = all(isinstance(value, dict) and names <= set(value) for value, names in present)
        return kept and all(isinstance(each, list) for each in lists)

    return _each_compute(evidence, is_good, "needs instance metadata", "a member is missing, or not a list")


@statement("3.3.9", "O")
def order_of_members(evidence: Evidence) -> Verdict:
    """Members are in the order of their names, letter by letter."""

    def is_good(compute: Mapping[str, Any]) -> bool:
        return list(compute) == sorted(compute) or list(compute) == sorted(compute, key=str.lower)

    return _each_compute(evidence, is_good, "needs instance metadata", "another order")


@statement("3.3.10", "O")
def priority(evidence: Evidence) -> Verdict:
    """Priority of a VM that is not a spot VM is Regular or empty."""

    def is_good(compute: Mapping[str, Any]) -> bool | None:
        value = compute.get("priority")
        return None if value in (None, "Spot", "Low") else value in ("Regular", "")

    return _each_compute(evidence, is_good, "needs a VM that is not a spot VM", "another priority")


@statement("3.3.11", "D")
def tags(evidence: Evidence) -> Verdict:
    """Tags joins the items of tagsList: name:value, separated by semicolons."""
    if evidence.recording.header.anonymised:
        return is_open("the recording is anonymised")

    def is_good(compute: Mapping[str, Any]) -> bool | None:
        items = compute.get("tagsList")
        if not isinstance(items, list) or not items or not all(isinstance(each, dict) for each in items):
            return None
        joined = [f"{each.get('name')}:{each.get('value')}" for each in items]
        return sorted(str(compute.get("tags")).split(";")) == sorted(";".join(joined).split(";"))

    return _each_compute(evidence, is_good, "needs a VM with tags", "other tags")


@statement("3.3.12", "D, O")
def host_or_group(evidence: Evidence) -> Verdict:
    """The VM has host.id or hostGroup.id, not both; most VMs have none of them."""

    def is_good(compute: Mapping[str, Any]) -> bool | None:
        host, group = _below(compute, "host", "id"), _below(compute, "hostGroup", "id")
        return None if host is None and group is None else not (host and group)

    return _each_compute(evidence, is_good, "needs instance metadata of 2021-11-15 or newer", "both")


@statement("3.3.13", "D")
def custom_data(evidence: Evidence) -> Verdict:
    """CustomData is always empty."""

    def is_good(compute: Mapping[str, Any]) -> bool | None:
        return None if "customData" not in compute else compute["customData"] == ""

    return _each_compute(evidence, is_good, "needs customData", "not empty")


@statement("3.3.14", "O, A")
def physical_zone(evidence: Evidence) -> Verdict:
    """PhysicalZone has the form westeurope-az1 or useast-AZ01."""

    def is_good(compute: Mapping[str, Any]) -> bool | None:
        zone = compute.get("physicalZone")
        return re.fullmatch(r"[a-z0-9]+-(az\d|AZ\d\d)", zone) is not None if isinstance(zone, str) and zone else None

    return _each_compute(evidence, is_good, "needs a VM in a zone", "another form")


@statement("3.3.15", "D?")
def members_of_data_disks(evidence: Evidence) -> Verdict:
    """Data disks have diffDiskSettings, encryptionSettings and osType."""

    def is_good(compute: Mapping[str, Any]) -> bool | None:
        disks = _below(compute, "storageProfile", "dataDisks")
        if not isinstance(disks, list) or not disks:
            return None
        wanted = {"diffDiskSettings", "encryptionSettings", "osType"}
        return all(isinstance(each, dict) and wanted <= set(each) for each in disks)

    return _each_compute(evidence, is_good, "needs a VM with data disks", "a member is missing")


def _below(node: Any, *names: str) -> Any:
    """Return the value at a path of members, or None."""
    for name in names:
        node = node.get(name) if isinstance(node, dict) else None
    return node
