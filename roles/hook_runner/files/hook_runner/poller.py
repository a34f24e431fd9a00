# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Asks IMDS in a thread of its own, so that a slow answer holds up nothing else."""

from __future__ import annotations

import collections
import threading
import time
from typing import Callable, NamedTuple, Optional, Union

from azure_scheduled_events.document import EventDocument
from azure_scheduled_events.errors import ImdsError
from azure_scheduled_events.identity import own_name
from azure_scheduled_events.imds import Imds
from azure_scheduled_events.pacing import Pacer

# one request may take so long beyond its own limit before the loop counts as stuck
SLACK = 20.0
_APPROVAL_TIMEOUT = 5.0
_NAME_PAUSE = 5.0


class Looked(NamedTuple):
    """A good document; ``at``: monotonic time of its arrival."""

    document: EventDocument
    at: float


class Missed(NamedTuple):
    """A poll without a good document; ``outage``: whether that is worth an alarm by now."""

    error: ImdsError
    outage: bool


class Named(NamedTuple):
    """IMDS told this VM's resource name."""

    name: str


class Nameless(NamedTuple):
    """IMDS did not tell this VM's resource name, for this reason."""

    reason: str


class Answered(NamedTuple):
    """An approval was taken (error None) or not."""

    record_id: int
    error: Optional[ImdsError]


News = Union[Looked, Missed, Named, Nameless, Answered]


class Poller(threading.Thread):
    """Polls until the process ends, and sends approvals in between.

    A good document that says nothing new is delivered only while somebody is `attentive`, since waking another thread
    every second would cost as much as asking.

    Args:
        imds: the client, used by this thread alone.
        interval: seconds between polls.
        longest: seconds that one call of the client may take at most.
        deliver: takes what was learnt; called in this thread.
        needs_name: whether the VM's name has to be found out.
    """

    def __init__(self, imds: Imds, interval: float, longest: float, deliver: Callable[[News], None], needs_name: bool) -> None:
        super().__init__(name="poller", daemon=True)
        self._imds = imds
        self._pacer = Pacer(imds, interval)
        self._deliver = deliver
        self._longest = longest
        self._needs_name = needs_name
        self._name_after = 0.0
        self._wake = threading.Event()
        self._approvals: collections.deque[tuple[int, str]] = collections.deque()
        self._last: Optional[EventDocument] = None
        self.attentive = True
        self.last_good: Optional[float] = None
        self._due = time.monotonic() + SLACK

    def approve(self, record_id: int, event_id: str) -> None:
        """Send an approval soon; `Answered` tells what became of it."""
        self._approvals.append((record_id, event_id))
        self._wake.set()

    def is_stuck(self) -> bool:
        """Whether the loop has not come round within the limits of its requests."""
        return time.monotonic() > self._due

    def run(self) -> None:
        while True:
            began = time.monotonic()
            self._send_approvals()
            if self._needs_name and began >= self._name_after:
                self._ask_name()
            self._look()
            pause = began + self._pacer.delay(self._knows_events()) - time.monotonic()
            self._alive(max(0.0, pause))
            if pause > 0 and self._wake.wait(pause):
                self._wake.clear()

    def _alive(self, seconds: float) -> None:
        """The loop will be back here within so many seconds, and some slack."""
        self._due = time.monotonic() + seconds + SLACK

    def _knows_events(self) -> bool:
        return self._last is not None and bool(self._last.events)

    def _look(self) -> None:
        self._alive(self._longest)
        try:
            document = self._pacer.call(self._imds.events)
        except ImdsError as error:
            self._last = None  # so that the next good document is delivered, and the trouble is over
            self._deliver(Missed(error, self._pacer.is_outage()))
            return
        now = self.last_good = time.monotonic()
        is_news = self._last is None or document.events != self._last.events or document.warnings != self._last.warnings
        self._last = document
        if is_news or self.attentive:
            self._deliver(Looked(document, now))

    def _ask_name(self) -> None:
        self._alive(self._longest)
        try:
            name = own_name(self._pacer.call(self._imds.instance))
            reason = "IMDS has no compute.name for this VM"
        except ImdsError as error:
            name, reason = None, str(error)
        if name is None:
            self._name_after = time.monotonic() + _NAME_PAUSE
            self._deliver(Nameless(reason))
        else:
            self._needs_name = False
            self._last = None  # an event that came before its name was nobody's: the next document is news again
            self._deliver(Named(name))

    def _send_approvals(self) -> None:
        while self._approvals:
            record_id, event_id = self._approvals.popleft()
            self._alive(_APPROVAL_TIMEOUT)
            try:
                self._pacer.call(self._imds.approve, [event_id], within=_APPROVAL_TIMEOUT)
            except ImdsError as error:
                self._deliver(Answered(record_id, error))
            else:
                self._deliver(Answered(record_id, None))
