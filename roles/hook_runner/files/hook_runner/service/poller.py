# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Polls IMDS in a separate thread; therefore a slow answer does not block the main loop."""

from __future__ import annotations

import collections
import logging
import threading
import time
from datetime import datetime
from typing import Callable, NamedTuple, Optional, Union

from azure_scheduled_events.changes import holds_unchanged
from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.identity import resource_name_of, vm_id_of
from azure_scheduled_events.imds import Imds
from azure_scheduled_events.pacing import WATCHING, Pacer
from hook_runner.clock import ANSWERS_NEEDED

log = logging.getLogger(__name__)

# seconds beyond a request's own limit after which the thread counts as stuck
STUCK_MARGIN = 20.0
_APPROVAL_TIMEOUT = 5.0
# seconds without an answer after which Azure may have switched the service off: the next answer is
# slow again (docs/reference/scheduled-events.md 4.1.3)
_SERVICE_IDLE_LIMIT = 23 * 3600.0
_NAME_RETRY_INTERVAL = 5.0
# the first poll may take minutes, while IMDS knows the name at once
_FIRST_NAME_TIMEOUT = 2.0
# seconds by which the server's date must move against the monotonic clock to be delivered
_DRIFT = 2.0
_PAUSE_AFTER_PROGRAM_ERROR = 1.0

# a Date header, and the monotonic time of its arrival
Date = tuple[Optional[datetime], float]


class DocumentReceived(NamedTuple):
    """A good document, and the monotonic time of its arrival.

    `dates` are those of this answer and of those that confirmed it, the latest last.
    """

    document: EventDocument
    at: float
    dates: tuple[Date, ...] = ()


class PollFailed(NamedTuple):
    """A poll without a good document; ``outage``: whether this is worth an alarm."""

    error: ImdsError
    outage: bool


class NameResolved(NamedTuple):
    """IMDS gave this VM's resource name, and its id or ""."""

    name: str
    vm_id: str = ""


class NameUnavailable(NamedTuple):
    """IMDS did not return this VM's resource name, for this reason."""

    reason: str


class ApprovalAnswered(NamedTuple):
    """IMDS accepted the approval of the event with this key (error None) or did not."""

    key: str
    error: ImdsError | None


class ApprovalWithheld(NamedTuple):
    """An approval was not sent: the event has changed since the decision, or its state is unknown."""

    key: str


PollerEvent = Union[DocumentReceived, PollFailed, NameResolved, NameUnavailable, ApprovalAnswered, ApprovalWithheld]


