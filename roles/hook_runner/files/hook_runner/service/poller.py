# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Polls IMDS in a separate thread; therefore a slow answer does not block the main loop."""

from __future__ import annotations

import collections
import contextlib
import logging
import threading
import time
from typing import Callable

from azure_scheduled_events.changes import holds_unchanged
from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.identity import resource_name_of, vm_id_of
from azure_scheduled_events.imds import Imds
from azure_scheduled_events.pacing import WATCHING, Pacer
from hook_runner.clock import ANSWERS_NEEDED, Date, ServerClock
from hook_runner.config.settings import Settings
from hook_runner.imds_health import ImdsHealth
from hook_runner.service.inbox import Inbox

log = logging.getLogger(__name__)

# seconds beyond a request's own limit after which the thread counts as stuck
STUCK_MARGIN = 20.0
# seconds for a TCP connection to IMDS
CONNECT_TIMEOUT = 3.0
_APPROVAL_TIMEOUT = 5.0
# seconds without an answer after which Azure may have switched the service off: the next answer is
# slow again (docs/reference/scheduled-events.md 4.1.3)
_SERVICE_IDLE_LIMIT = 23 * 3600.0
_NAME_RETRY_INTERVAL = 5.0
# while a poll is more important: the first one may take minutes, and with a stored name the daemon can act
_NAME_TIMEOUT = 2.0
_PAUSE_AFTER_PROGRAM_ERROR = 1.0


