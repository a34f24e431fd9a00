# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Warnings about values of ``instance`` that Azure does not show.

They are not errors: a scenario may add members and change shapes to test a client.
See docs/reference/scheduled-events.md 3.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..instance_members import MEMBERS, Member
from ..suggestions import suggestion
from .yaml_lines import Path

_MOST_SHOWN = 20


def instance_warnings(data: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield (path, text) for each unlikely value of ``instance`` in a scenario, which fits the schema."""
    for group_name, group in data["groups"].items():
        path: Path = ("groups", group_name)
        classic = group.get("kind") == "cloud_service"
        owners = [(path, group), *(((*path, "vms", name), vm or {}) for name, vm in group["vms"].items())]
        for here, owner in owners:
            instance = owner.get("instance", {})
            if classic and "compute" in instance:
                text = "a VM of a cloud_service has no compute in its instance metadata (reference 3.3.6)"
                yield (*here, "instance", "compute"), text
            yield from _of_members(instance, MEMBERS, (*here, "instance"))


def _of_members(value: Mapping[str, Any], members: Mapping[str, Member], path: Path) -> Iterator[tuple[Path, str]]:
    where = next((str(each) for each in reversed(path) if isinstance(each, str)), "")
    for name, each in value.items():
        if name in members:
            yield from _of_member(each, members[name], (*path, name))
        else:
            hint = suggestion(str(name), members)
            if not hint and len(members) <= _MOST_SHOWN:
                hint = f"; known members: {', '.join(sorted(members))}"
            yield (*path, name), f"Azure documents no member {name} of {where} (reference 3.3){hint}"


def _of_member(value: Any, member: Member, path: Path) -> Iterator[tuple[Path, str]]:
    if value is None:
        return
    if member.is_list:
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from _of_object(item, member, (*path, index))
        else:
            yield path, "Azure shows a list of mappings (reference 3.3)"
    elif member.is_value:
        if isinstance(value, (Mapping, list)):
            yield path, "Azure shows a text (reference 3.3)"
    else:
        yield from _of_object(value, member, path)


def _of_object(value: Any, member: Member, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, Mapping):
        yield from _of_members(value, member.members, path)
    else:
        yield path, "Azure shows a mapping (reference 3.3)"
