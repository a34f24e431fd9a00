# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Connects the parts of the push. The main loop calls it; it never waits for the network."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any, Callable

from azure_scheduled_events.document import EventDocument
from azure_scheduled_events.timestamps import as_utc_text
from hook_runner.clock import ServerClock
from hook_runner.log import Log
from hook_runner.push.change import change_body
from hook_runner.push.delivery_queue import (
    DELIVERED,
    FAILED,
    REFUSED,
    SPOOL_FULL,
    TOO_OLD,
    Answer,
    Delivery,
    DeliveryQueue,
)
from hook_runner.push.reported_events import ReportedEvents
from hook_runner.push.spool import Content, Spool, Vm

_WHY = {
    REFUSED: "the endpoint refused them",
    SPOOL_FULL: "the spool has reached push_spool_changes",
    TOO_OLD: "they are older than push_spool_age",
}


class Pusher:
    """Finds the changes of events, keeps them in the spool, and hands one after the other to the sender.

    Args:
        shown_url: of the endpoint, for status and log.
        spool: the file.
        queue: empty; decides what is sent when.
        clock: the server's clock.
        log: gets a line when deliveries begin to fail, when they succeed again, and when one is lost.
        send: hands a delivery to the sender; the answer arrives by `answered`.

    Attributes:
        counts: attempts by DELIVERED and FAILED, and lost deliveries by their reason.
        delivered_at: aware time of the last success; None before the first.
    """

    def __init__(
        self,
        shown_url: str,
        spool: Spool,
        queue: DeliveryQueue,
        clock: ServerClock,
        log: Log,
        send: Callable[[Delivery], None],
    ) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.delivered_at: datetime | None = None
        self._shown_url, self._spool, self._queue = shown_url, spool, queue
        self._clock, self._log, self._send = clock, log, send
        self._content: Content | None = None
        self._reported = ReportedEvents({})
        self._vm: Vm | None = None
        # whether no document was compared since the events were read from the file
        self._is_behind = True
        self._in_flight: int | None = None
        self._error, self._error_since = "", ""

    @property
    def pending(self) -> int:
        """The number of deliveries that wait."""
        return len(self._queue.deliveries)

    @property
    def spool_error(self) -> str:
        """Why the file lacks something; "" while it has everything."""
        return self._spool.error

    def awaits_observation(self) -> bool:
        """Return True if it needs the next document even if that is unchanged."""
        return self._is_behind or self._reported.awaits_observation()

    def identified(self, name: str, vm_id: str) -> None:
        """Take over which VM this is. Nothing is reported or sent before."""
        self._vm = Vm(name, vm_id)
        if self._content is None:
            if not self._spool.error:
                self._load()
        elif self._content.vm != self._vm:
            self._adopt(self._content)

    def observe(self, document: EventDocument) -> None:
        """Report the changes from the last document to this one."""
        if self._content is None or self._vm is None:
            return
        self._is_behind = False
        now = self._clock.now()
        found = self._reported.compare(document, now.timestamp())
        if not found:
            return
        keys, numbers = [], []
        for kind, reported in found:
            made = change_body(kind, reported.event, reported.number, self._vm.name, now)
            delivery = self._queue.add(made.id, reported.event.key, now.timestamp(), made.body)
            keys.append(reported.event.key)
            numbers.append(delivery.number)
        keys += self._reported.forget_ended(now.timestamp())
        self._write(keys, numbers + self._drop_excess())
        self.tick()

    def tick(self) -> None:
        """Read or write a spool that could not be read or written, and send the delivery that is due."""
        if self._vm is None:
            return
        if self._content is None:
            if self._spool.is_due():
                self._load()
            return
        dropped = self._drop_excess()
        if dropped or self._spool.is_due():
            self._write([], dropped)
        if self._in_flight is None:
            delivery = self._queue.next(self._clock.monotonic())
            if delivery is not None:
                self._in_flight = delivery.number
                self._send(delivery)

    def due_in(self) -> float | None:
        """Return the seconds until `tick` has something to do; None if time alone brings nothing."""
        times = [] if self._in_flight is not None else [self._queue.due_in(self._clock.monotonic())]
        if self._spool.error:
            times.append(1.0)
        return min((each for each in times if each is not None), default=None)

    def answered(self, answer: Answer) -> None:
        """Note the result of an attempt."""
        self._in_flight = None
        known = answer.number in self._queue.deliveries
        result = self._queue.answered(answer, self._clock.monotonic())
        self.counts[DELIVERED if result == DELIVERED else FAILED] += 1
        if result == DELIVERED:
            self.delivered_at = self._clock.now()
            if self._error:
                self._log.write("notice", f"push: {self._shown_url} takes changes again; {self.pending} wait")
            self._error = self._error_since = ""
        else:
            if answer.error != self._error:
                self._log.write("warning", f"push: {answer.error}; {self.pending} changes wait")
            self._error, self._error_since = answer.error, self._error_since or as_utc_text(self._clock.now())
        if result == REFUSED:
            self._count_lost(REFUSED, 1)
        if known and result != FAILED:
            self._write([], [answer.number])

    def as_data(self) -> dict[str, Any]:
        """Return the state for `status`.

        Keys: url, pending, oldest (time of the oldest delivery that waits, or null), delivered;
        failed (attempts since the start), lost (deliveries since the start, by reason);
        last_delivered_at, error and error_since (null while the last attempt succeeded),
        spool_error (null while the file has everything).
        """
        oldest = min((each.created for each in self._queue.deliveries.values()), default=None)
        return {
            "url": self._shown_url,
            "pending": self.pending,
            "oldest": None if oldest is None else as_utc_text(datetime.fromtimestamp(oldest, timezone.utc)),
            "delivered": self.counts[DELIVERED],
            "failed": self.counts[FAILED],
            "lost": {reason: self.counts[reason] for reason in _WHY},
            "last_delivered_at": None if self.delivered_at is None else as_utc_text(self.delivered_at),
            "error": self._error or None,
            "error_since": self._error_since or None,
            "spool_error": self._spool.error or None,
        }

    def close(self) -> None:
        """Close the spool. A delivery whose answer has not come is sent again by the next process."""
        self._spool.close()

    def _load(self) -> None:
        content = self._spool.load()
        if content is not None:
            self._adopt(content)

    def _adopt(self, content: Content) -> None:
        """Continue with the content of the file, unless it is another VM's."""
        vm = self._vm
        assert vm is not None
        if content.vm is not None and vm.is_other(content.vm):
            count = len(content.deliveries)
            text = (
                f"push: the spool is that of the VM {content.vm.name}; it is emptied, and {count} changes are dropped"
            )
            self._log.write("warning", text)
            content = Content(None, {}, {})
        self._reported = ReportedEvents(content.reported)
        self._queue.load(list(content.deliveries.values()))
        self._is_behind = True
        is_new = content.vm != vm
        self._content = Content(vm, self._reported.events, self._queue.deliveries)
        if is_new:
            self._spool.write_all(self._content)

    def _write(self, keys: Sequence[str], numbers: Sequence[int]) -> None:
        if self._content is not None:
            self._spool.write(self._content, keys, numbers)

    def _drop_excess(self) -> list[int]:
        """Drop deliveries beyond the limits; return their numbers."""
        found = self._queue.drop_excess(self._clock.now().timestamp(), self._in_flight)
        for reason, dropped in found.items():
            self._count_lost(reason, len(dropped))
        return [each.number for dropped in found.values() for each in dropped]

    def _count_lost(self, reason: str, count: int) -> None:
        self.counts[reason] += count
        self._log.write("error", f"push: {count} changes are dropped undelivered: {_WHY[reason]}")
