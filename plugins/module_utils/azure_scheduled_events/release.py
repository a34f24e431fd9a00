# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Decides which VMs an approval releases, why it may not be sent, and who sends it.

See docs/reference/scheduled-events.md 2.2. Pure.

An approval releases every VM in Resources, and the backends of IMDS may disagree about these. Therefore each VM that
any of the reports counts as affected has to be prepared.
"""

from __future__ import annotations

from typing import Collection, Iterable, Mapping, NamedTuple

from .document import EVENT_SOURCES, EVENT_STATUSES, RESOURCE_TYPES, ScheduledEvent
from .errors import OwnNameUnknown
from .event_types import EVENT_TYPES
from .identity import vm_key
from .printable import printable
from .tracking import Sighting


class Obstacle(NamedTuple):
    """Why an approval may not be sent.

    As text it is a clause that begins with the VM if it is one.

    Attributes:
        code: a word for programs.
        text: a clause without the name of the VM; "it" is the VM if there is one, else the event.
        vm: the name of the VM that prevents the approval; "" if the event itself does.
    """

    code: str
    text: str
    vm: str = ""

    def __str__(self) -> str:
        return f"{printable(self.vm)}: {self.text}" if self.vm else self.text


STARTED = Obstacle("started", "it has started; there is nothing left to approve")
ALREADY_APPROVED = Obstacle("already_approved", "this host has approved it; Azure has not started it yet")
UNREADABLE = Obstacle("unreadable", "the VMs that it affects are not readable")
ONE_DOCUMENT = Obstacle("one_document", "one document was read; the next one has to confirm it")
MANUAL = Obstacle("manual", "an operator has to approve it")
NOT_PREPARED = Obstacle("not_prepared", "its preparation is not done")
PREPARATION_FAILED = Obstacle("preparation_failed", "its preparation failed")
# codes of obstacles whose text depends on the event
UNKNOWN_STATUS = "unknown_status"
UNKNOWN_TYPE = "unknown_type"
UNKNOWN_SOURCE = "unknown_source"
UNKNOWN_RESOURCE_TYPE = "unknown_resource_type"
TYPES_DIFFER = "types_differ"
OTHERS_AFFECTED = "others_affected"
LEAVING = "leaving"
UNKNOWN_VM = "unknown_vm"
# an event with one of these is released by a person only
UNKNOWN_VALUES = frozenset({UNKNOWN_STATUS, UNKNOWN_TYPE, UNKNOWN_SOURCE, UNKNOWN_RESOURCE_TYPE})


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
    # most of the reports have the same list
    return all_vms(dict.fromkeys(report.sighting.event.resources for report in reports if report.sighting is not None))


def obstacles(reports: Mapping[str, Report], without_report: str, releases_others: bool = False) -> list[Obstacle]:
    """Return why the event must not be approved now; those of the event first, then those of VMs by name.

    Args:
        reports: by `vm_key`. The key of a report whose VM is not known is any other text.
        without_report: the clause for a VM that has no report.
        releases_others: whether a rule or a person releases the VMs that have no report.
    """
    names = release_set(reports.values())
    if not names:
        return [Obstacle("no_vm", "the event names no VM")]
    found = _of_event([report.sighting for report in reports.values() if report.sighting is not None])
    for key, name in sorted(names.items()):
        if releases_others and key not in reports:
            continue
        obstacle = _of_vm(key, reports.get(key), without_report)
        if obstacle is not None:
            found.append(obstacle._replace(vm=name))
    return found


def own_obstacles(report: Report, own_name: str | None, releases_others: bool) -> list[Obstacle]:
    """Return why a VM that has no report of others must not approve the event now; one about these is the last one.

    Args:
        report: of this VM. Its obstacle counts also if the event does not affect this VM, which sends the approval.
        own_name: this VM's resource name.
        releases_others: whether a rule or a person releases the other VMs.

    Raises:
        OwnNameUnknown: ``own_name`` is None or empty, and neither a rule nor a person releases other VMs.
    """
    if not (own_name or releases_others):
        raise OwnNameUnknown()
    key = vm_key(own_name or "")
    names = release_set([report])
    found = _of_event([] if report.sighting is None else [report.sighting])
    obstacle = _of_vm(key, report, "") if key in names else report.obstacle
    if obstacle is not None:
        found.append(obstacle)
    if not releases_others and names.keys() - {key}:
        listed = printable(", ".join(names.values()))
        found.append(Obstacle(OTHERS_AFFECTED, f"an approval would release other VMs too ({listed})"))
    seen = report.sighting
    absent = [name for vm, name in names.items() if seen and seen.listed and vm not in seen.named]
    if releases_others and absent:
        found.append(Obstacle(LEAVING, f"it may affect {printable(', '.join(absent))}, which its last document lacks"))
    return found


def seconds_to_turn(resources: Iterable[str], own_name: str, takeover_after: float, age: float) -> float | None:
    """Return in how many seconds this VM approves if those before it do not, 0 or less for now; None without this VM.

    The first one, by name because Resources have no order, does so at once, and each next one ``takeover_after``
    seconds later. ``age`` is in seconds since the event was first seen.
    """
    turns = {vm: turn for turn, vm in enumerate(sorted(all_vms([resources])))}
    turn = turns.get(vm_key(own_name)) if own_name else None
    return turn * takeover_after - age if turn else turn


def approver_order(reports: Mapping[str, Report]) -> list[str]:
    """Return the VMs that report, in the order in which they send the approval: by name."""
    return [key for key in sorted(release_set(reports.values())) if key in reports]


def unknown_value(event: ScheduledEvent) -> Obstacle | None:
    """Return the first value of the event that this version does not know, or None; no rule approves such an event."""
    for code, what, value, known in (
        (UNKNOWN_TYPE, "type", event.event_type, EVENT_TYPES),
        (UNKNOWN_STATUS, "status", event.status, EVENT_STATUSES),
        (UNKNOWN_SOURCE, "source", event.source, EVENT_SOURCES),
        (UNKNOWN_RESOURCE_TYPE, "resource type", event.resource_type, RESOURCE_TYPES),
    ):
        if value is not None and value not in known:
            return Obstacle(code, f"its {what} {value!r} is unknown")
    return None


def _of_event(sightings: Collection[Sighting]) -> list[Obstacle]:
    if not any(sighting.listed for sighting in sightings):
        return [Obstacle("not_listed", "the last document does not list it")]
    found: dict[str, str] = {}
    for sighting in sightings:
        for blocked in (
            STARTED if sighting.event.status == "Started" else unknown_value(sighting.event),
            None if sighting.readable else UNREADABLE,
        ):
            if blocked is not None:
                found.setdefault(blocked.code, blocked.text)
    types = sorted({printable(sighting.event.event_type) for sighting in sightings})
    if len(types) > 1:
        # a preparation for one of them may not count for another one
        found[TYPES_DIFFER] = f"its VMs list it with different types ({', '.join(types)})"
    return [Obstacle(code, text) for code, text in found.items()]


def _of_vm(key: str, report: Report | None, without_report: str) -> Obstacle | None:
    """Return why this VM prevents the approval, or None; without its name."""
    if report is None:
        return Obstacle(UNKNOWN_VM, without_report)
    if report.obstacle is not None:
        return report.obstacle
    sighting = report.sighting
    is_named = sighting is not None and sighting.listed and key in sighting.named
    if not is_named and (sighting is None or key not in all_vms([sighting.event.resources])):
        return Obstacle("not_listed", "it does not list this event for itself")
    if not report.prepared:
        return Obstacle("not_prepared", "it is not prepared for this event")
    if not is_named:
        return Obstacle("not_listed", "its last document does not list this event for it")
    return None
