# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""What is due to be sent to one master: every change once, in order, and what lasts again and again.

An end is sent once, for an event that was announced; one for which this minion has prepared again
and again, until it has recovered. What was sent is remembered in the process. On disk it would lose
events: the minion fires while the master is away, and restarts before it is back.
"""

from __future__ import annotations

import math
from typing import Any, Mapping, NamedTuple

from azure_scheduled_events.selection import Selection

from .ledger import GONE, Entry, Notice
from .message_size import MAX_BYTES, MAX_EVENTS, fit_to_tick

# seconds between two sendings of an end that this minion has not recovered from, once it was sent
# often
_MAX_PAUSE = 600.0


class Snapshot(NamedTuple):
    """What is known at one moment; it does not change any more.

    Attributes:
        entries: what lasts, by key; empty until this process has had a good answer.
        ended: what ended lately.
        history: the changes that this process saw and that are meant, in order.
        resource_name: of this VM, or None where it is not known.
        doubtful: keys of events that may be over; they are not sent again.
        prepared: keys of events from which this minion has to recover.
    """

    entries: Mapping[str, Entry] = {}
    ended: tuple[Entry, ...] = ()
    history: tuple[Notice, ...] = ()
    resource_name: str | None = None
    doubtful: frozenset[str] = frozenset()
    prepared: frozenset[str] = frozenset()


class _LastSent(NamedTuple):
    sequence: int
    at: float
    times: int


class NotificationQueue:
    """What one master was sent by one beacon of this process."""

    def __init__(self) -> None:
        self._cursor: int | None = None
        self._last: dict[str, _LastSent] = {}
        self._snapshot: Snapshot | None = None
        self._next = -math.inf

    def is_due(self, snapshot: Snapshot, now: float) -> bool:
        """Return True if `due` may have something to send; False for what it has seen, before the time of the next repetition."""
        return snapshot is not self._snapshot or now >= self._next

    def repeat_all(self) -> None:
        """Have what lasts sent again at once: the master may have lost it."""
        self._last = {key: last._replace(at=-math.inf) for key, last in self._last.items()}
        self._snapshot = None

    def take_due(
        self, snapshot: Snapshot, selection: Selection, repeat: float, now: float, more: Mapping[str, Any]
    ) -> tuple[list[dict[str, Any]], dict[str, bool]]:
        """What to send now, as the data of beacon events, and whether it says of each key that the event lasts; it then counts as sent.

        now: monotonic seconds.
        more: data that each event gets.
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
        # before anything is left for the next time: a change that comes until then must be found in
        # the history
        sequences = [entry.notice.sequence for entry in (*snapshot.entries.values(), *snapshot.ended)]
        self._cursor = max([self._cursor or 0, *sequences])
        self._last = {key: last for key, last in self._last.items() if key in snapshot.entries or key in ended}
        times = {
            entry.key: self._next_time(entry, snapshot, selection, repeat)
            for entry in (*snapshot.entries.values(), *snapshot.ended)
            if entry.selected and entry.key not in snapshot.doubtful
        }
        waiting = [
            entry for entry in (*snapshot.entries.values(), *snapshot.ended) if times.get(entry.key, math.inf) <= now
        ]
        # news first; of what was sent before that which waits longest, so that no number of
        # repetitions keeps anything back
        waiting.sort(key=lambda entry: (self._last_sent_at(entry), entry.notice.sequence))
        complete = True
        for entry in waiting:
            complete = self._append(batch, entry.notice, now)
            if not complete:
                break
            announced[entry.key] = entry.is_listed
            times[entry.key] = self._next_time(entry, snapshot, selection, repeat)
        self._snapshot, self._next = snapshot, min(times.values(), default=math.inf) if complete else now
        return batch.events, announced

    def _unsent_changes(self, snapshot: Snapshot) -> list[Notice]:
        """The changes of the history that came after the last one that was looked at."""
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
        """When the entry is to be sent, again or for the first time; infinity for never."""
        last = self._last.get(entry.key)
        owed = entry.key in snapshot.prepared
        if not _is_selected(entry.notice, selection, last is not None or owed or entry.announced):
            return math.inf
        if last is None or last.sequence != entry.notice.sequence:
            # the end of an event that was announced before this process began is sent once
            return -math.inf if entry.is_listed or owed or entry.announced else math.inf
        if entry.is_listed:
            return last.at + repeat
        return last.at + min(repeat * 2.0 ** min(last.times - 1, 20), max(repeat, _MAX_PAUSE)) if owed else math.inf

    def _last_sent_at(self, entry: Entry) -> float:
        """When this very change was sent last; a time before all times if never."""
        last = self._last.get(entry.key)
        return last.at if last is not None and last.sequence == entry.notice.sequence else -math.inf

    def _append(self, batch: _Batch, notice: Notice, now: float) -> bool:
        """Put the notice into the parcel; False where it does not fit any more."""
        last = self._last.get(notice.event.key)
        times = last.times if last is not None and last.sequence == notice.sequence else 0
        if not batch.add(dict(notice.as_dict(), repeated=times)):
            return False
        self._last[notice.event.key] = _LastSent(notice.sequence, now, times + 1)
        return True


class _Batch:
    """What is sent in one tick."""

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
    """Whether to send it: the statuses that were asked for allow it, or it is the end of an event that is known."""
    if notice.change == GONE:
        return known
    return selection.statuses is None or notice.event.status.casefold() in {
        word.casefold() for word in selection.statuses
    }
