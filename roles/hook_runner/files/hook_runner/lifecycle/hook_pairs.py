# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Pairs of a prepare hook and the recover hook that undoes its effect. Pure.

A pair has the same name, at best with its number: `prepare/21-haproxy` and `recover/79-haproxy`.
"""

from __future__ import annotations

import re
from typing import Collection, Mapping, Sequence

from hook_runner.hooks.discovery import Hook
from hook_runner.records import PREPARE, RECOVER

_NUMBER = re.compile(r"^[0-9]+-(?=.)")
_OPPOSITE = {PREPARE: RECOVER, RECOVER: PREPARE}


def without_number(name: str) -> str:
    """Return the name of a hook without its leading number."""
    return _NUMBER.sub("", name)


def partner(hooks: Mapping[str, Sequence[Hook]], stage: str, name: str) -> str | None:
    """Return the name of the hook that is a pair with this one, or None.

    It is the hook of the same full name; without one, that of the same name without the number, if it is the
    only one and no other hook of this stage could be its partner. Hooks of other stages than prepare and
    recover have no partner. The hook of this name may have been removed since it ran.
    """
    if stage not in _OPPOSITE:
        return None
    return _partner(name, _names(hooks, stage), _names(hooks, _OPPOSITE[stage]))


def is_same_preparation(hooks: Mapping[str, Sequence[Hook]], ran: str, name: str) -> bool:
    """Return True if a prepare hook that ran is the hook of this name, which may have a new number since."""
    if ran == name:
        return True
    return ran not in _names(hooks, PREPARE) and without_number(ran) == without_number(name)


def _partner(name: str, own: Collection[str], others: Collection[str]) -> str | None:
    if name in others:
        return name
    bare = without_number(name)
    candidates = [other for other in others if other not in own and without_number(other) == bare]
    rivals = [each for each in own if each not in others and each != name and without_number(each) == bare]
    return candidates[0] if len(candidates) == 1 and not rivals else None


def _names(hooks: Mapping[str, Sequence[Hook]], stage: str) -> frozenset[str]:
    return frozenset(hook.name for hook in hooks.get(stage, ()))
