# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The types of events, and what an event of each type does to a VM (docs/reference/scheduled-events.md 2.2).

It needs the standard library only: the ready hooks have a link to this file, and nothing else of the helper.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import NamedTuple


class Nature(Enum):
    """What an event does to a VM."""

    ADVISES = "advises"
    INTERRUPTS = "interrupts"
    REMOVES = "removes"


class _EventType(NamedTuple):
    nature: Nature
    severity: int


# the only list of types; severity counts from 1, because 0 is that of an unknown type
_TYPES = {
    "SpotRebalanceRecommendation": _EventType(Nature.ADVISES, 1),
    "Freeze": _EventType(Nature.INTERRUPTS, 2),
    "Reboot": _EventType(Nature.INTERRUPTS, 3),
    "Redeploy": _EventType(Nature.INTERRUPTS, 4),
    "Preempt": _EventType(Nature.REMOVES, 5),
    "Terminate": _EventType(Nature.REMOVES, 5),
}
_UNKNOWN = _EventType(Nature.INTERRUPTS, 0)
EVENT_TYPES = tuple(_TYPES)
_TYPES_FOLDED = {name.casefold(): known for name, known in _TYPES.items()}


def nature_of(event_type: str) -> Nature:
    """Return the nature of a type in any letter case; one that is unknown interrupts."""
    return _TYPES_FOLDED.get(event_type.casefold(), _UNKNOWN).nature


def advises(event_type: str) -> bool:
    """Return True if an event of this type only advises: without being named, it is shown and nothing else."""
    return nature_of(event_type) is Nature.ADVISES


def removes_vm(event_type: str) -> bool:
    """Return True if an event of this type removes its VMs."""
    return nature_of(event_type) is Nature.REMOVES


def severity(event_type: str) -> int:
    """Return the rank of a type in any letter case: 0 for an unknown type, more for a worse one."""
    return _TYPES_FOLDED.get(event_type.casefold(), _UNKNOWN).severity


def is_chosen(event_type: str, types: Collection[str] | None) -> bool:
    """Return True if a list names the type in any letter case; for None, if the type does not only advise."""
    if types is None:
        return not advises(event_type)
    return event_type.casefold() in {name.casefold() for name in types}
