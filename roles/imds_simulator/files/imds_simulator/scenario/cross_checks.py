# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Semantic checks beyond the JSON Schema: unknown names, duplicate addresses, invalid faults."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ..moments import is_moment
from ..suggestions import suggestion
from .answers import answer_problems, route_name
from .fault import ROUTES
from .fault_kinds import FaultError, fault_from
from .groups import parse_address, source_address
from .json_data import is_json_data
from .knobs import KnobError, Knobs, change_knobs
from .moment_checks import MOMENTS, moments_before_begin, past_moments
from .notify import notify_problems
from .yaml_lines import Path

Found = Iterator[tuple[Path, str]]


def crosscheck(data: Mapping[str, Any], now: float, skipped: frozenset[Path] = frozenset()) -> list[tuple[Path, str]]:
    """Return the problems of ``data`` as (path, message).

    ``data`` fits the schema, except for the items at ``skipped`` (such as ``("events", 3)``), which
    are not checked. ``now`` is the Unix time.
    """
    group_of = {vm: name for name, group in data["groups"].items() for vm in group["vms"]}
    found = list(_vms(data))
    found += _knobs(data.get("knobs", {}))
    for index, event in _checked_items(data, "events", skipped):
        found += [(("events", index, *path), text) for path, text in event_problems(event, data["groups"], group_of)]
    found += _moments(data, skipped, now)
    found += _names_of_events(data.get("events", ()), skipped)
    for index, step in _checked_items(data, "incarnations", skipped):
        if step["group"] not in data["groups"]:
            found.append((("incarnations", index, "group"), _unknown("group", step["group"], data["groups"])))
    sources = {
        name for group in data["groups"].values() for name, vm in group["vms"].items() if (vm or {}).get("source")
    }
    answers = list(_checked_items(data, "answers", skipped))
    for index, answer in answers:
        problems = answer_problems(answer, data["groups"], group_of)
        found += [(("answers", index, key), text) for key, text in problems]
    routes = {route_name(answer) for _index, answer in answers}
    for index, fault in _checked_items(data, "faults", skipped):
        found += [(("faults", index, *path), text) for path, text in fault_problems(fault, group_of, sources, routes)]
    if "notify" in data:
        found += [(("notify", key), text) for key, text in notify_problems(data["notify"])]
    if "default_vm" in data and data["default_vm"] not in group_of:
        found.append((("default_vm",), _unknown("VM", data["default_vm"], group_of)))
    return found


def _moments(data: Mapping[str, Any], skipped: frozenset[Path], now: float) -> Found:
    for section in MOMENTS:
        for index, item in _checked_items(data, section, skipped):
            yield from (((section, index, *path), text) for path, text in past_moments(item, section, now))
            if data.get("begin") == "first_request":
                yield from (((section, index, *path), text) for path, text in moments_before_begin(item, section))


def _checked_items(data: Mapping[str, Any], section: str, skipped: frozenset[Path]) -> Iterator[tuple[int, Any]]:
    for index, item in enumerate(data.get(section, ())):
        if (section, index) not in skipped:
            yield index, item


def event_problems(event: Mapping[str, Any], groups: Mapping[str, Any], group_of: Mapping[str, str]) -> Found:
    """Yield the problems of one event.

    ``groups``: name -> group data, ``group_of``: VM name -> group name.
    """
    if "type" not in event and event.get("starts") != "hardware_failure":
        yield (), "the key type is missing; only an event with starts: hardware_failure needs no type"
    if "after" in event and is_moment(event.get("at")):
        yield ("at",), f"{event['at']} is an absolute time; with after write a duration since the end of that event"
    if not is_json_data(event.get("extra")):
        yield ("extra",), "JSON has no binary data, NaN or infinity; write text"
    yield from _resources(event["resources"], ("resources",), groups, group_of)
    for index, change in enumerate(event.get("changes", ())):
        path: Path = ("changes", index)
        yield from ((path + rest, text) for rest, text in change_problems(change))
        if "resources" in change:
            yield from _resources(change["resources"], (*path, "resources"), groups, group_of)
            its_groups = {group_of.get(name) for name in (event["resources"][0], change["resources"][0])} - {None}
            if len(its_groups) > 1:
                yield (*path, "resources"), "an event cannot move to another group"


def change_problems(change: Mapping[str, Any]) -> Found:
    """Yield the problems of one change of an event."""
    if "after" in change and "after_start" in change:
        yield ("after_start",), "give either after or after_start, not both"
    edits = sorted(set(change) - {"after", "after_start", "action", "impact_for"})
    action = change.get("action", "edit")
    if action == "edit" and not edits:
        yield (), "the change is empty; give an action or a member to change"
    if action == "impact" and "impact_for" not in change:
        yield (), "the key impact_for is missing; an impact needs a duration"
    if action not in ("edit", "impact") and edits:
        yield (edits[0],), f"action {action} does not take {', '.join(edits)}"


