# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The notifications due for one master: each change once, in order, plus repeats of listed events.

The end of an event is sent once, if the event was announced. For an event for which this minion has
prepared it is repeated until the minion has recovered. Sent events are remembered in memory only:
after a restart everything is sent again, because a master that was away may have missed it.
"""

from __future__ import annotations

import math
from typing import Any, Mapping, NamedTuple

from azure_scheduled_events.changes import GONE
from azure_scheduled_events.selection import Selection

from .ledger import Entry, Notice
from .message_size import MAX_BYTES, MAX_EVENTS, fit_to_tick

# longest time, in seconds, between two repeats of the end of an event that needs recovery
_MAX_PAUSE = 600.0


class Snapshot(NamedTuple):
    """The knowledge of a watcher at one moment; immutable.

    Attributes:
        entries: present events by key; empty until this process has had a good answer.
        ended: events that ended lately.
        history: the changes of selected events that this process has seen, in order.
        resource_name: this VM's name, or None if it is unknown.
        unlisted: keys of present events that the latest document lacks; they are not repeated.
        prepared: keys of events from which this minion must recover.
    """

    entries: Mapping[str, Entry] = {}
    ended: tuple[Entry, ...] = ()
    history: tuple[Notice, ...] = ()
    resource_name: str | None = None
    unlisted: frozenset[str] = frozenset()
    prepared: frozenset[str] = frozenset()


class _LastSent(NamedTuple):
    """The change of an event that was sent last, the time (monotonic seconds), and how often."""

    sequence: int
    at: float
    times: int


class NotificationQueue:
    """The events that one beacon of this process has sent, and must send, to one master."""

    def __init__(self) -> None:
        self._cursor: int | None = None
        self._last: dict[str, _LastSent] = {}
        self._snapshot: Snapshot | None = None
        self._next = -math.inf

    def is_due(self, snapshot: Snapshot, now: float) -> bool:
        """Return True if the snapshot is new, or a repeat is due at ``now`` (monotonic seconds)."""
        return snapshot is not self._snapshot or now >= self._next

    def repeat_all(self) -> None:
        """Repeat all listed events at once, for a master that may have lost them."""
        self._last = {key: last._replace(at=-math.inf) for key, last in self._last.items()}
        self._snapshot = None

    def take_due(
        self, snapshot: Snapshot, selection: Selection, repeat: float, now: float, more: Mapping[str, Any]
    ) -> tuple[list[dict[str, Any]], dict[str, bool]]:
        """Return the data of the beacon events to send now, which then count as sent.

        The second value has for each key in them whether the event is listed. ``selection`` says which
        statuses to send, ``repeat`` is the number of seconds between repeats of a listed event, ``now``
        is in monotonic seconds, and ``more`` are fields to add to each event.
        """
        batch = _Batch(more)
        announced: dict[str, bool] = {}
        ended = {entry.key: entry for entry in snapshot.ended}
        for notice in self._unsent_changes(snapshot):
            key = notice.event.key
            if _is_selected(
                notice,
                selection,
                key in self._last or key in snapshot.prepared or (key in ended and ended[key].announced),
            ):
                if not self._append(batch, notice, now):
                    self._snapshot = None
                    return batch.events, announced
                announced[key] = notice.change != GONE
            self._cursor = notice.sequence
        # set before the batch may be full: a later change must be found in the history
        sequences = [entry.notice.sequence for entry in (*snapshot.entries.values(), *snapshot.ended)]
        self._cursor = max([self._cursor or 0, *sequences])
        self._last = {key: last for key, last in self._last.items() if key in snapshot.entries or key in ended}
        times = {
            entry.key: self._next_time(entry, snapshot, selection, repeat)
            for entry in (*snapshot.entries.values(), *snapshot.ended)
            if entry.key not in snapshot.unlisted
            # the beacon's options may have changed since the preparation
            and (entry.selected or (entry.key in snapshot.prepared and not entry.is_present))
        }
        waiting = [
            entry for entry in (*snapshot.entries.values(), *snapshot.ended) if times.get(entry.key, math.inf) <= now
        ]
        # changes come first, then what was sent longest ago: many repeats must not delay others
        waiting.sort(key=lambda entry: (self._last_sent_at(entry), entry.notice.sequence))
        complete = True
        for entry in waiting:
            complete = self._append(batch, entry.notice, now)
            if not complete:
                break
            announced[entry.key] = entry.is_present
            times[entry.key] = self._next_time(entry, snapshot, selection, repeat)
        self._snapshot, self._next = snapshot, min(times.values(), default=math.inf) if complete else now
        return batch.events, announced

    def _unsent_changes(self, snapshot: Snapshot) -> list[Notice]:
        """Return the changes in the history after the last one that was examined."""
        if self._cursor is None:
            return []
        notices = []
        for notice in reversed(snapshot.history):
            if notice.sequence <= self._cursor:
                break
            notices.append(notice)
        notices.reverse()
        return notices

    def _next_time(self, entry: Entry, snapshot: Snapshot, selection: Selection, repeat: float) -> float:
        """Return the time at which to send the entry, or infinity for never."""
        last = self._last.get(entry.key)
        owed = entry.key in snapshot.prepared
        if not _is_selected(entry.notice, selection, last is not None or owed or entry.announced):
            return math.inf
        if last is None or last.sequence != entry.notice.sequence:
            # an end is also sent if an earlier process announced the event
            return -math.inf if entry.is_present or owed or entry.announced else math.inf
        if entry.is_present:
            return last.at + repeat
        return last.at + min(repeat * 2.0 ** min(last.times - 1, 20), max(repeat, _MAX_PAUSE)) if owed else math.inf

    def _last_sent_at(self, entry: Entry) -> float:
        """Return the time of the last sending of this change, or minus infinity."""
        last = self._last.get(entry.key)
        return last.at if last is not None and last.sequence == entry.notice.sequence else -math.inf

    def _append(self, batch: _Batch, notice: Notice, now: float) -> bool:
        """Add the notice to the batch; return False if it does not fit."""
        last = self._last.get(notice.event.key)
        times = last.times if last is not None and last.sequence == notice.sequence else 0
        if not batch.add(dict(notice.as_dict(), repeated=times)):
            return False
        self._last[notice.event.key] = _LastSent(notice.sequence, now, times + 1)
        return True


class _Batch:
    """The events of one tick of the beacon."""

    def __init__(self, more: Mapping[str, Any]) -> None:
        self._more = more
        self._left = MAX_BYTES
        self.events: list[dict[str, Any]] = []

    def add(self, data: Mapping[str, Any]) -> bool:
        fitting, size = fit_to_tick({**data, **self._more})
        if len(self.events) >= MAX_EVENTS or (size > self._left and self.events):
            return False
        self._left -= size
        self.events.append(fitting)
        return True


def _is_selected(notice: Notice, selection: Selection, known: bool) -> bool:
    """Return True if the selected statuses include the notice, or it ends an event that is known."""
    if notice.change == GONE:
        return known
    return Selection(statuses=selection.statuses).excluded_by(notice.event) is None
