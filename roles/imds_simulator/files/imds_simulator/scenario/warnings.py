# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Warnings about a scenario: content that the simulator can show, but Azure does not send.

They are not errors: a scenario may add members and change shapes to test a client.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..instance_members import MEMBERS, Member
from ..keys import Found, Path
from ..suggestions import suggestion
from ..times import duration_text
from .groups import Group, Vm
from .knobs import Knobs
from .plans import BY_NOTICE, EventPlan, Scenario

# seconds; docs/reference/scheduled-events.md 2.4
_LEAST_NOTICE = 300.0
_LARGEST_NOTICE = 900.0
_MOST_SHOWN = 20


def scenario_warnings(scenario: Scenario) -> Iterator[tuple[Path, str]]:
    """Yield the warnings about a scenario as (path, message)."""
    vms = {vm.name: vm for group in scenario.groups for vm in group.vms}
    for event in scenario.events:
        yield from (((*event.place, *path), text) for path, text in event_warnings(event, vms, scenario.knobs))
    yield from instance_warnings(scenario.groups)


def event_warnings(event: EventPlan, vms: Mapping[str, Vm], knobs: Knobs) -> Found:
    """Yield the warnings about an event of ``vms``."""
    count = len(event.resources)
    if event.type == "Terminate":
        notice = knobs.notice_overrides["Terminate"] if event.notice is None else event.notice
        if event.starts == BY_NOTICE and not _LEAST_NOTICE <= notice <= _LARGEST_NOTICE:
            given = duration_text(notice)
            yield ("notice",), f"{given} is not a notice of a Terminate event on Azure: 5 to 15 minutes (reference 2.4)"
        if count > 1:
            yield ("resources",), f"{count} VMs; on Azure a Terminate event has one instance (reference 2.2.8)"
    if len({vms[name].placement_group for name in event.resources}) > 1:
        text = "these VMs have different placement groups; Azure documents no such event (reference 3.1.9)"
        yield ("resources",), text


def instance_warnings(groups: Iterable[Group]) -> Found:
    """Yield the values of ``instance`` that Azure does not show (docs/reference/scheduled-events.md 3.3)."""
    for group in groups:
        path: Path = ("groups", group.name)
        owners = [(path, group.instance), *(((*path, "vms", vm.name), vm.instance) for vm in group.vms)]
        for here, instance in owners:
            if group.is_classic and "compute" in instance:
                text = "a VM of a cloud_service has no compute in its instance metadata (reference 3.3.6)"
                yield (*here, "instance", "compute"), text
            yield from _of_members(instance, MEMBERS, (*here, "instance"))


def _of_members(value: Mapping[str, Any], members: Mapping[str, Member], path: Path) -> Found:
    where = next((str(each) for each in reversed(path) if isinstance(each, str)), "")
    for name, each in value.items():
        if name in members:
            yield from _of_member(each, members[name], (*path, name))
        else:
            hint = suggestion(str(name), members)
            if not hint and len(members) <= _MOST_SHOWN:
                hint = f"; known members: {', '.join(sorted(members))}"
            yield (*path, name), f"Azure documents no member {name} of {where} (reference 3.3){hint}"


def _of_member(value: Any, member: Member, path: Path) -> Found:
    if value is None:
        return
    if member.is_value:
        if isinstance(value, (Mapping, list)):
            yield path, "Azure shows a text (reference 3.3)"
        return
    if member.is_list and not isinstance(value, list):
        yield path, "Azure shows a list of mappings (reference 3.3)"
        return
    objects = [((*path, index), item) for index, item in enumerate(value)] if member.is_list else [(path, value)]
    for where, each in objects:
        if isinstance(each, Mapping):
            yield from _of_members(each, member.members, where)
        else:
            yield where, "Azure shows a mapping (reference 3.3)"
