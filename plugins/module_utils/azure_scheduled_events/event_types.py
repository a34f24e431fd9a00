# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The types of events, and what an event of each type does to a VM (docs/reference/scheduled-events.md 2.2)."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, Collection


class Nature(Enum):
    """What an event does to a VM."""

    ADVISES = "advises"
    INTERRUPTS = "interrupts"
    REMOVES = "removes"


# the least severe type first
NATURES = {
    "SpotRebalanceRecommendation": Nature.ADVISES,
    "Freeze": Nature.INTERRUPTS,
    "Reboot": Nature.INTERRUPTS,
    "Redeploy": Nature.INTERRUPTS,
    "Preempt": Nature.REMOVES,
    "Terminate": Nature.REMOVES,
}
EVENT_TYPES = tuple(NATURES)
_NATURES_FOLDED = {name.casefold(): nature for name, nature in NATURES.items()}
_RANKS_FOLDED = {name.casefold(): rank for rank, name in enumerate(EVENT_TYPES)}
# a type that Azure may introduce; a list in one text, or a pattern, is none
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
# of such a type; "rebot" has 0.91 with Reboot, "Hibernate" 0.67 with Terminate
_SIMILAR = 0.8


def nature_of(event_type: str) -> Nature:
    """Return the nature of a type in any letter case; one that is unknown interrupts."""
    return _NATURES_FOLDED.get(event_type.casefold(), Nature.INTERRUPTS)


def advises(event_type: str) -> bool:
    """Return True if an event of this type only advises: without being named, it is shown and nothing else."""
    return nature_of(event_type) is Nature.ADVISES


def severity(event_type: str) -> int:
    """Return the rank of a type, the least severe first; one that is unknown counts as the worst."""
    return _RANKS_FOLDED.get(event_type.casefold(), len(EVENT_TYPES))


def is_chosen(event_type: str, types: Collection[str] | None) -> bool:
    """Return True if a list names the type in any letter case; for None, if the type does not only advise."""
    if types is None:
        return not advises(event_type)
    return event_type.casefold() in {name.casefold() for name in types}


def parse_event_type(value: Any) -> str:
    """Return a type in Azure's spelling.

    The letter case of the name does not count. A name that is not in EVENT_TYPES is returned as it is: Azure may have
    introduced the type.

    Raises:
        ValueError: the value is not a name of letters and digits, or is similar to a known type, which the text names.
    """
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"expected an event type such as Reboot, not {value!r}")
    for known in EVENT_TYPES:
        if known.casefold() == value.casefold():
            return known
    from .values import suggestion  # only needed for an unknown type

    similar = suggestion(value, EVENT_TYPES, _SIMILAR)
    if similar is not None:
        raise ValueError(f"unknown event type {value!r}; did you mean {similar}?")
    return value


def warning_about(name: str) -> str | None:
    """Return a sentence for the user who named a type that is unknown, in any letter case, or None."""
    event_type = parse_event_type(name)
    if event_type in EVENT_TYPES:
        return None
    return f"event type {event_type!r} is unknown; no rule approves it. There are: {', '.join(EVENT_TYPES)}"