def fault_problems(
    fault: Mapping[str, Any], vms: Mapping[str, Any], sources: set[str], routes: Collection[str]
) -> Found:
    """Yield the problems of one fault.

    ``sources`` are the VMs that are identified by source address, ``routes`` those of the answers.
    """
    known = [*ROUTES, *sorted(routes)]
    route = fault.get("route", "any")
    if route not in known:
        yield ("route",), f"{route!r} is not one of {', '.join(known)}{suggestion(route, known)}"
    named = fault.get("vm", ())
    for name in [named] if isinstance(named, str) else named:
        if name not in vms:
            yield ("vm",), _unknown("VM", name, vms)
        elif fault["kind"] == "refuse" and name in sources:
            yield (
                ("vm",),
                f"{name} is identified by source address; its connections cannot be refused; use reset",
            )
    try:
        fault_from(fault)
    except FaultError as error:
        yield (error.key,), str(error)


def _vms(data: Mapping[str, Any]) -> Found:
    group_by_vm: dict[str, str] = {}
    addresses: dict[str, str] = {}
    for group_name, group in data["groups"].items():
        path: Path = ("groups", group_name)
        if group.get("kind") != "scale_set":
            for key in ("orchestration", "gpu_single_fault_domain"):
                if key in group:
                    yield (*path, key), f"only a scale_set has {key}"
        uniform = group.get("kind") == "scale_set" and group.get("orchestration", "uniform") == "uniform"
        for name, vm in group["vms"].items():
            here = (*path, "vms", name)
            vm = vm or {}
            if name in group_by_vm:
                yield (
                    here,
                    f"group {group_by_vm[name]} has a VM of this name already; use resource_name for equal Azure names",
                )
            group_by_vm.setdefault(name, group_name)
            stem, _mark, number = vm.get("resource_name", name).rpartition("_")
            if uniform and (stem != group_name or not number.isdigit()):
                yield here, f"the name of an instance of a uniform scale set is {group_name}_NUMBER (reference 3.2)"
            if not uniform and "placement_group" in vm:
                yield (*here, "placement_group"), "only an instance of a uniform scale_set has a placement_group"
            yield from _addresses(vm, here, name, addresses)


def _addresses(vm: Mapping[str, Any], here: Path, name: str, taken: dict[str, str]) -> Found:
    if "listen" in vm and "source" in vm:
        yield (*here, "source"), "give either listen or source, not both"
    for key in ("listen", "source"):
        if key not in vm:
            continue
        try:
            address = str(parse_address(vm[key])) if key == "listen" else source_address(vm[key])
        except ValueError as error:
            yield (*here, key), str(error)
            continue
        if address in taken and not address.endswith(":0"):
            yield (*here, key), f"{taken[address]} has the address {address} already"
        taken.setdefault(address, name)


def _resources(names: list[str], path: Path, groups: Mapping[str, Any], group_of: Mapping[str, str]) -> Found:
    known = [name for name in names if name in group_of]
    for index, name in enumerate(names):
        if name not in group_of:
            yield (*path, index), _unknown("VM", name, group_of)
        elif group_of[name] != group_of[known[0]]:
            yield (
                (*path, index),
                f"{name} is in group {group_of[name]}, but {known[0]} in group {group_of[known[0]]}; "
                "an event affects VMs of one group (reference 3.1.1)",
            )
    if len(names) > 1 and known:
        group = groups[group_of[known[0]]]
        if group.get("kind") == "standalone":
            yield path, "VMs of a standalone group do not share events; write one event for each VM (reference 3.1.1)"


def _names_of_events(events: Any, skipped: frozenset[Path]) -> Found:
    names: dict[str, int] = {}
    for index, event in enumerate(events):
        name = event.get("name", f"event{index + 1}") if isinstance(event, Mapping) else ""
        if name in names:
            yield ("events", index, "name"), f"events[{names[name]}] has the name {name} already"
        names.setdefault(name, index)
    for index, event in _checked_items({"events": events}, "events", skipped):
        if "after" in event and event["after"] not in names:
            yield ("events", index, "after"), _unknown("event", event["after"], names)
        elif "after" in event and not skipped and _waits_for_itself(index, events, names):
            yield ("events", index, "after"), "these events wait for each other"


def _waits_for_itself(index: int, events: Any, names: Mapping[str, int]) -> bool:
    at: int | None = index
    for _hop in events:
        at = names.get(events[at]["after"]) if at is not None and "after" in events[at] else None
        if at == index:
            return True
    return False


def _knobs(knobs: Mapping[str, Any]) -> Found:
    for name, value in knobs.items():
        try:
            change_knobs(Knobs(), {name: value})
        except KnobError as error:
            yield ("knobs", name), str(error)


def _unknown(what: str, name: str, known: Any) -> str:
    shown = sorted(known)
    hint = suggestion(name, shown) or (f"; there are {', '.join(shown)}" if len(shown) <= 20 else "")
    return f"there is no {what} {name}{hint}"
