# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""One thread that asks IMDS, so that whoever wants to know never waits for an answer."""

from __future__ import annotations

import json
import logging
import operator
import threading
import time
from datetime import datetime, timezone
from typing import Any, Mapping

from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.errors import ImdsError, OwnNameUnknown
from azure_scheduled_events.identity import resource_name_of
from azure_scheduled_events.imds import Imds
from azure_scheduled_events.pacing import WATCHING, Pacer
from azure_scheduled_events.session import OPTIONAL_ANSWER_TIMEOUT
from azure_scheduled_events.timestamps import as_utc_text

from . import memory
from .ledger import Ledger, advance, reconsidered, with_announced, with_expected, without_old_ends
from .recorded import Recorded
from .settings import Settings
from .stored import entries_as_data, ledger_of
from .telling import View

log = logging.getLogger(__name__)

# the file says this often at least when IMDS was last heard
_WRITE_EVERY = 60.0
_HISTORY = 1000
# a beacon that was disabled, or removed by a Salt that does not close beacons, asks no more after
# so many of its intervals, or so many seconds if that is longer. Salt does not say what the
# interval is, but it is heard
_UNHEARD_INTERVALS = 5
_UNHEARD = 10.0
# how often a name is asked for that nothing depends on
_UNNEEDED_AGAIN = 60.0
# seconds by which a nudge may come early, at most a quarter of the pause: the tick after one that
# came late is early
_EARLY = 0.25
# while nudges come as often as looks are due, the thread itself is later than they are by this part
# of its pause, or it would take their turn
_LATE = 0.5


