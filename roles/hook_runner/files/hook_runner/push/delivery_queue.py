# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Decides which delivery is sent next and when. Pure: the clock and the random number are passed in.

The changes of one event are delivered in their order. A failure that concerns one delivery delays the
later ones of its event; a failure of the endpoint delays all.
"""

from __future__ import annotations

from typing import Callable

from azure_scheduled_events.named_tuple import NamedTuple

# seconds between two attempts: the first, doubled after each failure up to the longest
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
# seconds: a longer Retry-After counts as this
LONGEST_RETRY_AFTER = 3600.0
# attempts of a delivery that the endpoint refuses because of its content
ATTEMPTS_IF_REFUSED = 3

# the endpoint or the credentials are wrong, and an operator can correct that: the deliveries wait
_WRONG_ENDPOINT = (401, 403, 404, 405, 407, 410)
_BUSY = (408, 429, 502, 503, 504)

DELIVERED = "delivered"
FAILED = "failed"
REFUSED = "refused"
SPOOL_FULL = "spool_full"
TOO_OLD = "too_old"
DISCARD_REASONS = (REFUSED, SPOOL_FULL, TOO_OLD)


class Delivery(NamedTuple):
    """A change on its way.

    Attributes:
        number: of this delivery; later ones have greater numbers.
        id: as in the body.
        key: of the event.
        created: seconds since 1970.
        body: the JSON.
    """

    number: int
    id: str
    key: str
    created: float
    body: bytes


class Answer(NamedTuple):
    """The result of one attempt.

    Attributes:
        number: of the delivery.
        status: of the HTTP answer; None if there was none.
        error: a sentence; "" if it was delivered.
        retry_after: seconds that the endpoint requested, or None.
    """

    number: int
    status: int | None
    error: str = ""
    retry_after: float | None = None


class _Wait(NamedTuple):
    failures: int
    until: float


_NO_WAIT = _Wait(0, float("-inf"))


class DeliveryQueue:
    """Deliveries that wait, the oldest first.

    Args:
        most: number of deliveries that are kept.
        longest: seconds that a delivery is kept.
        random: a number from 0 to 1; a thousand VMs must not repeat their deliveries at the same moment.

    Attributes:
        deliveries: by number.
    """

    def __init__(self, most: int, longest: float, random: Callable[[], float]) -> None:
        self._most, self._longest, self._random = most, longest, random
        self.deliveries: dict[int, Delivery] = {}
        self._all = _NO_WAIT
        self._waits: dict[str, _Wait] = {}
        self._last_number = 0

    def load(self, deliveries: list[Delivery]) -> None:
        """Take in the deliveries of an earlier process."""
        self.deliveries = {each.number: each for each in sorted(deliveries, key=lambda each: each.number)}
        # the answer to a delivery of before must not be taken for that of a new one
        self._last_number = max([self._last_number, *self.deliveries])

    def add(self, id: str, key: str, created: float, body: bytes) -> Delivery:
        """Add a delivery as the last one; return it."""
        self._last_number += 1
        made = Delivery(self._last_number, id, key, created, body)
        self.deliveries[made.number] = made
        return made

    def drop_excess(self, now: float, in_flight: int | None) -> dict[str, list[Delivery]]:
        """Drop the oldest deliveries beyond the limits; return them by reason.

        Args:
            now: seconds since 1970.
            in_flight: number of the delivery that is being sent, which stays; or None.
        """
        waiting = [each for each in self.deliveries.values() if each.number != in_flight]
        old = [each for each in waiting if each.created < now - self._longest]
        rest = [each for each in waiting if each.created >= now - self._longest]
        room = self._most - (len(self.deliveries) - len(waiting))
        found = {TOO_OLD: old, SPOOL_FULL: rest[: max(0, len(rest) - room)]}
        for dropped in found.values():
            for each in dropped:
                del self.deliveries[each.number]
        return {reason: dropped for reason, dropped in found.items() if dropped}

    def next(self, now: float) -> Delivery | None:
        """Return the delivery that is due, or None; ``now``: monotonic seconds."""
        if now < self._all.until:
            return None
        return next((each for at, each in self._first_of_each_event() if at <= now), None)

    def due_in(self, now: float) -> float | None:
        """Return the seconds until a delivery is due; None if none waits."""
        soonest = min((at for at, _each in self._first_of_each_event()), default=None)
        return None if soonest is None else max(0.0, soonest - now, self._all.until - now)

    def answered(self, answer: Answer, now: float) -> str:
        """Note the result of an attempt.

        Returns:
            DELIVERED or REFUSED (it is no longer here), or FAILED (it is sent again later).
        """
        delivery = self.deliveries.get(answer.number)
        key = "" if delivery is None else delivery.key
        if answer.status is not None and 200 <= answer.status < 300:
            self.deliveries.pop(answer.number, None)
            self._waits.pop(key, None)
            self._all = _NO_WAIT
            return DELIVERED
        if concerns_endpoint(answer.status):
            self._all = self._longer(self._all, answer, now)
            return FAILED
        wait = self._longer(self._waits.get(key, _NO_WAIT), answer, now)
        if answer.status is not None and answer.status < 500 and wait.failures >= ATTEMPTS_IF_REFUSED:
            self.deliveries.pop(answer.number, None)
            self._waits.pop(key, None)
            return REFUSED
        if delivery is not None:
            self._waits[key] = wait
        return FAILED

    def _first_of_each_event(self) -> list[tuple[float, Delivery]]:
        """Return the oldest delivery of each event, with the monotonic time from which it may be sent."""
        firsts: dict[str, Delivery] = {}
        for each in self.deliveries.values():
            firsts.setdefault(each.key, each)
        self._waits = {key: wait for key, wait in self._waits.items() if key in firsts}
        return [(self._waits.get(key, _NO_WAIT).until, each) for key, each in firsts.items()]

    def _longer(self, wait: _Wait, answer: Answer, now: float) -> _Wait:
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(wait.failures, 16)) * (0.5 + 0.5 * self._random())
        if answer.retry_after is not None:
            pause = max(pause, min(answer.retry_after, LONGEST_RETRY_AFTER))
        return _Wait(wait.failures + 1, now + pause)


def concerns_endpoint(status: int | None) -> bool:
    """Return True if a failure with this status concerns all deliveries; None: there was no answer."""
    return status is None or status < 400 or status in _WRONG_ENDPOINT or status in _BUSY
