# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Decides which VMs an approval releases, why it may not be sent, and who sends it. Pure.

An approval releases every VM in Resources, and the backends of IMDS may disagree about these. Therefore each VM that
any of the reports counts as affected has to be prepared.
"""

from __future__ import annotations

from typing import Collection, Iterable, Mapping, NamedTuple

from .approval_rules import UNREADABLE, blocked_by_state, unknown_value
from .identity import vm_key
from .printable import printable
from .tracking import Sighting


class Obstacle(NamedTuple):
    """Why an approval may not be sent: a code for programs, and a sentence that begins with the VM if it is one."""

    code: str
    text: str


class Report(NamedTuple):
    """What is known of one VM about one event.

    Attributes:
        sighting: the event as the VM knows it, or None if it knows no such event.
        prepared: whether the VM is prepared for this event, and its disk says so.
        obstacle: why the VM is not prepared, or why nothing that it says counts, if that is known.
    """

    sighting: Sighting | None
    prepared: bool
    obstacle: Obstacle | None = None


def all_vms(lists: Iterable[Iterable[str]]) -> dict[str, str]:
    """Return the name of each VM that one of the lists names, as it is written first, by `vm_key`."""
    found: dict[str, str] = {}
    for names in lists:
        for name in names:
            found.setdefault(vm_key(name), name)
    return found


def release_set(reports: Iterable[Report]) -> dict[str, str]:
    """Return the VMs that an approval releases, as `all_vms` does: all that any report counts as affected."""
    return all_vms(report.sighting.event.resources for report in reports if report.sighting is not None)


def obstacles(reports: Mapping[str, Report], without_report: str) -> list[Obstacle]:
    """Return why the event must not be approved now; those of the event first, then those of VMs by name.

    Args:
        reports: by `vm_key`. The key of a report whose VM is not known is any other text.
        without_report: the sentence for a VM that has no report.
    """
    names = release_set(reports.values())
    if not names:
        return [Obstacle("no_vm", "the event names no VM")]
    found = _of_event([report.sighting for report in reports.values() if report.sighting is not None])
    for key, name in sorted(names.items()):
        obstacle = _of_vm(key, reports.get(key), without_report)
        if obstacle is not None:
            found.append(obstacle._replace(text=f"{printable(name)}: {obstacle.text}"))
    return found


def approver_order(reports: Mapping[str, Report]) -> list[str]:
    """Return the VMs in the order in which they send the approval: by name, because Resources have no order."""
    return sorted(key for key in release_set(reports.values()) if key in reports)


def _of_event(sightings: Collection[Sighting]) -> list[Obstacle]:
    if not any(sighting.listed for sighting in sightings):
        return [Obstacle("not_listed", "the last document does not list it")]
    found: dict[str, str] = {}
    for sighting in sightings:
        for blocked in (
            blocked_by_state(sighting.event) or unknown_value(sighting.event),
            None if sighting.readable else UNREADABLE,
        ):
            if blocked is not None:
                found.setdefault(blocked.code.value, blocked.text)
    return [Obstacle(code, text) for code, text in found.items()]


def _of_vm(key: str, report: Report | None, without_report: str) -> Obstacle | None:
    """Return why this VM prevents the approval, or None; the text lacks its name."""
    if report is None:
        return Obstacle("unknown_vm", without_report)
    if report.obstacle is not None:
        return report.obstacle
    if report.sighting is None or key not in all_vms([report.sighting.event.resources]):
        return Obstacle("not_listed", "it does not list this event for itself")
    if not report.prepared:
        return Obstacle("not_prepared", "it is not prepared for this event")
    if not report.sighting.listed or key not in report.sighting.named:
        return Obstacle("not_listed", "its last document does not list this event for it")
    return None