class Watcher:
    """Watches the events of this VM in a daemon thread of its own.

    Args:
        settings: of the beacon.
        path: the file for what was seen.
        earlier: a watcher of the same events that has stopped: what it knew is taken over. ``view``
    may be read from any thread at any time, and never waits. It is another object when something
    has changed. ``checked`` is the time of the last good answer, in seconds since 1970, or None.
    """

    def __init__(self, settings: Settings, path: str, earlier: Watcher | None = None) -> None:
        self._state = threading.Condition()
        self.settings = settings
        self.view = View(resource_name=settings.resource_name)
        self._path = path
        self._imds = Imds(settings.endpoint, settings.api_versions, settings.timeout, settings.first_timeout)
        self._pacer = Pacer(self._imds, settings.poll_interval, sleep=self._sleep, retries=WATCHING)
        self._ledger: Ledger | None = None
        self.checked: float | None = None
        self._recorded = Recorded(path)
        # what the ledger was made of last: the events of the document, and those of the record
        self._made_of: tuple[object, ...] = ()
        # what was sent since the last look
        self._sent: dict[str, bool] = {}
        # by which selection and name the ledger's entries are meant
        self._meant_by: str | None = None
        # the VM that the ledger belongs to, as far as it is known
        self._owner: str | None = None
        self._asked_name: float | None = None
        self._error: str | None = None
        self._written: float | None = None
        self._write_error: str | None = None
        if earlier is not None and earlier.settings.endpoint == settings.endpoint:
            with earlier._state:
                self.view, self._ledger, self.checked = earlier.view, earlier._ledger, earlier.checked
                self._meant_by, self._sent = earlier._meant_by, dict(earlier._sent)
            if settings.resource_name != earlier.settings.resource_name:
                # this VM stays the same whatever it is called in the configuration
                self.view = self.view._replace(resource_name=settings.resource_name)
            else:
                self._owner = earlier._owner
            self._error, self._write_error = earlier._error, earlier._write_error
        # the view as it will be as soon as it is remembered
        self._seen = self.view
        self._stopping = False
        self._ended = False
        self._heard = time.monotonic()
        self._pause = self._heard - earlier._heard if earlier is not None else 0.0
        self._resting_since: float | None = None
        self._due = 0.0
        self._nudged = False
        self._thread = threading.Thread(target=self._run, name=f"azure_events_watch {settings.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Have the thread end: at once, or as soon as IMDS has answered. It writes nothing any more."""
        with self._state:
            self._stopping = True
            self._state.notify_all()

    def resume(self) -> bool:
        """Take a stop back, and note that somebody listens; False where the thread has ended already, or died."""
        with self._state:
            if self._ended or not self._thread.is_alive():
                return False
            self._stopping = False
            now = time.monotonic()
            self._pause, self._heard = now - self._heard, now
            return True

    def nudge(self, patience: float) -> None:
        """If the thread only rests between two looks, have it look now, and wait for that, but not longer than patience seconds.

        So what is told is as fresh as if the caller had asked IMDS itself, while one that does not
        answer holds nobody up.
        """
        with self._state:
            now, pause = time.monotonic(), self.settings.poll_interval
            if self._resting_since is not None and now >= max(
                self._due - min(_EARLY, pause / 4), self._resting_since + pause / 2
            ):
                self._nudged = True
                self._state.notify_all()
                self._state.wait_for(lambda: not self._nudged, patience)

    def note_sent(self, lasts: Mapping[str, bool]) -> None:
        """Remember on disk what was sent: True for an event that lasts, False for its end."""
        if lasts:
            with self._state:
                self._sent.update(lasts)
                self._state.notify_all()

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            while not self._is_over():
                try:
                    self._look()
                except ImdsError as error:
                    if self._pacer.is_outage():
                        self._note(str(error))
                except Exception as error:  # pylint: disable=broad-except
                    # a mistake in here must not end the watch without a word
                    self._note(f"{type(error).__name__}: {error}", error)
                    self._sleep(10.0)
                self._rest(self._pacer.delay(bool(self._ledger and self._ledger.entries)))
        finally:
            self._imds.close()

    def _is_over(self) -> bool:
        with self._state:
            unheard = time.monotonic() - self._heard > max(_UNHEARD, _UNHEARD_INTERVALS * self._pause)
            self._ended = self._stopping or unheard
            if unheard and not self._stopping:
                log.info(
                    "azure_events: the beacon %s does not ask any more, so IMDS is not asked either until it does",
                    self.settings.name,
                )
            return self._ended

    def _sleep(self, seconds: float) -> None:
        with self._state:
            self._state.wait_for(lambda: self._stopping, seconds)

    def _rest(self, seconds: float) -> None:
        """Sleep until the next look; a nudge shortens it, but only while IMDS is well. What was sent meanwhile is written at once."""
        self._release()
        with self._state:
            if self._pacer.error is None:
                self._resting_since = now = time.monotonic()
                # from the time of the last one, so that an early look makes the next one no earlier
                self._due = self._due + seconds if now < self._due + seconds else now + seconds
                if 0 < self._pause <= (1 + _LATE) * seconds:
                    seconds *= 1 + _LATE
        ends = time.monotonic() + seconds
        while True:
            with self._state:
                self._state.wait_for(
                    lambda: self._stopping or self._nudged or self._has_sent(), max(0.0, ends - time.monotonic())
                )
                if self._stopping or self._nudged or not self._has_sent():
                    self._resting_since = None
                    return
            self._remember_sent()

    def _has_sent(self) -> bool:
        return bool(self._sent) and self._ledger is not None

    def _look(self) -> None:
        """Ask once, and let everybody see the answer. Raises ImdsError."""
        name = self.view.resource_name
        if name is None and self.settings.selection.needs_own_name:
            name = resource_name_of(self._pacer.call(self._imds.instance))
            if name is None:
                self._pacer.failed(OwnNameUnknown())
                raise OwnNameUnknown()
        document = self._pacer.call(self._imds.events)
        if name is None:
            name = self._learn_unneeded_name()
        for text in document.warnings:
            log.debug("scheduled events: %s", text)
        self.checked = time.time()
        recorded = self._recorded.events()
        made_of = (document.events, document.complete, recorded, name)
        if self._is_settled(made_of):
            self._note(None)
            self._remember(changed=self._forget_old_ends())
            return
        self._take_in(document, name, recorded)
        self._made_of = made_of

    def _forget_old_ends(self) -> bool:
        """Forget what has been over for longer than ``gone_for``; False where there is nothing to forget."""
        if self._ledger is None or not self._ledger.ended:
            return False
        ledger = without_old_ends(self._ledger, datetime.now(timezone.utc), self.settings.gone_for)
        if ledger is self._ledger:
            return False
        self._ledger = ledger
        self._seen = self._seen._replace(ended=ledger.ended)
        self.view = self._seen
        return True

    def _is_settled(self, made_of: tuple[object, ...]) -> bool:
        """Return True if the ledger has taken all of this in, by identity, and believes it."""
        known = self._made_of
        return (
            len(known) == len(made_of)
            and all(map(operator.is_, known, made_of))
            and self._ledger is not None
            and not self._ledger.doubts
        )

    def _take_in(self, document: EventDocument, name: str | None, recorded: tuple[ScheduledEvent, ...]) -> None:
        now = datetime.now(timezone.utc)
        selection = self.settings.selection._replace(statuses=None)
        meant_by = json.dumps([selection._asdict(), name if selection.needs_own_name else None])

        def meant(event: ScheduledEvent) -> bool:
            return selection.matches(event, name)

        ledger = self._ledger if self._ledger is not None else self._restored(name)
        if _differ(self._owner, name):
            log.warning("azure_events: what %s tells of another VM or endpoint is not used", self._path)
            ledger = Ledger(ledger.sequence)
        if self._meant_by != meant_by:
            ledger = reconsidered(ledger, meant)
        ledger = with_expected(ledger, [event for event in recorded if document.find(event.event_id) is None], now)
        before = ledger.entries
        ledger, notices = advance(ledger, document, now, meant)
        with self._state:
            if self._stopping:
                return
            self._ledger, self._meant_by, self._owner = ledger, meant_by, name or self._owner
            # more may have ended at once than the ledger remembers
            entries = {**before, **ledger.entries}
            history = self._seen.history + tuple(notice for notice in notices if entries[notice.event.key].meant)
            renamed = name != self._seen.resource_name
            self._seen = View(
                entries=ledger.entries,
                ended=ledger.ended,
                history=history[-_HISTORY:],
                resource_name=name,
                doubtful=frozenset(key for key, doubt in ledger.doubts.items() if doubt.event is None),
                prepared=frozenset(event.key for event in recorded),
            )
        self.view = self._seen
        # a disk that has much else to do would cost the beacon its turn
        self._release()
        self._note(None)
        self._remember(changed=renamed or bool(notices))

    def _release(self) -> None:
        """Let go who waits for this look."""
        with self._state:
            self._nudged = False
            self._state.notify_all()

    def _remember_sent(self) -> None:
        """Write what was sent since the last look."""
        with self._state:
            if self._ledger is None or self._stopping:
                return
            sent, self._sent = self._sent, {}
            self._ledger = with_announced(self._ledger, sent)
            self._seen = self._seen._replace(entries=self._ledger.entries, ended=self._ledger.ended)
        self._remember(changed=True)
        self.view = self._seen

    def _learn_unneeded_name(self) -> str | None:
        now = time.monotonic()
        if self._asked_name is not None and now - self._asked_name < _UNNEEDED_AGAIN:
            return None
        self._asked_name = now
        try:
            return resource_name_of(self._pacer.call(self._imds.instance, within=OPTIONAL_ANSWER_TIMEOUT))
        except ImdsError:
            self._pacer.succeeded()  # the events were read, and that is what counts
            return None

    def _restored(self, name: str | None) -> Ledger:
        # numbers that begin with the time are higher than those of a file that was lost
        fresh = Ledger(int(time.time()))
        try:
            data = memory.read(self._path)
            if data is None or data.get("checked") is None:
                return fresh
            if data.get("endpoint") != self.settings.endpoint:
                log.warning("azure_events: what %s tells of another VM or endpoint is not used", self._path)
                return fresh
            owner = None if data.get("resource_name") is None else str(data["resource_name"])
            if _differ(owner, name):
                log.warning("azure_events: what %s tells of another VM or endpoint is not used", self._path)
                return fresh
            ledger = ledger_of(data)
            self._meant_by, self._owner = data.get("meant_by"), owner
            return ledger
        except ValueError as error:
            log.warning("azure_events: starts anew, so what ended meanwhile will not be told: %s", error)
            return fresh

    def _note(self, error: str | None, cause: Exception | None = None) -> None:
        """Log what changed about the trouble with IMDS: one line when it begins, one when it is over."""
        if self._stopping or (error is None) == (self._error is None):
            self._error = error
            return
        self._error = error
        if error is None:
            log.info("azure_events: Azure's metadata service answers again")
        else:
            log.warning("azure_events: nothing is known of scheduled events, will ask again: %s", error, exc_info=cause)
        self._remember(changed=True)

    def _remember(self, changed: bool) -> None:
        """Write the file if something changed, or if it is old."""
        now = time.monotonic()
        if (
            not changed
            and self._written is not None
            and now - self._written < _WRITE_EVERY
            and self._write_error is None
        ):
            return
        if self._stopping:
            return
        try:
            memory.write(self._path, self._as_data())
        except (OSError, ValueError) as error:
            if self._write_error is None:
                log.error(
                    "azure_events: what was seen cannot be kept, so a restart will not tell what ended: %s", error
                )
            self._write_error = str(error)
        else:
            self._write_error = None
        self._written = now

    def _as_data(self) -> dict[str, Any]:
        if self._ledger is None:
            # nothing was read yet in the life of this process: what an earlier one saw stays as it
            # is
            nothing: dict[str, Any] = {
                "endpoint": self.settings.endpoint,
                "resource_name": None,
                "checked": None,
                "sequence": 0,
                "entries": [],
            }
            before: dict[str, Any] = memory.read(self._path) or nothing
            return dict(before, beacon=self.settings.name, error=self._error)
        return {
            "beacon": self.settings.name,
            "endpoint": self.settings.endpoint,
            "resource_name": self._seen.resource_name or self._owner,
            "meant_by": self._meant_by,
            "checked": None
            if self.checked is None
            else as_utc_text(datetime.fromtimestamp(self.checked, timezone.utc)),
            "error": self._error,
            "sequence": self._ledger.sequence,
            "entries": entries_as_data(self._ledger),
        }


def _differ(one: str | None, other: str | None) -> bool:
    """Whether these are names of two VMs; nobody knows that where one of them is missing."""
    return one is not None and other is not None and one.casefold() != other.casefold()
