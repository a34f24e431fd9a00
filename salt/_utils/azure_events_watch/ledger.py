# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The events that a watcher has seen, with their latest changes. Pure.

An event is gone when two good, complete documents in a row lack it. Until then, and after any other
answer, it counts as listed. Backends of IMDS may disagree for long. Therefore an event or a state
that returns must be in two documents in a row, and in twice as many with each further return.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Callable, Iterable, Mapping, NamedTuple

from azure_scheduled_events.changes import ABSENCES_NEEDED, APPEARED, STARTED, Change, changes
from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.timestamps import as_utc_text

GONE = "gone"
# events that have ended and are remembered
MAX_ENDED = 100
# doublings of the number of documents that must agree
_MAX_DOUBLINGS = 5


class Notice(NamedTuple):
    """One change of one event, as it is sent.

    Attributes:
        change: "scheduled", "changed", "started" or "gone".
        event: the event after the change; for "gone" as it was last.
        fields: names of the fields that differ.
        outcome: for "gone", "ended" if the event was seen Started, else "not_started": it was
            cancelled, or started and ended between two polls.
        sequence: number of the change, which only grows.
        first_seen, changed_at: ISO 8601 UTC.
        incarnation: of the document with the change, or None.
    """

    change: str
    event: ScheduledEvent
    fields: tuple[str, ...]
    outcome: str | None
    sequence: int
    first_seen: str
    changed_at: str
    incarnation: int | None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values: the common shape of an event, and the fields of the change."""
        data = self._asdict()
        data.update(
            self.event.as_dict(), fields=["duration_seconds" if name == "duration" else name for name in self.fields]
        )
        del data["event"]
        return data


class Entry(NamedTuple):
    """An event that is listed, or was until lately.

    Attributes:
        notice: the latest change.
        seen_started: whether it was ever seen Started.
        selected: whether it ever met the selection, disregarding statuses. It stays selected when
            it no longer affects this VM, because its end must then be sent.
        announced: whether the event was sent to a master, and its end was not.
        returns: how often it returned after its end, or returned to an earlier state.
        former: the event before the latest change, or None.
    """

    notice: Notice
    seen_started: bool
    selected: bool
    announced: bool = False
    returns: int = 0
    former: ScheduledEvent | None = None

    @property
    def is_listed(self) -> bool:
        """Return True unless the latest change is the end."""
        return self.notice.change != GONE

    @property
    def key(self) -> str:
        """Return the event's ID with folded letter case."""
        return self.notice.event.key


class Doubt(NamedTuple):
    """An unconfirmed state of an event, None for its absence, and the documents in a row with it."""

    event: ScheduledEvent | None
    times: int


class Ledger(NamedTuple):
    """All known events.

    Attributes:
        sequence: number of the latest change.
        entries: listed events by key.
        ended: events that ended lately, the oldest first, at most MAX_ENDED.
        doubts: unconfirmed states by key.
    """

    sequence: int
    entries: Mapping[str, Entry] = {}
    ended: tuple[Entry, ...] = ()
    doubts: Mapping[str, Doubt] = {}


class _Advance:
    """Applies one document to a ledger: a working copy, and the changes so far."""

    def __init__(
        self, ledger: Ledger, document: EventDocument, now: datetime, is_selected: Callable[[ScheduledEvent], bool]
    ) -> None:
        self._before = ledger
        self._document = document
        self._when = as_utc_text(now)
        self._is_selected = is_selected
        self._entries = dict(ledger.entries)
        self._ended = {entry.key: entry for entry in ledger.ended}
        self._doubts: dict[str, Doubt] = {}
        self._notices: list[Notice] = []

    def result(self) -> tuple[Ledger, tuple[Notice, ...]]:
        present = {event.key: event for event in self._document.events}
        for key, entry in self._before.entries.items():
            if key not in present:
                self._missing(key, entry)
        for key, event in present.items():
            known = self._entries.get(key)
            if known is None:
                self._appeared(key, event)
            else:
                self._listed(key, event, known)
        sequence = self._before.sequence + len(self._notices)
        ended = tuple(self._ended.values())[-MAX_ENDED:]
        return Ledger(sequence, self._entries, ended, self._doubts), tuple(self._notices)

    def _missing(self, key: str, entry: Entry) -> None:
        """Handle a known event that the document does not list."""
        if not self._document.complete:
            # the unreadable entry may be this event: neither confirm nor discard the doubt
            if key in self._before.doubts:
                self._doubts[key] = self._before.doubts[key]
            return
        if self._is_confirmed(key, None, entry.returns):
            event = entry.notice.event
            del self._entries[key]
            self._ended.pop(key, None)
            self._ended[key] = entry._replace(notice=self._note(Change(GONE, event, event), entry), former=None)

    def _appeared(self, key: str, event: ScheduledEvent) -> None:
        """Handle an event that is new, or returns after its end."""
        earlier = self._ended.get(key)
        if earlier is not None and not self._is_confirmed(key, event, earlier.returns):
            return
        self._ended.pop(key, None)
        self._entries[key] = Entry(
            notice=self._note(Change(APPEARED, event), None),
            seen_started=event.status == "Started",
            selected=self._is_selected(event),
            announced=earlier is not None and earlier.announced,
            returns=0 if earlier is None else earlier.returns + 1,
        )

    def _listed(self, key: str, event: ScheduledEvent, known: Entry) -> None:
        """Handle a known event, which may have changed."""
        before = known.notice.event
        if event == before:
            return
        found = changes(EventDocument(None, (before,)), EventDocument(None, (event,)))
        if not found:
            return
        returned = _is_return(known, event)
        if returned and not self._is_confirmed(key, event, known.returns):
            return
        self._entries[key] = known._replace(
            notice=self._note(found[0], known),
            seen_started=known.seen_started or event.status == "Started",
            selected=known.selected or self._is_selected(event),
            returns=known.returns + returned,
            former=before,
        )

    def _is_confirmed(self, key: str, event: ScheduledEvent | None, returns: int) -> bool:
        """Return True if enough documents in a row agree on that state; note a doubt otherwise."""
        known = self._before.doubts.get(key)
        doubt = Doubt(event, known.times + 1 if known is not None and known.event == event else 1)
        if doubt.times >= ABSENCES_NEEDED << min(returns, _MAX_DOUBLINGS):
            return True
        self._doubts[key] = doubt
        return False

    def _note(self, change: Change, entry: Entry | None) -> Notice:
        sequence = self._before.sequence + len(self._notices) + 1
        self._notices.append(_notice(change, entry, sequence, self._when, self._document.incarnation))
        return self._notices[-1]