class Poller(threading.Thread):
    """Polls until the process ends, and sends approvals in between. The inbox gets the results.

    An unchanged document is delivered only if `deliver_unchanged` is in force: waking another thread
    each second costs as much as a poll. A document whose date contradicts the clock is always
    delivered, because it may set the clock. Before the first delivery the thread polls again at once
    if the date is doubtful, because the remaining time of an event depends on it.

    Args:
        imds: the client, used by this thread alone.
        settings: those of the start; a reload does not change them.
        clock: the server's; its monotonic clock paces the polls.
        health: learns the time of a document that is not delivered.
        inbox: gets a message for each result.
        sleep: waits the given seconds, for the rate limit.

    Attributes:
        knows_name: whether the main loop has a name of this VM, a stored one.
    """

    def __init__(
        self,
        imds: Imds,
        settings: Settings,
        clock: ServerClock,
        health: ImdsHealth,
        inbox: Inbox,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(name="poller", daemon=True)
        self._imds, self._clock, self._health, self._inbox = imds, clock, health, inbox
        self._now = clock.monotonic
        self._pacer = Pacer(imds, settings.interval, self._now, sleep, retries=WATCHING)
        # most seconds of a call for events, and of one before the first good answer: a call may be repeated once, on a
        # connection that the server had closed, for each version that a poll tries
        requests = 2 * imds.versions_of_a_poll
        self._longest = requests * (CONNECT_TIMEOUT + settings.timeout)
        self._longest_first = self._longest + requests * settings.first_timeout
        self._needs_name = not settings.resource_name
        self._name_after = float("-inf")
        self.knows_name = False
        # released while approvals wait; an Event takes a lock and a condition for each pause
        self._wake = threading.Lock()
        self._approvals: collections.deque[ScheduledEvent] = collections.deque()
        # the last good document, its time of arrival, and whether the main loop has it: no poll has failed since
        self._last: EventDocument | None = None
        self._last_at = float("-inf")
        self._is_known = False
        self._outcome = ""
        self._deliver_unchanged = True
        self._stuck_after = self._now() + STUCK_MARGIN

    def approve(self, event: ScheduledEvent) -> None:
        """Send an approval soon, if the event has not changed. For any thread."""
        self._approvals.append(event)
        with contextlib.suppress(RuntimeError):  # it is released already
            self._wake.release()

    def withdraw(self) -> None:
        """Send no approval that waits. For any thread."""
        with contextlib.suppress(IndexError):
            while True:
                self._withhold(self._approvals.popleft())

    def deliver_unchanged(self, wanted: bool) -> None:
        """Deliver documents without a change as well, as long as they are wanted. For any thread."""
        self._deliver_unchanged = wanted

    def is_stuck(self) -> bool:
        """Return True if the thread has ended, or exceeds the limits of its requests."""
        return self._now() > self._stuck_after or (self.ident is not None and not self.is_alive())

    def run(self) -> None:
        """Poll until the process ends; no error ends the thread."""
        while True:
            try:
                pause = self.poll_once()
            except Exception as error:  # no error may end the thread, which would miss the next event
                self._poll_failed(_imds_error(error), True)
                pause = _PAUSE_AFTER_PROGRAM_ERROR
            if pause > 0:
                self._wake.acquire(timeout=pause)

    def poll_once(self) -> float:
        """Send a waiting approval and poll once; return the seconds until the next poll.

        1. The oldest waiting approval is sent.
        2. While this VM's name is needed, it is requested, _NAME_RETRY_INTERVAL after the last attempt; with a short
           limit before the first document, and if the main loop has a name.
        3. IMDS is polled.
        4. The next poll follows at once if approvals wait, otherwise after the delay of the pacer, counted from
           the start of this call.
        """
        began = self._now()
        self._wake.acquire(blocking=False)
        try:
            oldest = self._approvals.popleft()
        except IndexError:
            pass  # none waits, or the main loop has withdrawn it
        else:
            self.send_approval(oldest)
        if self._needs_name and began >= self._name_after:
            self._request_name(_NAME_TIMEOUT if self._last is None or self.knows_name else self._longest)
        polled_at = self._now()
        self._poll()
        ended = self._now()
        # one approval at a time, and a poll after each: a queue of approvals must not delay the next
        # event
        knows_events = self._last is not None and bool(self._last.events)
        pause = 0.0 if self._approvals else max(0.0, began + self._pacer.delay(knows_events) - ended)
        took = (ended - polled_at) * 1000
        log.debug("poll: %s; it took %.0f ms, the next one follows in %.1f s", self._outcome, took, pause)
        self._expect_return_within(pause)
        return pause

    def _expect_return_within(self, seconds: float) -> None:
        """Count the thread as stuck if it does not call this again within these seconds and a margin."""
        self._stuck_after = self._now() + seconds + STUCK_MARGIN

    def _poll(self) -> None:
        """Poll once, and deliver the document or the failure.

        1. An answer may take longer before the first good one, and if the last good one is _SERVICE_IDLE_LIMIT
           ago.
        2. While the date of the first document is doubtful, IMDS is polled again, up to ANSWERS_NEEDED answers in
           all. A failed poll ends this.
        3. A failure is always delivered.
        4. A document is delivered if its date contradicts the clock; if its version, events or warnings have
           changed; if it is the first after the start, a failure or the name; or if unchanged ones are wanted.
        """
        is_first = self._last is None
        is_idle = self._now() - self._last_at >= _SERVICE_IDLE_LIMIT
        dates: list[Date] = []
        try:
            while not dates or (is_first and self._clock.doubts(*dates[0]) and len(dates) < ANSWERS_NEEDED):
                self._expect_return_within(self._longest_first if is_idle and not dates else self._longest)
                document = self._pacer.call(self._imds.events)
                dates.append((document.server_time, self._now()))
        except ImdsError as error:
            if not dates:
                self._poll_failed(error, self._pacer.is_outage())
                return
            # the next polls report it
        self._outcome = f"status 200, incarnation {document.incarnation}"
        is_known = self._is_known and self._last is not None and _has_same_content(document, self._last)
        self._last, self._last_at, self._is_known = document, dates[-1][1], True
        if not is_known or self._deliver_unchanged or self._clock.differs(*dates[-1]):
            self._inbox.put(lambda runner: runner.document_received(document, dates))
        else:
            self._health.last_good = document.server_time or self._clock.at(self._last_at)

    def _poll_failed(self, error: ImdsError, is_outage: bool) -> None:
        self._is_known = False  # the next document reports the end of the failure
        self._outcome = str(error)
        self._inbox.put(lambda runner: runner.poll_failed(error, is_outage))

    def _request_name(self, within: float) -> None:
        self._expect_return_within(within)
        reason = "IMDS has no compute.name for this VM"
        try:
            instance = self._pacer.call(self._imds.instance, within=within)
            name, vm_id = resource_name_of(instance), vm_id_of(instance)
        except Exception as error:
            name, vm_id, reason = None, "", str(_imds_error(error))
        if name is None:
            self._name_after = self._now() + _NAME_RETRY_INTERVAL
            self._inbox.put(lambda runner: runner.name_unavailable(reason))
            return
        self._needs_name = False
        self._is_known = False  # the main loop could not assign earlier events to this VM
        found: str = name
        self._inbox.put(lambda runner: runner.name_resolved(found, vm_id))

    def send_approval(self, event: ScheduledEvent) -> None:
        """Send the approval of an event, if it has not changed since the decision."""
        if not self._is_unchanged(event):
            self._withhold(event)
            return
        self._expect_return_within(_APPROVAL_TIMEOUT)
        refusal: ImdsError | None = None
        try:
            self._pacer.call(self._imds.approve, event.event_id, within=_APPROVAL_TIMEOUT)
        except Exception as error:
            refusal = _imds_error(error)
        self._inbox.put(lambda runner: runner.approval_answered(event.key, refusal))

    def _withhold(self, event: ScheduledEvent) -> None:
        self._inbox.put(lambda runner: runner.approval_withheld(event.key))

    def _is_unchanged(self, event: ScheduledEvent) -> bool:
        """Return True if the last poll succeeded and has the event unchanged, apart from NotBefore."""
        now = self._last.find(event.event_id) if self._last is not None and self._is_known else None
        return now is not None and holds_unchanged(event, now)


def _has_same_content(one: EventDocument, other: EventDocument) -> bool:
    return one.events == other.events and one.api_version == other.api_version and one.warnings == other.warnings


def _imds_error(error: Exception) -> ImdsError:
    """Return any error as one of IMDS: the thread goes on, and the main loop reports it."""
    if isinstance(error, ImdsError):
        return error
    return ImdsError(f"the answer of IMDS causes an error of this program: {error!r}")
