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


def shown(value: Any, members: Mapping[str, Member], version: str) -> Any:
    """Return a value as ``version`` shows it: objects in the order of the names, and primitives as texts.

    An object has every member of ``members``; a missing one is an empty text, list or object. Other members, which
    the scenario added, stay.
    """
    if isinstance(value, Mapping):
        names = sorted({*value, *members}, key=str)
        return {
            str(name): _shown_member(value.get(name), members.get(name), version)
            for name in names
            if name not in members or members[name].since <= version
        }
    if isinstance(value, (list, tuple)):
        return [shown(each, {}, version) for each in value]
    return text(value)


def _shown_member(value: Any, member: Member | None, version: str) -> Any:
    """Return the value of ``member``, None for an unknown one; a value of another shape stays."""
    if member is None:
        return shown(value, {}, version)
    if value is None:
        value = "" if member.is_value else [] if member.is_list else {}
    if member.is_list and isinstance(value, (list, tuple)):
        return [shown(each, member.members, version) for each in value]
    return shown(value, {} if member.is_list else member.members, version)


def text(value: Any) -> str:
    """Return a primitive as instance metadata shows it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
