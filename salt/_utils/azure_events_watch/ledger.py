# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The events that a watcher has seen, with their latest changes. Pure.

The helper's Tracker finds the changes; the ledger numbers them, and knows which events were selected and sent.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Callable, Iterable, Mapping, NamedTuple

from azure_scheduled_events.changes import APPEARED, GONE, Change
from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.outcome import outcome_of
from azure_scheduled_events.timestamps import as_utc_text
from azure_scheduled_events.tracking import Tracker

# events that have ended and are remembered
MAX_ENDED = 100


class Notice(NamedTuple):
    """One change of one event, as it is sent.

    Attributes:
        change: "scheduled", "changed", "started" or "gone".
        event: the event after the change; for "gone" as it was last.
        fields: names of the fields that differ.
        outcome: for "gone", one of OUTCOMES of the helper; else None.
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
    """An event that is present, or was until lately.

    Attributes:
        notice: the latest change.
        selected: whether it ever met the selection, disregarding statuses. It stays selected when
            it no longer affects this VM, because its end must then be sent.
        announced: whether the event was sent to a master, and its end was not.
    """

    notice: Notice
    selected: bool
    announced: bool = False

    @property
    def is_present(self) -> bool:
        """Return True unless the latest change is the end."""
        return self.notice.change != GONE

    @property
    def key(self) -> str:
        """Return the event's ID with folded letter case."""
        return self.notice.event.key


class Ledger(NamedTuple):
    """All known events.

    Attributes:
        sequence: number of the latest change.
        entries: present events by key.
        ended: events that ended lately, the oldest first, at most MAX_ENDED.
        returned, gone: as in the Tracker.
    """

    sequence: int
    entries: Mapping[str, Entry] = {}
    ended: tuple[Entry, ...] = ()
    returned: frozenset[str] = frozenset()
    gone: tuple[str, ...] = ()

    def tracker(self) -> Tracker:
        """Return a Tracker that knows the present events, and those that were gone."""
        return Tracker([entry.notice.event for entry in self.entries.values()], self.returned, self.gone)


def advance(
    ledger: Ledger,
    tracker: Tracker,
    document: EventDocument,
    now: datetime,
    is_selected: Callable[[ScheduledEvent], bool],
) -> tuple[Ledger, tuple[Entry, ...]]:
    """Return the ledger after one more good document, and the events that it changed, ends first.

    The tracker is that of the ledger. ``now`` is the aware time of the changes. ``is_selected`` says whether an event
    meets the selection, disregarding statuses.
    """
    found = tracker.observe(document).changes
    if not found:
        return ledger, ()
    when = as_utc_text(now)
    entries = dict(ledger.entries)
    ended = {entry.key: entry for entry in ledger.ended}
    changed = []
    for sequence, change in enumerate(found, ledger.sequence + 1):
        event = change.event
        known, earlier = entries.get(event.key), ended.pop(event.key, None)
        notice = Notice(
            _word(change),
            event,
            change.fields,
            outcome_of(event.status == "Started") if change.kind == GONE else None,
            sequence,
            when if known is None else known.notice.first_seen,
            when,
            document.incarnation,
        )
        entry = Entry(
            notice,
            is_selected(event) or (known is not None and known.selected),
            any(before is not None and before.announced for before in (known, earlier)),
        )
        changed.append(entry)
        if entry.is_present:
            entries[event.key] = entry
        else:
            entries.pop(event.key, None)
            ended[event.key] = entry
    kept = tuple(ended.values())[-MAX_ENDED:]
    return Ledger(ledger.sequence + len(found), entries, kept, tracker.returned, tracker.gone), tuple(changed)


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
        key: Entry(Notice("scheduled", event, (), None, ledger.sequence, when, when, None), True)
        for key, event in missing.items()
    }
    return ledger._replace(entries={**ledger.entries, **added})


def mark_announced(ledger: Ledger, announced: Mapping[str, bool]) -> Ledger:
    """Return the ledger after sending: True for a present event, False for its end, by key."""
    return _updated(ledger, lambda entry: entry._replace(announced=announced.get(entry.key, entry.announced)))


def drop_old_ends(ledger: Ledger, now: datetime, gone_for: float) -> Ledger:
    """Return the ledger without the events that ended more than ``gone_for`` seconds ago."""
    kept = ledger.ended
    while kept and _age(kept[0], now) > gone_for:
        kept = kept[1:]
    return ledger if kept is ledger.ended else ledger._replace(ended=kept)


def reselect(ledger: Ledger, is_selected: Callable[[ScheduledEvent], bool]) -> Ledger:
    """Return the ledger for another selection or VM name, by the latest state of each event."""
    return _updated(ledger, lambda entry: entry._replace(selected=is_selected(entry.notice.event)))


def _updated(ledger: Ledger, update: Callable[[Entry], Entry]) -> Ledger:
    return ledger._replace(
        entries={key: update(entry) for key, entry in ledger.entries.items()}, ended=tuple(map(update, ledger.ended))
    )


def _word(change: Change) -> str:
    if change.kind == APPEARED:
        return {"Scheduled": "scheduled", "Started": "started"}.get(change.event.status, "changed")
    return change.kind


def _age(entry: Entry, now: datetime) -> float:
    seen = datetime.fromisoformat(entry.notice.changed_at.replace("Z", "+00:00"))
    return (now - seen).total_seconds()
