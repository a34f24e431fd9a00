# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Operations on the values of instance metadata (docs/reference/scheduled-events.md 3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..instance_members import Member


def merge(base: Any, override: Any) -> Any:
    """Return ``base`` with the values of ``override``: objects are merged, other values replaced."""
    if not isinstance(base, Mapping) or not isinstance(override, Mapping):
        return override
    return {**base, **{key: merge(base.get(key), value) for key, value in override.items()}}


def shown(value: Mapping[str, Any], members: Mapping[str, Member], version: str) -> dict[str, Any]:
    """Return an object as ``version`` shows it: every member, in the order of the names, and primitives as texts.

    A missing member is an empty text, list or object. A member that is not in ``members``, because the scenario
    added it, stays.
    """
    result = {}
    for name in sorted({*value, *members}, key=str):
        if name not in members:
            result[str(name)] = strings(value[name])
        elif members[name].since <= version:
            result[name] = _shown_member(value.get(name), members[name], version)
    return result


def _shown_member(value: Any, member: Member, version: str) -> Any:
    """Return the value of ``member`` as ``version`` shows it; a value of another shape stays."""
    if value is None:
        value = "" if member.is_value else [] if member.is_list else {}
    if member.is_list and isinstance(value, (list, tuple)):
        return [shown(each, member.members, version) if isinstance(each, Mapping) else strings(each) for each in value]
    if isinstance(value, Mapping) and not member.is_list and not member.is_value:
        return shown(value, member.members, version)
    return strings(value)


def strings(value: Any) -> Any:
    """Return ``value`` with every primitive as a text, and the members of objects in the order of their names."""
    if isinstance(value, Mapping):
        return {str(key): strings(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, (list, tuple)):
        return [strings(each) for each in value]
    return text(value)


def text(value: Any) -> str:
    """Return a primitive as instance metadata shows it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
