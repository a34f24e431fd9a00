# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""A thread that polls IMDS, so that the beacon does not wait for answers."""

from __future__ import annotations

import json
import logging
import threading
import time
from datetime import datetime, timezone
from typing import Any, Mapping, NamedTuple

from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.errors import ImdsError, OwnNameUnknown
from azure_scheduled_events.identity import is_same_vm, resource_name_of
from azure_scheduled_events.imds import Imds
from azure_scheduled_events.pacing import WATCHING, Pacer
from azure_scheduled_events.session import OPTIONAL_ANSWER_TIMEOUT
from azure_scheduled_events.timestamps import as_utc_text
from azure_scheduled_events.tracking import Tracker

from . import state_file
from .ledger import Ledger, add_expected, advance, drop_old_ends, mark_announced, reselect
from .ledger_json import ledger_from_json, ledger_to_json
from .notifications import Snapshot
from .prepared_events import PreparedEvents
from .settings import Settings

log = logging.getLogger(__name__)

# seconds between two writes of the time of the last good answer
_SAVE_INTERVAL = 60.0
_MAX_HISTORY = 1000
# The thread ends when the beacon has not called for so many of its intervals, and so many seconds:
# the beacon was disabled, or removed by a Salt that does not call close. Salt does not pass the
# interval to the beacon; it is measured.
_IDLE_INTERVALS = 5
_IDLE_LIMIT = 10.0
# seconds between two requests for a name that nothing depends on
_OPTIONAL_NAME_INTERVAL = 60.0
# seconds by which a requested poll may come early, at most a quarter of the pause: after a late
# tick of the beacon the next one is early
_MAX_EARLY = 0.25
# part of the pause by which the thread's own polls are later while the beacon requests polls as
# often as they are due; otherwise the thread would poll directly before the beacon
_THREAD_DELAY = 0.5


class WatchState(NamedTuple):
    """The state that a new watcher takes over from an earlier one of the same state file.

    Attributes:
        endpoint, resource_name: settings of the earlier watcher.
        snapshot, checked, ledger, selection_key, vm_name, error, write_error: as in `Watcher`.
        sent: sent events that are not yet in the ledger.
        last_call_at: time of the beacon's last call, in monotonic seconds.
    """

    endpoint: str
    resource_name: str | None
    snapshot: Snapshot
    checked: float | None
    ledger: Ledger | None
    selection_key: str | None
    vm_name: str | None
    error: str | None
    write_error: str | None
    sent: Mapping[str, bool]
    last_call_at: float