def _differs(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return one is not other and one != other


def _imds_error(error: Exception) -> ImdsError:
    """Return any error as one of IMDS: the thread goes on, and the main loop reports it."""
    if isinstance(error, ImdsError):
        return error
    return ImdsError(f"the answer of IMDS causes an error of this program: {error!r}")


def confirmed(
    document: EventDocument,
    at: float,
    again: Callable[[], DocumentReceived],
    doubts: Callable[[datetime | None, float], bool],
) -> tuple[EventDocument, tuple[Date, ...]]:
    """Return a document, and the dates of as many answers as are needed to know the server's time.

    While the date of the first answer, which arrived at monotonic time `at`, is doubtful (`doubts`, see
    `Poller`), `again` polls once more, up to ANSWERS_NEEDED answers in all. A failed poll ends this.
    """
    dates: list[Date] = [(document.server_time, at)]
    while doubts(*dates[0]) and len(dates) < ANSWERS_NEEDED:
        try:
            document, at, _dates = again()
        except ImdsError:
            break  # the next polls report it
        dates.append((document.server_time, at))
    return document, tuple(dates)


class Poller(threading.Thread):
    """Polls until the process ends, and sends approvals in between.

    An unchanged document is delivered only if `deliver_unchanged` is in force: waking another thread
    each second costs as much as a poll. A document whose date contradicts the last one is always
    delivered, because it may set the server's clock. Before the first delivery the thread polls
    again at once if the date is doubtful, because the remaining time of an event depends on it.

    Args:
        imds: the client, used by this thread alone.
        interval: seconds between polls.
        longest_first: most seconds of the client's call for events before the first good answer.
        longest: the same after it.
        deliver: takes each event of this poller; called in this thread.
        needs_name: whether to request the VM's name.
        doubts: takes a date and the monotonic time of its arrival; returns whether one such answer
            does not set the clock. Called in this thread.
        clock: monotonic seconds.
        sleep: waits the given seconds, for the rate limit.
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
        self._approvals: collections.deque[ScheduledEvent] = collections.deque()
        self._last: EventDocument | None = None
        self._deliver_next = True
        self._last_poll_succeeded = False
        self._outcome = ""
        self._deliver_unchanged = True
        self.last_good: float | None = None
        self._stuck_after = self._clock() + STUCK_MARGIN

    def approve(self, event: ScheduledEvent) -> None:
        """Send an approval soon, if the event has not changed.

        `ApprovalAnswered` or `ApprovalWithheld` reports the result.
        """
        self._approvals.append(event)
        self._wake.set()

    def deliver_unchanged(self, wanted: bool) -> None:
        """Deliver documents without a change as well, as long as they are wanted. For any thread."""
        self._deliver_unchanged = wanted

    def is_stuck(self) -> bool:
        """Return True if the thread has ended, or exceeds the limits of its requests."""
        return self._clock() > self._stuck_after or (self.ident is not None and not self.is_alive())

    def run(self) -> None:
        """Poll until the process ends; no error ends the thread."""
        while True:
            try:
                pause = self.poll_once()
            except Exception as error:  # no error may end the thread, which would miss the next event
                self._poll_failed(_imds_error(error), True)
                pause = _PAUSE_AFTER_PROGRAM_ERROR
            if pause > 0:
                self._wake.wait(pause)

    def poll_once(self) -> float:
        """Send a waiting approval and poll once; return the seconds until the next poll.

        1. The oldest waiting approval is sent.
        2. If this VM's name is needed, it is requested before the first poll, with a short limit.
        3. IMDS is polled.
        4. A name that is still needed is requested again, _NAME_RETRY_INTERVAL after the last attempt.
        5. The next poll follows at once if approvals wait, otherwise after the delay of the pacer, counted from
           the start of this call.
        """
        began = self._clock()
        self._wake.clear()
        if self._approvals:
            self._send_approval(self._approvals.popleft())
        if self._needs_name and self._name_after == float("-inf"):
            self._request_name(_FIRST_NAME_TIMEOUT)
        polled_at = self._clock()
        self._poll()
        milliseconds = (self._clock() - polled_at) * 1000
        if self._needs_name and self._clock() >= self._name_after:
            self._request_name(self._longest)
        # one approval at a time, and a poll after each: a queue of approvals must not delay the next
        # event
        pause = 0.0 if self._approvals else max(0.0, began + self._pacer.delay(self._knows_events()) - self._clock())
        log.debug("poll: %s; it took %.0f ms, the next one follows in %.1f s", self._outcome, milliseconds, pause)
        self._expect_return_within(pause)
        return pause

    def _expect_return_within(self, seconds: float) -> None:
        """Count the thread as stuck if it does not call this again within these seconds and a margin."""
        self._stuck_after = self._clock() + seconds + STUCK_MARGIN

    def _knows_events(self) -> bool:
        return self._last is not None and bool(self._last.events)

    def _poll(self) -> None:
        """Poll once, and deliver the document or the failure.

        1. An answer may take longer before the first good one, and if the last good one is _SERVICE_IDLE_LIMIT
           ago.
        2. The first document is confirmed, see `confirmed`.
        3. A failure is always delivered.
        4. A document is delivered if its date contradicts the last delivered one; if its version, events or
           warnings have changed; if it is the first after the start, a failure or the name; or if unchanged
           ones are wanted.
        """
        answered = self.last_good is not None and self._clock() - self.last_good < _SERVICE_IDLE_LIMIT
        self._expect_return_within(self._longest if answered else self._longest_first)
        try:
            document = self._pacer.call(self._imds.events)
            now = self._clock()
            dates: tuple[Date, ...] = ((document.server_time, now),)
            if self._last is None:
                document, dates = confirmed(document, now, self._poll_again, self._doubts)
        except ImdsError as error:
            self._poll_failed(error, self._pacer.is_outage())
            return
        self._outcome = f"status 200, incarnation {document.incarnation}"
        now = self.last_good = dates[-1][1]
        last = self._last
        has_changed = (
            last is None
            or document.api_version != last.api_version
            or _differs(document.events, last.events)
            or _differs(document.warnings, last.warnings)
        )
        self._last, self._last_poll_succeeded = document, True
        if self._has_drifted(document, now) or has_changed or self._deliver_next or self._deliver_unchanged:
            self._deliver_next = False
            self._deliver(DocumentReceived(document, now, dates))

    def _poll_again(self) -> DocumentReceived:
        self._expect_return_within(self._longest)
        return DocumentReceived(self._pacer.call(self._imds.events), self._clock())

    def _has_drifted(self, document: EventDocument, at: float) -> bool:
        """Return True if the date differs from the one that the last delivered date predicts."""
        if document.server_time is None:
            return False
        offset = document.server_time.timestamp() - at
        if self._offset is not None and abs(offset - self._offset) <= _DRIFT:
            return False
        self._offset = offset
        return True

    def _poll_failed(self, error: ImdsError, is_outage: bool) -> None:
        self._deliver_next = True  # it reports the end of the failure
        self._last_poll_succeeded = False
        self._outcome = str(error)
        self._deliver(PollFailed(error, is_outage))

    def _request_name(self, within: float) -> None:
        self._expect_return_within(within)
        vm_id = ""
        try:
            instance = self._pacer.call(self._imds.instance, within=within)
            name, vm_id = resource_name_of(instance), vm_id_of(instance)
            reason = "IMDS has no compute.name for this VM"
        except Exception as error:
            name, reason = None, str(_imds_error(error))
        if name is None:
            self._name_after = self._clock() + _NAME_RETRY_INTERVAL
            self._deliver(NameUnavailable(reason))
        else:
            self._needs_name = False
            self._deliver_next = True  # the main loop could not assign earlier events to this VM
            self._deliver(NameResolved(name, vm_id))

    def _send_approval(self, event: ScheduledEvent) -> None:
        if not self._is_unchanged(event):
            self._deliver(ApprovalWithheld(event.key))
            return
        self._expect_return_within(_APPROVAL_TIMEOUT)
        try:
            self._pacer.call(self._imds.approve, [event.event_id], within=_APPROVAL_TIMEOUT)
        except Exception as error:
            self._deliver(ApprovalAnswered(event.key, _imds_error(error)))
        else:
            self._deliver(ApprovalAnswered(event.key, None))

    def _is_unchanged(self, event: ScheduledEvent) -> bool:
        """Return True if the last poll succeeded and has the event unchanged, apart from NotBefore."""
        now = self._last.find(event.event_id) if self._last is not None and self._last_poll_succeeded else None
        return now is not None and holds_unchanged(event, now)