def advance(
    ledger: Ledger, document: EventDocument, now: datetime, is_selected: Callable[[ScheduledEvent], bool]
) -> tuple[Ledger, tuple[Notice, ...]]:
    """Return the ledger after one more good document, and the changes, ends first.

    ``now`` is the aware time of the changes. ``is_selected`` says whether an event meets the selection,
    disregarding statuses.
    """
    return _Advance(ledger, document, now, is_selected).result()


def add_expected(ledger: Ledger, events: Iterable[ScheduledEvent], now: datetime) -> Ledger:
    """Return the ledger with these events from the record, whose end is then noticed.

    They were listed when they were recorded, though this watcher has not seen them.
    """
    known = {entry.key for entry in ledger.ended}.union(ledger.entries)
    missing = {event.key: event for event in events if event.key not in known}
    if not missing:
        return ledger
    when = as_utc_text(now)
    added = {
        key: Entry(Notice("scheduled", event, (), None, ledger.sequence, when, when, None), False, True)
        for key, event in missing.items()
    }
    return ledger._replace(entries={**ledger.entries, **added})


def mark_announced(ledger: Ledger, announced: Mapping[str, bool]) -> Ledger:
    """Return the ledger after sending: True for a listed event, False for its end, by key."""

    def updated(entry: Entry) -> Entry:
        return entry._replace(announced=announced.get(entry.key, entry.announced))

    return ledger._replace(
        entries={key: updated(entry) for key, entry in ledger.entries.items()}, ended=tuple(map(updated, ledger.ended))
    )


def drop_old_ends(ledger: Ledger, now: datetime, gone_for: float) -> Ledger:
    """Return the ledger without the events that ended more than ``gone_for`` seconds ago."""
    kept = ledger.ended
    while kept and _age(kept[0], now) > gone_for:
        kept = kept[1:]
    return ledger if kept is ledger.ended else ledger._replace(ended=kept)


def reselect(ledger: Ledger, is_selected: Callable[[ScheduledEvent], bool]) -> Ledger:
    """Return the ledger for another selection or VM name, by the latest state of each event."""

    def updated(entry: Entry) -> Entry:
        return entry._replace(selected=is_selected(entry.notice.event))

    return ledger._replace(
        entries={key: updated(entry) for key, entry in ledger.entries.items()}, ended=tuple(map(updated, ledger.ended))
    )


def _is_return(entry: Entry, event: ScheduledEvent) -> bool:
    """Return True for the state before the latest change, and for a step back from Started.

    Neither happens in the documents of one backend.
    """
    return event == entry.former or (entry.notice.event.status == "Started" and event.status != "Started")


def _notice(change: Change, entry: Entry | None, sequence: int, now: str, incarnation: int | None) -> Notice:
    event = change.event
    outcome = None
    kind = "changed"
    if change.kind == GONE:
        kind = GONE
        outcome = "ended" if entry is not None and entry.seen_started else "not_started"
    elif change.kind == STARTED or (change.kind == APPEARED and event.status == "Started"):
        kind = "started"
    elif change.kind == APPEARED and event.status == "Scheduled":
        kind = "scheduled"
    first_seen = entry.notice.first_seen if entry is not None else now
    return Notice(kind, event, change.fields, outcome, sequence, first_seen, now, incarnation)


def _age(entry: Entry, now: datetime) -> float:
    seen = datetime.fromisoformat(entry.notice.changed_at.replace("Z", "+00:00"))
    return (now - seen).total_seconds()
