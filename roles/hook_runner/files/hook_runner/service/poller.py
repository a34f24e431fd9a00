# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Asks IMDS in a thread of its own, so that a slow answer holds up nothing else."""

from __future__ import annotations

import collections
import threading
import time
from datetime import datetime
from typing import Callable, Optional, Union

from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.identity import resource_name_of, vm_id_of
from azure_scheduled_events.imds import Imds
from azure_scheduled_events.named_tuple import NamedTuple
from azure_scheduled_events.pacing import WATCHING, Pacer
from hook_runner.clock import ANSWERS_NEEDED

# one request may take so long beyond its own limit before the loop counts as stuck
STUCK_MARGIN = 20.0
_APPROVAL_TIMEOUT = 5.0
# after so long without an answer the service may have been switched off, and is slow again
# (docs/reference/scheduled-events.md 4.1.3)
_SERVICE_IDLE_LIMIT = 23 * 3600.0
_NAME_RETRY_INTERVAL = 5.0
# the first look may have to wait for minutes, while the name is known at once
_FIRST_NAME_TIMEOUT = 2.0
# the server's date is delivered when it has moved by so many seconds against this host's monotonic
# clock
_DRIFT = 2.0

# a Date header, and the monotonic time when it came
Date = tuple[Optional[datetime], float]


class DocumentReceived(NamedTuple):
    """A good document; ``at``: monotonic time of its arrival; ``dates``: of the answers that led to it, the latest last."""

    document: EventDocument
    at: float
    dates: tuple[Date, ...] = ()


class PollFailed(NamedTuple):
    """A poll without a good document; ``outage``: whether that is worth an alarm by now."""

    error: ImdsError
    outage: bool


class NameResolved(NamedTuple):
    """IMDS gave this VM's resource name, and its id or ""."""

    name: str
    vm_id: str = ""


class NameUnavailable(NamedTuple):
    """IMDS did not tell this VM's resource name, for this reason."""

    reason: str


class ApprovalAnswered(NamedTuple):
    """An approval was taken (error None) or not."""

    record_id: int
    error: ImdsError | None


class ApprovalWithheld(NamedTuple):
    """An approval was not sent: the event is not any more what was judged, or nobody knows."""

    record_id: int


PollerEvent = Union[DocumentReceived, PollFailed, NameResolved, NameUnavailable, ApprovalAnswered, ApprovalWithheld]