class Watcher:
    """Polls IMDS for the events of this VM in a daemon thread.

    ``snapshot`` may be read from any thread at any time without waiting; after a change it is
    another object. ``checked`` is the time of the last good answer in seconds since 1970, or None.

    ``path`` is that of the state file. ``earlier`` is the state of an earlier watcher, which has stopped.
    """

    def __init__(self, settings: Settings, path: str, earlier: WatchState | None = None) -> None:
        self._state = threading.Condition()
        self.settings = settings
        self.snapshot = Snapshot(resource_name=settings.resource_name)
        self._path = path
        self._imds = Imds(settings.endpoint, settings.api_versions, settings.timeout, settings.first_timeout)
        self._pacer = Pacer(self._imds, settings.poll_interval, sleep=self._sleep, retries=WATCHING)
        self._ledger: Ledger | None = None
        # knows the events of the ledger
        self._tracker: Tracker | None = None
        self.checked: float | None = None
        self._prepared_events = PreparedEvents(path)
        # events that were sent since the last poll
        self._sent: dict[str, bool] = {}
        # the selection and the name by which the ledger's entries are selected
        self._selection_key: str | None = None
        # the VM that the ledger belongs to, if known
        self._vm_name: str | None = None
        self._name_requested_at: float | None = None
        self._error: str | None = None
        self._saved_at: float | None = None
        self._write_error: str | None = None
        self._last_call_at = time.monotonic()
        self._call_interval = 0.0
        if earlier is not None:
            self._take_over(earlier)
        # the next value of snapshot, set once it is saved
        self._next_snapshot = self.snapshot
        self._stopping = False
        self._ended = False
        self._waiting_since: float | None = None
        self._next_poll_at = 0.0
        self._poll_requested = False
        self._thread = threading.Thread(target=self._run, name=f"azure_events_watch {settings.name}", daemon=True)

    def _take_over(self, earlier: WatchState) -> None:
        self._call_interval = self._last_call_at - earlier.last_call_at
        if earlier.endpoint != self.settings.endpoint:
            return
        self.snapshot, self._ledger, self.checked = earlier.snapshot, earlier.ledger, earlier.checked
        self._selection_key, self._sent = earlier.selection_key, dict(earlier.sent)
        self._error, self._write_error = earlier.error, earlier.write_error
        if self.settings.resource_name != earlier.resource_name:
            # another name in the configuration does not make it another VM
            self.snapshot = self.snapshot._replace(resource_name=self.settings.resource_name)
        else:
            self._vm_name = earlier.vm_name

    def take_state(self) -> WatchState:
        """Return the state for a new watcher; this one must have been stopped."""
        with self._state:
            return WatchState(
                self.settings.endpoint,
                self.settings.resource_name,
                self.snapshot,
                self.checked,
                self._ledger,
                self._selection_key,
                self._vm_name,
                self._error,
                self._write_error,
                dict(self._sent),
                self._last_call_at,
            )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread: at once, or when IMDS has answered. It no longer writes the state file."""
        with self._state:
            self._stopping = True
            self._state.notify_all()

    def resume(self) -> bool:
        """Revoke a stop and note the beacon's call; return False if the thread has ended."""
        with self._state:
            if self._ended or not self._thread.is_alive():
                return False
            self._stopping = False
            now = time.monotonic()
            self._call_interval, self._last_call_at = now - self._last_call_at, now
            return True

    def poll_now(self, timeout: float) -> None:
        """Have a thread poll now that waits for its next poll, and wait for it for ``timeout`` seconds.

        The caller gets a fresh answer from a healthy IMDS, and is not delayed by one that does not
        answer.
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
        """Save the sent events: by key, True for a listed event, False for its end."""
        if announced:
            with self._state:
                self._sent.update(announced)
                self._state.notify_all()

    def join(self, timeout: float) -> None:
        """Wait for the end of the thread for ``timeout`` seconds."""
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
                    # log an unexpected error, and go on polling
                    self._log_health(f"{type(error).__name__}: {error}", error)
                    self._sleep(10.0)
                self._wait_for_next_poll(self._pacer.delay())
        finally:
            self._imds.close()

    def _is_over(self) -> bool:
        with self._state:
            idle = time.monotonic() - self._last_call_at > max(_IDLE_LIMIT, _IDLE_INTERVALS * self._call_interval)
            self._ended = self._stopping or idle
            if idle and not self._stopping:
                log.info(
                    "azure_events: the beacon %s no longer asks for events; polling of IMDS pauses until it does",
                    self.settings.name,
                )
            return self._ended

    def _sleep(self, seconds: float) -> None:
        with self._state:
            self._state.wait_for(lambda: self._stopping, seconds)

    def _wait_for_next_poll(self, seconds: float) -> None:
        """Wait until the next poll, or until one is requested while IMDS is healthy.

        Events that are sent during the wait are saved at once.
        """
        self._notify_waiting()
        with self._state:
            if self._pacer.error is None:
                self._waiting_since = now = time.monotonic()
                # from the planned time: an early poll does not make the next one earlier
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
        """Poll once and publish the result as a snapshot."""
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
        self._apply_document(document, name)

    def _apply_document(self, document: EventDocument, name: str | None) -> None:
        now = datetime.now(timezone.utc)
        prepared_events = self._prepared_events.events()
        selection = self.settings.selection._replace(statuses=None)
        selection_key = json.dumps([selection._asdict(), name if selection.needs_own_name else None])

        def selected(event: ScheduledEvent) -> bool:
            return selection.matches(event, name)

        ledger = self._ledger if self._ledger is not None else self._load(name)
        if _differ(self._vm_name, name):
            log.warning("azure_events: %s is about another VM or endpoint, and is not used", self._path)
            ledger = Ledger(ledger.sequence)
        if self._selection_key != selection_key:
            ledger = reselect(ledger, selected)
        ledger = add_expected(
            ledger, [event for event in prepared_events if document.find(event.event_id) is None], now
        )
        if self._tracker is None or ledger is not self._ledger:
            self._tracker = ledger.tracker()
        ledger, changed = advance(ledger, self._tracker, document, now, selected)
        if self._ledger is not None:
            # not before the beacon could send those of the file
            ledger = drop_old_ends(ledger, now, self.settings.gone_for)
        history = self._next_snapshot.history + tuple(entry.notice for entry in changed if entry.selected)
        snapshot = Snapshot(
            entries=ledger.entries,
            ended=ledger.ended,
            history=history[-_MAX_HISTORY:],
            resource_name=name,
            unlisted=frozenset(ledger.entries).difference(event.key for event in document.events),
            prepared=frozenset(event.key for event in prepared_events),
        )
        must_save = ledger is not self._ledger or name != self._next_snapshot.resource_name
        with self._state:
            self._ledger, self._selection_key, self._vm_name = ledger, selection_key, name or self._vm_name
            if snapshot != self._next_snapshot:
                self._next_snapshot = snapshot
            self.snapshot = self._next_snapshot
        # before the write, which a busy disk may delay beyond the beacon's timeout
        self._notify_waiting()
        self._log_health(None)
        self._save(changed=must_save)

    def _notify_waiting(self) -> None:
        """Wake the callers that wait for this poll."""
        with self._state:
            self._poll_requested = False
            self._state.notify_all()

    def _save_sent(self) -> None:
        """Save the events that were sent since the last poll."""
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
            self._pacer.succeeded()  # the events were read
            return None

    def _load(self, name: str | None) -> Ledger:
        # sequence numbers that begin with the time are above those of a file that was lost
        fresh = Ledger(int(time.time()))
        try:
            data = state_file.read(self._path)
            if data is None or data.get("checked") is None:
                return fresh
            if data.get("endpoint") != self.settings.endpoint:
                log.warning("azure_events: %s is about another VM or endpoint, and is not used", self._path)
                return fresh
            owner = None if data.get("resource_name") is None else str(data["resource_name"])
            if _differ(owner, name):
                log.warning("azure_events: %s is about another VM or endpoint, and is not used", self._path)
                return fresh
            ledger = ledger_from_json(data)
            self._selection_key, self._vm_name = data.get("meant_by"), owner
            return ledger
        except (OSError, ValueError) as error:
            log.warning("azure_events: %s; the state is lost, and events that ended since then are not sent", error)
            return fresh

    def _log_health(self, error: str | None, cause: Exception | None = None) -> None:
        """Log one line when IMDS begins to fail, and one when it answers again."""
        if self._stopping or (error is None) == (self._error is None):
            self._error = error
            return
        self._error = error
        if error is None:
            log.info("azure_events: IMDS answers again")
        else:
            log.warning("azure_events: cannot read the scheduled events, retrying: %s", error, exc_info=cause)
        self._save(changed=True)

    def _save(self, changed: bool) -> None:
        """Write the state file if something changed, or if it is old."""
        if changed:
            self._saved_at = None
        now = time.monotonic()
        if self._saved_at is not None and now - self._saved_at < _SAVE_INTERVAL and self._write_error is None:
            return
        if self._stopping:
            return
        try:
            state_file.write(self._path, self._to_json())
        except (OSError, ValueError) as error:
            if self._write_error is None:
                log.error(
                    "azure_events: cannot write the state; events that end during a restart are not sent: %s", error
                )
            self._write_error = str(error)
        else:
            self._write_error = None
        self._saved_at = now

    def _to_json(self) -> dict[str, Any]:
        if self._ledger is None:
            # this process has not read events yet: keep what an earlier one has written
            nothing: dict[str, Any] = {
                "endpoint": self.settings.endpoint,
                "resource_name": None,
                "checked": None,
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
            **ledger_to_json(self._ledger),
        }


def _differ(one: str | None, other: str | None) -> bool:
    """Return True if both names are known, and are of different VMs."""
    return one is not None and other is not None and not is_same_vm(one, other)
