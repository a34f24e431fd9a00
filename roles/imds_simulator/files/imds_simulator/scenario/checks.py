# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Checks across the values of a scenario, or of a running simulator: names, addresses, groups, times."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeVar

from ..faults.fault import ROUTES, Fault
from ..keys import Found, Path, dotted
from ..suggestions import suggestion, unknown
from ..times import Moment, When, iso
from .groups import Group, Vm, colliding
from .plans import EventPlan, Scenario

# seconds: a caller that names the present time, in whole minutes too, means now
TOLERANCE = 60.0
_T = TypeVar("_T")


def scenario_problems(scenario: Scenario, now: float) -> Found:
    """Yield the problems of a whole scenario; ``now`` is the Unix time, after which absolute times have to be."""
    groups = {group.name: group for group in scenario.groups}
    vms = {vm.name: vm for group in scenario.groups for vm in group.vms}
    yield from _names_of_vms(scenario.groups)
    yield from address_problems(scenario.groups)
    for event in scenario.events:
        yield from _below(event.place, event_problems(event, groups, vms))
    yield from _names_of_events(scenario.events)
    for step in scenario.incarnations:
        yield from _unknown((*step.place, "group"), "group", [step.group], groups)
    for answer in scenario.answers:
        yield from _unknown((*answer.place, "vm"), "VM", answer.vms, vms)
        yield from _unknown((*answer.place, "group"), "group", answer.groups, groups)
    routes = {answer.route for answer in scenario.answers}
    for fault in scenario.faults:
        yield from _below(fault.place, fault_problems(fault, vms, routes))
    times = _times(scenario)
    yield from past_moments(now, times)
    for path, when in times.items() if scenario.begin == "first_request" else ():
        if isinstance(when, Moment):
            yield path, f"{when} is an absolute time; with begin: first_request write a duration since that request"
    if scenario.default_vm is not None and scenario.default_vm not in vms:
        yield ("default_vm",), unknown("VM", scenario.default_vm, vms)


def event_problems(event: EventPlan, groups: Mapping[str, Group], vms: Mapping[str, Vm]) -> Found:
    """Yield the problems of the VMs that an event and its changes name."""
    yield from _resources(event.resources, ("resources",), groups, vms)
    for index, change in enumerate(event.changes):
        if change.resources is not None:
            yield from moved_problems(event.resources, change.resources, ("changes", index, "resources"), groups, vms)


def moved_problems(
    old: tuple[str, ...], new: tuple[str, ...], path: Path, groups: Mapping[str, Group], vms: Mapping[str, Vm]
) -> Found:
    """Yield the problems of a change of an event's VMs."""
    yield from _resources(new, path, groups, vms)
    if len({vms[names[0]].group for names in (old, new) if names and names[0] in vms}) > 1:
        yield path, "an event cannot move to another group"


def fault_problems(fault: Fault, vms: Mapping[str, Vm], routes: Collection[str]) -> Found:
    """Yield the problems of the names in a fault; ``routes`` are those of the answers."""
    known = [*ROUTES, *sorted(routes)]
    route = fault.window.route
    if route not in known:
        yield ("route",), f"{route!r} is not one of {', '.join(known)}{suggestion(route, known)}"
    for name in fault.window.vms:
        if name not in vms:
            yield ("vm",), unknown("VM", name, vms)
        elif not fault.effect.is_per_request and vms[name].source:
            yield ("vm",), f"{name} is identified by source address; its connections cannot be refused; use reset"


def past_moments(now: float, times: Mapping[Path, When]) -> Found:
    """Yield a problem for each absolute time that is more than TOLERANCE before ``now``."""
    for path, when in times.items():
        if isinstance(when, Moment) and when.unix < now - TOLERANCE:
            yield path, f"{when} is in the past: the simulator's clock shows {iso(now)}; write a later time"


def address_problems(groups: Iterable[Group]) -> Found:
    """Yield the addresses that two VMs have."""
    vms = [vm for group in groups for vm in group.vms]
    for vm, other in colliding((vm.listen, vm) for vm in vms if vm.listen):
        yield ("groups", vm.group, "vms", vm.name, "listen"), f"{other.name} has the address {other.listen} already"
    taken: dict[str, str] = {}
    for vm in (vm for vm in vms if vm.source):
        first = taken.setdefault(vm.source or "", vm.name)
        if first != vm.name:
            yield ("groups", vm.group, "vms", vm.name, "source"), f"{first} has the address {vm.source} already"


def _unknown(path: Path, what: str, names: Iterable[str], known: Collection[str]) -> Found:
    return ((path, unknown(what, name, known)) for name in names if name not in known)


def _times(scenario: Scenario) -> dict[Path, When]:
    times: dict[Path, When] = {(*each.place, "at"): each.at for each in scenario.events}
    times.update({(*each.place, "at"): each.at for each in scenario.incarnations})
    for fault in scenario.faults:
        times.update(_below(fault.place, fault.window.times().items()))
    return times


def _names_of_vms(groups: Iterable[Group]) -> Found:
    group_of: dict[str, str] = {}
    for vm in (vm for group in groups for vm in group.vms):
        if group_of.setdefault(vm.name, vm.group) != vm.group:
            text = f"group {group_of[vm.name]} has a VM of this name already; use resource_name for equal Azure names"
            yield ("groups", vm.group, "vms", vm.name), text


def _resources(names: tuple[str, ...], path: Path, groups: Mapping[str, Group], vms: Mapping[str, Vm]) -> Found:
    known = [vms[name] for name in names if name in vms]
    for index, name in enumerate(names):
        if name not in vms:
            yield (*path, index), unknown("VM", name, vms)
        elif vms[name].group != known[0].group:
            yield (
                (*path, index),
                f"{name} is in group {vms[name].group}, but {known[0].name} in group {known[0].group}; "
                "an event affects VMs of one group (reference 3.1.1)",
            )
    if len(known) > 1 and len({vm.group for vm in known}) == 1 and groups[known[0].group].kind == "standalone":
        yield path, "VMs of a standalone group do not share events; write one event for each VM (reference 3.1.1)"


def _names_of_events(events: Iterable[EventPlan]) -> Found:
    by_name: dict[str, EventPlan] = {}
    for event in events:
        first = by_name.setdefault(event.name, event)
        if first is not event:
            yield (*event.place, "name"), f"{dotted(first.place)} has the name {event.name} already"
    for event in events:
        if event.after is not None and event.after not in by_name:
            yield (*event.place, "after"), unknown("event", event.after, by_name)
        elif _waits_for_itself(event, by_name):
            yield (*event.place, "after"), "these events wait for each other"


def _waits_for_itself(event: EventPlan, by_name: Mapping[str, EventPlan]) -> bool:
    at: EventPlan | None = event
    for _hop in by_name:
        at = by_name.get(at.after or "") if at is not None else None
        if at is event:
            return True
    return False


def _below(place: Path, found: Iterable[tuple[Path, _T]]) -> Iterator[tuple[Path, _T]]:
    return (((*place, *path), each) for path, each in found)
