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

from . import state_file
from .ledger import Ledger, add_expected, advance, drop_old_ends, mark_announced, reselect
from .ledger_json import entries_to_json, ledger_from_json
from .notifications import Snapshot
from .prepared_events import PreparedEvents
from .settings import Settings

log = logging.getLogger(__name__)

# the file says this often at least when IMDS was last heard
_SAVE_INTERVAL = 60.0
_MAX_HISTORY = 1000
# a beacon that was disabled, or removed by a Salt that does not close beacons, asks no more after
# so many of its intervals, or so many seconds if that is longer. Salt does not say what the
# interval is, but it is heard
_IDLE_INTERVALS = 5
_IDLE_LIMIT = 10.0
# how often a name is asked for that nothing depends on
_OPTIONAL_NAME_INTERVAL = 60.0
# seconds by which a nudge may come early, at most a quarter of the pause: the tick after one that
# came late is early
_MAX_EARLY = 0.25
# while nudges come as often as looks are due, the thread itself is later than they are by this part
# of its pause, or it would take their turn
_THREAD_DELAY = 0.5


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
        self.snapshot = Snapshot(resource_name=settings.resource_name)
        self._path = path
        self._imds = Imds(settings.endpoint, settings.api_versions, settings.timeout, settings.first_timeout)
        self._pacer = Pacer(self._imds, settings.poll_interval, sleep=self._sleep, retries=WATCHING)
        self._ledger: Ledger | None = None
        self.checked: float | None = None
        self._prepared_events = PreparedEvents(path)
        # what the ledger was made of last: the events of the document, and those of the record
        self._last_input: tuple[object, ...] = ()
        # what was sent since the last look
        self._sent: dict[str, bool] = {}
        # by which selection and name the ledger's entries are meant
        self._selection_key: str | None = None
        # the VM that the ledger belongs to, as far as it is known
        self._vm_name: str | None = None
        self._name_requested_at: float | None = None
        self._error: str | None = None
        self._saved_at: float | None = None
        self._write_error: str | None = None
        if earlier is not None and earlier.settings.endpoint == settings.endpoint:
            with earlier._state:
                self.snapshot, self._ledger, self.checked = earlier.snapshot, earlier._ledger, earlier.checked
                self._selection_key, self._sent = earlier._selection_key, dict(earlier._sent)
            if settings.resource_name != earlier.settings.resource_name:
                # this VM stays the same whatever it is called in the configuration
                self.snapshot = self.snapshot._replace(resource_name=settings.resource_name)
            else:
                self._vm_name = earlier._vm_name
            self._error, self._write_error = earlier._error, earlier._write_error
        # the view as it will be as soon as it is remembered
        self._next_snapshot = self.snapshot
        self._stopping = False
        self._ended = False
        self._last_call_at = time.monotonic()
        self._call_interval = self._last_call_at - earlier._last_call_at if earlier is not None else 0.0
        self._waiting_since: float | None = None
        self._next_poll_at = 0.0
        self._poll_requested = False
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
            self._call_interval, self._last_call_at = now - self._last_call_at, now
            return True

    def poll_now(self, timeout: float) -> None:
        """If the thread only rests between two looks, have it look now, and wait for that, but not longer than patience seconds.

        So what is told is as fresh as if the caller had asked IMDS itself, while one that does not
        answer holds nobody up.
        """
        with self._state:
            now, pause = time.monotonic(), self.settings.poll_interval
            if self._waiting_since is not None and now >= max(
                self._next_poll_at - min(_MAX_EARLY, pause / 4), self._waiting_since + pause / 2
            ):
                self._poll_requested = True
                self._state.notify_all()
                self._state.wait_for(lambda: not self._poll_requested, timeout)

    def note_sent(self, announced: Mapping[str, bool]) -> None:
        """Remember on disk what was sent: True for an event that lasts, False for its end."""
        if announced:
            with self._state:
                self._sent.update(announced)
                self._state.notify_all()

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            while not self._is_over():
                try:
                    self._poll()
                except ImdsError as error:
                    if self._pacer.is_outage():
                        self._log_health(str(error))
                except Exception as error:  # pylint: disable=broad-except
                    # a mistake in here must not end the watch without a word
                    self._log_health(f"{type(error).__name__}: {error}", error)
                    self._sleep(10.0)
                self._wait_for_next_poll(self._pacer.delay(bool(self._ledger and self._ledger.entries)))
        finally:
            self._imds.close()

    def _is_over(self) -> bool:
        with self._state:
            idle = time.monotonic() - self._last_call_at > max(_IDLE_LIMIT, _IDLE_INTERVALS * self._call_interval)
            self._ended = self._stopping or idle
            if idle and not self._stopping:
                log.info(
                    "azure_events: the beacon %s does not ask any more, so IMDS is not asked either until it does",
                    self.settings.name,
                )
            return self._ended

    def _sleep(self, seconds: float) -> None:
        with self._state:
            self._state.wait_for(lambda: self._stopping, seconds)

    def _wait_for_next_poll(self, seconds: float) -> None:
        """Sleep until the next look; a nudge shortens it, but only while IMDS is well. What was sent meanwhile is written at once."""
        self._notify_waiting()
        with self._state:
            if self._pacer.error is None:
                self._waiting_since = now = time.monotonic()
                # from the time of the last one, so that an early look makes the next one no earlier
                self._next_poll_at = (
                    self._next_poll_at + seconds if now < self._next_poll_at + seconds else now + seconds
                )
                if 0 < self._call_interval <= (1 + _THREAD_DELAY) * seconds:
                    seconds *= 1 + _THREAD_DELAY
        ends = time.monotonic() + seconds
        while True:
            with self._state:
                self._state.wait_for(
                    lambda: self._stopping or self._poll_requested or self._has_sent(),
                    max(0.0, ends - time.monotonic()),
                )
                if self._stopping or self._poll_requested or not self._has_sent():
                    self._waiting_since = None
                    return
            self._save_sent()

    def _has_sent(self) -> bool:
        return bool(self._sent) and self._ledger is not None

    def _poll(self) -> None:
        """Ask once, and let everybody see the answer. Raises ImdsError."""
        name = self.snapshot.resource_name
        if name is None and self.settings.selection.needs_own_name:
            name = resource_name_of(self._pacer.call(self._imds.instance))
            if name is None:
                self._pacer.failed(OwnNameUnknown())
                raise OwnNameUnknown()
        document = self._pacer.call(self._imds.events)
        if name is None:
            name = self._read_optional_name()
        for text in document.warnings:
            log.debug("scheduled events: %s", text)
        self.checked = time.time()
        prepared_events = self._prepared_events.events()
        new_input = (document.events, document.complete, prepared_events, name)
        if self._is_unchanged(new_input):
            self._log_health(None)
            self._save(changed=self._drop_old_ends())
            return
        self._apply_document(document, name, prepared_events)
        self._last_input = new_input

    def _drop_old_ends(self) -> bool:
        """Forget what has been over for longer than ``gone_for``; False where there is nothing to forget."""
        if self._ledger is None or not self._ledger.ended:
            return False
        ledger = drop_old_ends(self._ledger, datetime.now(timezone.utc), self.settings.gone_for)
        if ledger is self._ledger:
            return False
        self._ledger = ledger
        self._next_snapshot = self._next_snapshot._replace(ended=ledger.ended)
        self.snapshot = self._next_snapshot
        return True

    def _is_unchanged(self, new_input: tuple[object, ...]) -> bool:
        """Return True if the ledger has taken all of this in, by identity, and believes it."""
        known = self._last_input
        return (
            len(known) == len(new_input)
            and all(map(operator.is_, known, new_input))
            and self._ledger is not None
            and not self._ledger.doubts
        )

    def _apply_document(
        self, document: EventDocument, name: str | None, prepared_events: tuple[ScheduledEvent, ...]
    ) -> None:
        now = datetime.now(timezone.utc)
        selection = self.settings.selection._replace(statuses=None)
        selection_key = json.dumps([selection._asdict(), name if selection.needs_own_name else None])

        def selected(event: ScheduledEvent) -> bool:
            return selection.matches(event, name)

        ledger = self._ledger if self._ledger is not None else self._load(name)
        if _differ(self._vm_name, name):
            log.warning("azure_events: what %s tells of another VM or endpoint is not used", self._path)
            ledger = Ledger(ledger.sequence)
        if self._selection_key != selection_key:
            ledger = reselect(ledger, selected)
        ledger = add_expected(
            ledger, [event for event in prepared_events if document.find(event.event_id) is None], now
        )
        before = ledger.entries
        ledger, notices = advance(ledger, document, now, selected)
        with self._state:
            if self._stopping:
                return
            self._ledger, self._selection_key, self._vm_name = ledger, selection_key, name or self._vm_name
            # more may have ended at once than the ledger remembers
            entries = {**before, **ledger.entries}
            history = self._next_snapshot.history + tuple(
                notice for notice in notices if entries[notice.event.key].selected
            )
            renamed = name != self._next_snapshot.resource_name
            self._next_snapshot = Snapshot(
                entries=ledger.entries,
                ended=ledger.ended,
                history=history[-_MAX_HISTORY:],
                resource_name=name,
                doubtful=frozenset(key for key, doubt in ledger.doubts.items() if doubt.event is None),
                prepared=frozenset(event.key for event in prepared_events),
            )
        self.snapshot = self._next_snapshot
        # a disk that has much else to do would cost the beacon its turn
        self._notify_waiting()
        self._log_health(None)
        self._save(changed=renamed or bool(notices))

    def _notify_waiting(self) -> None:
        """Let go who waits for this look."""
        with self._state:
            self._poll_requested = False
            self._state.notify_all()

    def _save_sent(self) -> None:
        """Write what was sent since the last look."""
        with self._state:
            if self._ledger is None or self._stopping:
                return
            sent, self._sent = self._sent, {}
            self._ledger = mark_announced(self._ledger, sent)
            self._next_snapshot = self._next_snapshot._replace(entries=self._ledger.entries, ended=self._ledger.ended)
        self._save(changed=True)
        self.snapshot = self._next_snapshot

    def _read_optional_name(self) -> str | None:
        now = time.monotonic()
        if self._name_requested_at is not None and now - self._name_requested_at < _OPTIONAL_NAME_INTERVAL:
            return None
        self._name_requested_at = now
        try:
            return resource_name_of(self._pacer.call(self._imds.instance, within=OPTIONAL_ANSWER_TIMEOUT))
        except ImdsError:
            self._pacer.succeeded()  # the events were read, and that is what counts
            return None

    def _load(self, name: str | None) -> Ledger:
        # numbers that begin with the time are higher than those of a file that was lost
        fresh = Ledger(int(time.time()))
        try:
            data = state_file.read(self._path)
            if data is None or data.get("checked") is None:
                return fresh
            if data.get("endpoint") != self.settings.endpoint:
                log.warning("azure_events: what %s tells of another VM or endpoint is not used", self._path)
                return fresh
            owner = None if data.get("resource_name") is None else str(data["resource_name"])
            if _differ(owner, name):
                log.warning("azure_events: what %s tells of another VM or endpoint is not used", self._path)
                return fresh
            ledger = ledger_from_json(data)
            self._selection_key, self._vm_name = data.get("meant_by"), owner
            return ledger
        except ValueError as error:
            log.warning("azure_events: starts anew, so what ended meanwhile will not be told: %s", error)
            return fresh

    def _log_health(self, error: str | None, cause: Exception | None = None) -> None:
        """Log what changed about the trouble with IMDS: one line when it begins, one when it is over."""
        if self._stopping or (error is None) == (self._error is None):
            self._error = error
            return
        self._error = error
        if error is None:
            log.info("azure_events: Azure's metadata service answers again")
        else:
            log.warning("azure_events: nothing is known of scheduled events, will ask again: %s", error, exc_info=cause)
        self._save(changed=True)

    def _save(self, changed: bool) -> None:
        """Write the file if something changed, or if it is old."""
        now = time.monotonic()
        if (
            not changed
            and self._saved_at is not None
            and now - self._saved_at < _SAVE_INTERVAL
            and self._write_error is None
        ):
            return
        if self._stopping:
            return
        try:
            state_file.write(self._path, self._to_json())
        except (OSError, ValueError) as error:
            if self._write_error is None:
                log.error(
                    "azure_events: what was seen cannot be kept, so a restart will not tell what ended: %s", error
                )
            self._write_error = str(error)
        else:
            self._write_error = None
        self._saved_at = now

    def _to_json(self) -> dict[str, Any]:
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
            before: dict[str, Any] = state_file.read(self._path) or nothing
            return dict(before, beacon=self.settings.name, error=self._error)
        return {
            "beacon": self.settings.name,
            "endpoint": self.settings.endpoint,
            "resource_name": self._next_snapshot.resource_name or self._vm_name,
            "meant_by": self._selection_key,
            "checked": None
            if self.checked is None
            else as_utc_text(datetime.fromtimestamp(self.checked, timezone.utc)),
            "error": self._error,
            "sequence": self._ledger.sequence,
            "entries": entries_to_json(self._ledger),
        }


def _differ(one: str | None, other: str | None) -> bool:
    """Whether these are names of two VMs; nobody knows that where one of them is missing."""
    return one is not None and other is not None and one.casefold() != other.casefold()
