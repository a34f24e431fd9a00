# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Decides which event is first, which one a recovery is for, and for which a preparation counts. Nothing else does."""

from __future__ import annotations

from typing import Callable, Iterable, Iterator, NamedTuple, TypeVar

from .event_types import advises, severity

T = TypeVar("T")

# seconds; of the events whose NotBefore is at most so much later than the nearest one, the most severe is first
CLOSE = 30.0


class Urgency(NamedTuple):
    """The facts that decide about the place of an event.

    Attributes:
        event_type: in any letter case.
        seconds_left: seconds until NotBefore; 0 or less if it has passed or is unknown.
        key: the folded id of the event.
    """

    event_type: str
    seconds_left: float
    key: str


def most_urgent_first(items: Iterable[T], urgency: Callable[[T], Urgency]) -> list[T]:
    """Return the items in the order in which their events are handled.

    The event with the nearest NotBefore is first, or the most severe one of those within CLOSE behind it; then the same
    among the others. Events whose NotBefore has passed or is unknown come after these, the most severe one first: their
    hooks would delay those of an event that still leaves time. Events that only advise come last. The key decides
    between equals.
    """
    found = [(urgency(item), item) for item in items]
    return [
        item
        for is_advice in (False, True)
        for item in _in_order([each for each in found if advises(each[0].event_type) is is_advice])
    ]


def most_severe(items: Iterable[T], event_type: Callable[[T], str]) -> T | None:
    """Return the item with the most severe event, the last of several: a recovery is for it. None without an item."""
    ranked = [(severity(event_type(item)), number, item) for number, item in enumerate(items)]
    return max(ranked, key=lambda each: each[:2])[2] if ranked else None


def counts_for(done_type: str, needed_type: str) -> bool:
    """Return True if a preparation for one type of event counts for another: this one is not more severe.

    How severe an unknown type is, is unknown. For it only a preparation for the same type counts.
    """
    if done_type.casefold() == needed_type.casefold():
        return True
    return 0 < severity(needed_type) <= severity(done_type)


def _in_order(found: list[tuple[Urgency, T]]) -> Iterator[T]:
    """Yield the items whose NotBefore is still to come, and then the others."""
    # by severity, the nearest one last
    ahead: dict[int, list[tuple[float, T]]] = {}
    for own, item in sorted(found, key=lambda each: (each[0].seconds_left, each[0].key), reverse=True):
        if own.seconds_left > 0:
            ahead.setdefault(severity(own.event_type), []).append((own.seconds_left, item))
    while ahead:
        close = min(same[-1][0] for same in ahead.values()) + CLOSE
        first = max(rank for rank, same in ahead.items() if same[-1][0] <= close)
        yield ahead[first].pop()[1]
        if not ahead[first]:
            del ahead[first]
    late = (each for each in found if each[0].seconds_left <= 0)
    for _own, item in sorted(late, key=lambda each: (-severity(each[0].event_type), each[0].key)):
        yield item
