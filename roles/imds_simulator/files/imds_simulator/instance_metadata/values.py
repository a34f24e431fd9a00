# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Operations on the values of instance metadata, whichever members they have.

See docs/reference/scheduled-events.md 3.3.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from ..instance_members import Member


def merge(base: Any, override: Any) -> Any:
    """Return ``base`` with the values of ``override``: objects are merged, other values replaced."""
    if not isinstance(base, Mapping) or not isinstance(override, Mapping):
        return override
    return {**base, **{key: merge(base.get(key), value) for key, value in override.items()}}


def complete(value: Any, member: Member) -> Any:
    """Return ``value`` with every member that it lacks: an empty text, an empty list, or an object of these.

    A value of another shape than ``member`` stays as it is.
    """
    if value is None:
        value = "" if member.is_value else [] if member.is_list else {}
    if member.is_list:
        return [_complete_object(each, member) for each in value] if isinstance(value, (list, tuple)) else value
    return value if member.is_value else _complete_object(value, member)


def _complete_object(value: Any, member: Member) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {**value, **{name: complete(value.get(name), each) for name, each in member.members.items()}}


def at_version(value: Any, members: Mapping[str, Member], version: str) -> Any:
    """Return ``value`` without the members that ``version`` does not have yet.

    Members that are not in ``members`` stay: the scenario added them.
    """
    if isinstance(value, list):
        return [at_version(each, members, version) for each in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: at_version(each, members[name].members, version) if name in members else each
        for name, each in value.items()
        if name not in members or members[name].since <= version
    }


def strings(value: Any) -> Any:
    """Return ``value`` with every primitive as a text, and the members of objects in the order of their names."""
    if isinstance(value, Mapping):
        return {str(key): strings(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, (list, tuple)):
        return [strings(each) for each in value]
    return text(value)


def text(value: Any) -> str:
    """Return a primitive as instance metadata shows it; binary data is base64, as in ``userData``."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
