# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Decides which of several events is first, and for which event a preparation counts. Nothing else decides it."""

from __future__ import annotations

from heapq import heappop, heappush
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


def counts_for(done_type: str, needed_type: str) -> bool:
    """Return True if a preparation for one type of event counts for another: this one is not more severe.

    How severe an unknown type is, is unknown. For it only a preparation for the same type counts.
    """
    if done_type.casefold() == needed_type.casefold():
        return True
    return 0 < severity(needed_type) <= severity(done_type)


def _in_order(found: list[tuple[Urgency, T]]) -> Iterator[T]:
    """Yield the items whose NotBefore is still to come, and then the others."""
    ahead = sorted((each for each in found if each[0].seconds_left > 0), key=lambda each: each[0].seconds_left)
    # those that are close to the nearest one that is left, the most severe first; the last member is the index
    close: list[tuple[int, float, str, int]] = []
    taken: set[int] = set()
    nearest = end = 0
    for _each in ahead:
        while nearest in taken:
            nearest += 1
        while end < len(ahead) and ahead[end][0].seconds_left <= ahead[nearest][0].seconds_left + CLOSE:
            own = ahead[end][0]
            heappush(close, (-severity(own.event_type), own.seconds_left, own.key, end))
            end += 1
        first = heappop(close)[-1]
        taken.add(first)
        yield ahead[first][1]
    late = (each for each in found if each[0].seconds_left <= 0)
    for _own, item in sorted(late, key=lambda each: (-severity(each[0].event_type), each[0].key)):
        yield item