def _differs(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return one is not other and one != other


def confirmed(
    document: EventDocument,
    at: float,
    again: Callable[[], DocumentReceived],
    doubts: Callable[[datetime | None, float], bool],
) -> tuple[EventDocument, tuple[Date, ...]]:
    """A first document, or a later one, with as many dates as it takes to know the server's time.

    again: asks once more; raises ImdsError.
    """
    dates: list[Date] = [(document.server_time, at)]
    while doubts(*dates[0]) and len(dates) < ANSWERS_NEEDED:
        try:
            document, at, _dates = again()
        except ImdsError:
            break  # the next polls say it
        dates.append((document.server_time, at))
    return document, tuple(dates)


class Poller(threading.Thread):
    """Polls until the process ends, and sends approvals in between.

    A good document that says nothing new is delivered only while somebody is `attentive`, since
    waking another thread every second would cost as much as asking.

    A document whose date contradicts what the last one said is delivered as well, so that the
    server's clock is known. Before the first one is delivered, a date that is doubted is asked for
    again at once: how much time an event leaves depends on it.

    Args:
        imds: the client, used by this thread alone.
        interval: seconds between polls.
        longest_first, longest: seconds that the client's call for events may take until there was a
        good answer, and from then on.
        deliver: takes what was learnt; called in this thread.
        needs_name: whether the VM's name has to be found out.
        doubts: whether one answer with this date, at this monotonic time, does not say what time it
            is; called in this thread.
        clock: monotonic seconds.
        sleep: waits some seconds, for the rate limit.
    """

    def __init__(
        self,
        imds: Imds,
        interval: float,
        longest_first: float,
        longest: float,
        deliver: Callable[[PollerEvent], None],
        needs_name: bool,
        doubts: Callable[[datetime | None, float], bool] = lambda date, at: False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(name="poller", daemon=True)
        self._imds = imds
        self._clock = clock
        self._pacer = Pacer(imds, interval, clock, sleep, retries=WATCHING)
        self._deliver = deliver
        self._longest_first, self._longest = longest_first, longest
        self._needs_name = needs_name
        self._doubts = doubts
        self._offset: float | None = None
        self._name_after = float("-inf")
        self._wake = threading.Event()
        self._approvals: collections.deque[tuple[int, ScheduledEvent]] = collections.deque()
        self._last: EventDocument | None = None
        self._deliver_next = True
        self._last_poll_succeeded = False
        self._deliver_unchanged = True
        self.last_good: float | None = None
        self._stuck_after = self._clock() + STUCK_MARGIN

    def approve(self, record_id: int, event: ScheduledEvent) -> None:
        """Send an approval soon, if the event still is as it is given here; `Answered` or `Withheld` tells what became of it."""
        self._approvals.append((record_id, event))
        self._wake.set()

    def deliver_unchanged(self, wanted: bool) -> None:
        """Deliver documents without a change as well, as long as they are wanted. For any thread."""
        self._deliver_unchanged = wanted

    def is_stuck(self) -> bool:
        """Whether the loop has ended, or has not come round within the limits of its requests."""
        return self._clock() > self._stuck_after or (self.ident is not None and not self.is_alive())

    def run(self) -> None:
        while True:
            pause = self.poll_once()
            if pause > 0:
                self._wake.wait(pause)

    def poll_once(self) -> float:
        """Do what one turn of the loop does: send an approval that waits, ask for the events; seconds until the next turn."""
        began = self._clock()
        self._wake.clear()
        if self._approvals:
            self._send_approval(*self._approvals.popleft())
        if self._needs_name and self._name_after == float("-inf"):
            self._ask_name(_FIRST_NAME_TIMEOUT)
        self._poll()
        if self._needs_name and self._clock() >= self._name_after:
            self._ask_name(self._longest)
        # one approval at a time, and a look after each: no queue of them keeps the next event
        # waiting
        pause = 0.0 if self._approvals else max(0.0, began + self._pacer.delay(self._knows_events()) - self._clock())
        self._expect_return_within(pause)
        return pause

    def _expect_return_within(self, seconds: float) -> None:
        """The loop will be back here within so many seconds, and some slack."""
        self._stuck_after = self._clock() + seconds + STUCK_MARGIN

    def _knows_events(self) -> bool:
        return self._last is not None and bool(self._last.events)

    def _poll(self) -> None:
        answered = self.last_good is not None and self._clock() - self.last_good < _SERVICE_IDLE_LIMIT
        self._expect_return_within(self._longest if answered else self._longest_first)
        try:
            document = self._pacer.call(self._imds.events)
            now = self._clock()
            dates: tuple[Date, ...] = ((document.server_time, now),)
            if self._last is None:
                document, dates = confirmed(document, now, self._ask_again, self._doubts)
        except ImdsError as error:
            self._poll_failed(error)
            return
        except Exception as error:  # pylint: disable=broad-exception-caught  # whatever it is, the next event must not be missed for it
            self._poll_failed(ImdsError(f"the answer of IMDS led to an error of this program: {error!r}"))
            return
        now = self.last_good = dates[-1][1]
        last = self._last
        is_news = last is None or _differs(document.events, last.events) or _differs(document.warnings, last.warnings)
        self._last, self._last_poll_succeeded = document, True
        if self._has_drifted(document, now) or is_news or self._deliver_next or self._deliver_unchanged:
            self._deliver_next = False
            self._deliver(DocumentReceived(document, now, dates))

    def _ask_again(self) -> DocumentReceived:
        self._expect_return_within(self._longest)
        return DocumentReceived(self._pacer.call(self._imds.events), self._clock())

    def _has_drifted(self, document: EventDocument, at: float) -> bool:
        """Whether the date is not what the last one that was delivered for this reason foretold."""
        if document.server_time is None:
            return False
        offset = document.server_time.timestamp() - at
        if self._offset is not None and abs(offset - self._offset) <= _DRIFT:
            return False
        self._offset = offset
        return True

    def _poll_failed(self, error: ImdsError) -> None:
        self._deliver_next = True  # it says that the trouble is over
        self._last_poll_succeeded = False
        self._deliver(PollFailed(error, self._pacer.is_outage()))

    def _ask_name(self, within: float) -> None:
        self._expect_return_within(within)
        vm_id = ""
        try:
            instance = self._pacer.call(self._imds.instance, within=within)
            name, vm_id = resource_name_of(instance), vm_id_of(instance)
            reason = "IMDS has no compute.name for this VM"
        except ImdsError as error:
            name, reason = None, str(error)
        if name is None:
            self._name_after = self._clock() + _NAME_RETRY_INTERVAL
            self._deliver(NameUnavailable(reason))
        else:
            self._needs_name = False
            self._deliver_next = True  # an event that came before the name was nobody's
            self._deliver(NameResolved(name, vm_id))

    def _send_approval(self, record_id: int, event: ScheduledEvent) -> None:
        if not self._is_unchanged(event):
            self._deliver(ApprovalWithheld(record_id))
            return
        self._expect_return_within(_APPROVAL_TIMEOUT)
        try:
            self._pacer.call(self._imds.approve, [event.event_id], within=_APPROVAL_TIMEOUT)
        except ImdsError as error:
            self._deliver(ApprovalAnswered(record_id, error))
        else:
            self._deliver(ApprovalAnswered(record_id, None))

    def _is_unchanged(self, event: ScheduledEvent) -> bool:
        """Whether the last look brought a good document that has the event as it was judged, but for its time."""
        now = self._last.find(event.event_id) if self._last is not None and self._last_poll_succeeded else None
        return now is not None and now._replace(not_before=None) == event._replace(not_before=None)
