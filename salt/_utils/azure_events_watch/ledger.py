# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""What a watcher knows: every event it has seen, what happened to it last, and the number of that. Pure.

An event is gone when two good, complete documents in a row lack it; until then, and after any other answer, it lasts.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Callable, Mapping, NamedTuple, Optional

from azure_scheduled_events.changes import ABSENCES_NEEDED, APPEARED, GONE, STARTED, Change, carried_over, changes
from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.timestamps import as_utc_text


class Notice(NamedTuple):
    """One change of one event, as it is told.

    Attributes:
        change: "scheduled", "changed", "started" or "gone".
        event: as it was then; for "gone" as it was last.
        fields: names of what differs.
        outcome: of "gone": "ended" (it was seen Started) or "not_started" (it was not: cancelled, or over between two looks).
        sequence: number of the change; grows only.
        first_seen, changed_at: ISO 8601 UTC.
        incarnation: of the document that showed it, or None.
    """

    change: str
    event: ScheduledEvent
    fields: tuple[str, ...]
    outcome: Optional[str]
    sequence: int
    first_seen: str
    changed_at: str
    incarnation: Optional[int]

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON values: the common shape of an event, and what is told about the change."""
        told = self._asdict()
        told.update(self.event.as_dict(), fields=["duration_seconds" if name == "duration" else name for name in self.fields])
        del told["event"]
        return told


class Entry(NamedTuple):
    """An event that is there, or was until lately.

    Attributes:
        notice: the latest change.
        seen_started: whether it was ever seen Started.
        meant: whether the selection, its statuses left aside, ever met it. It stays so when the event leaves this VM, whose end is told then.
    """

    notice: Notice
    seen_started: bool
    meant: bool

    @property
    def lasts(self) -> bool:
        return self.notice.change != "gone"


class Ledger(NamedTuple):
    """All entries by the key of their event. ``sequence`` is the number of the latest change of all."""

    sequence: int
    entries: Mapping[str, Entry] = {}
    absences: Mapping[str, int] = {}

    def lasting(self) -> tuple[ScheduledEvent, ...]:
        return tuple(entry.notice.event for entry in self.entries.values() if entry.lasts)


def advance(
    ledger: Ledger, document: EventDocument, now: datetime, meant: Callable[[ScheduledEvent], bool], gone_for: float
) -> tuple[Ledger, tuple[Notice, ...]]:
    """The ledger after one more good document, and what that document changed, in the order of telling.

    Ends that were seen more than ``gone_for`` seconds ago are forgotten.
    """
    before = EventDocument(None, ledger.lasting())
    held, absences = _held(before, document, ledger.absences)
    after = carried_over(before, document)
    entries = {key: entry for key, entry in ledger.entries.items() if entry.lasts or _age(entry, now) <= gone_for}
    notices = []
    sequence = ledger.sequence
    for change in changes(before, after._replace(events=after.events + held)):
        sequence += 1
        notice = _notice(change, ledger.entries.get(change.event.key), sequence, as_utc_text(now), document.incarnation)
        previous = entries.pop(change.event.key, None)
        started = change.event.status == "Started"
        if previous is not None and previous.lasts:
            entries[change.event.key] = Entry(notice, started or previous.seen_started, previous.meant)
        else:
            entries[change.event.key] = Entry(notice, started, False)
        notices.append(notice)
    for key, entry in entries.items():
        if entry.lasts and not entry.meant and meant(entry.notice.event):
            entries[key] = entry._replace(meant=True)
    return Ledger(sequence, entries, absences), tuple(notices)


def reconsidered(ledger: Ledger, meant: Callable[[ScheduledEvent], bool]) -> Ledger:
    """The ledger by another selection, or another name of this VM, than that by which it was made: only last shapes are known."""
    return ledger._replace(
        entries={key: entry._replace(meant=meant(entry.notice.event)) for key, entry in ledger.entries.items()}
    )


def _held(
    before: EventDocument, document: EventDocument, absences: Mapping[str, int]
) -> tuple[tuple[ScheduledEvent, ...], dict[str, int]]:
    """Events that the document lacks, and that are not called gone yet; and how often each was missing."""
    if not document.complete:
        return (), dict(absences)
    present = {event.key for event in document.events}
    missing = {event.key: absences.get(event.key, 0) + 1 for event in before.events if event.key not in present}
    held = tuple(event for event in before.events if missing.get(event.key, ABSENCES_NEEDED) < ABSENCES_NEEDED)
    return held, missing


def _notice(change: Change, entry: Optional[Entry], sequence: int, now: str, incarnation: Optional[int]) -> Notice:
    event = change.event
    outcome = None
    word = "changed"
    if change.kind == GONE:
        word = "gone"
        outcome = "ended" if entry is not None and entry.seen_started else "not_started"
    elif change.kind == STARTED or (change.kind == APPEARED and event.status == "Started"):
        word = "started"
    elif change.kind == APPEARED and event.status == "Scheduled":
        word = "scheduled"
    first_seen = entry.notice.first_seen if entry is not None and entry.lasts else now
    return Notice(word, event, change.fields, outcome, sequence, first_seen, now, incarnation)


def _age(entry: Entry, now: datetime) -> float:
    seen = datetime.fromisoformat(entry.notice.changed_at.replace("Z", "+00:00"))
    return (now - seen).total_seconds()
