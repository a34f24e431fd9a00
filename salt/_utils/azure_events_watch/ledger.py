# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""What a watcher knows: every event that lasts, what happened to it last, the number of that, and what ended lately. Pure.

An event is gone when two good, complete documents in a row lack it; until then, and after any other
answer, it lasts. Backends of IMDS may disagree for long. So what comes back has to be seen twice in
a row, and twice as often each time it does.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Callable, Iterable, Mapping, NamedTuple

from azure_scheduled_events.changes import ABSENCES_NEEDED, APPEARED, STARTED, Change, changes
from azure_scheduled_events.document import EventDocument, ScheduledEvent
from azure_scheduled_events.timestamps import as_utc_text

GONE = "gone"
# ends that are remembered
MAX_ENDED = 100
# how often the number of documents doubles that have to agree
_MAX_DOUBLINGS = 5


class Notice(NamedTuple):
    """One change of one event, as it is sent.

    Attributes:
        change: "scheduled", "changed", "started" or "gone".
        event: as it was then; for "gone" as it was last.
        fields: names of what differs.
        outcome: of "gone": "ended" (it was seen Started) or "not_started" (it was not: cancelled,
            or over between two looks).
        sequence: number of the change; grows only.
        first_seen, changed_at: ISO 8601 UTC.
        incarnation: of the document that showed it, or None.
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
        """As plain JSON values: the common shape of an event, and what is sent about the change."""
        told = self._asdict()
        told.update(
            self.event.as_dict(), fields=["duration_seconds" if name == "duration" else name for name in self.fields]
        )
        del told["event"]
        return told


class Entry(NamedTuple):
    """An event that is there, or was until lately.

    Attributes:
        notice: the latest change.
        seen_started: whether it was ever seen Started.
        meant: whether the selection, its statuses left aside, ever met it. It stays so when the
            event leaves this VM, whose end is sent then.
        announced: whether a master was sent that it lasts, and not yet that it is over.
        returns: how often something about it came back that had been called over or changed.
        former: as it was before the latest change, or None.
    """

    notice: Notice
    seen_started: bool
    selected: bool
    announced: bool = False
    returns: int = 0
    former: ScheduledEvent | None = None

    @property
    def is_listed(self) -> bool:
        return self.notice.change != GONE

    @property
    def key(self) -> str:
        return self.notice.event.key


class Doubt(NamedTuple):
    """What the latest documents say of an event, as often in a row, that is not believed yet; None for its absence."""

    event: ScheduledEvent | None
    times: int


class Ledger(NamedTuple):
    """All that is known.

    Attributes:
        sequence: number of the latest change of all.
        entries: what lasts, by the key of the event.
        ended: what ended lately, the oldest first, at most ENDS.
        doubts: by key.
    """

    sequence: int
    entries: Mapping[str, Entry] = {}
    ended: tuple[Entry, ...] = ()
    doubts: Mapping[str, Doubt] = {}


def advance(
    ledger: Ledger, document: EventDocument, now: datetime, selected: Callable[[ScheduledEvent], bool]
) -> tuple[Ledger, tuple[Notice, ...]]:
    """The ledger after one more good document, and what that document changed, in the order of sending: ends first."""
    entries = dict(ledger.entries)
    ended = {entry.key: entry for entry in ledger.ended}
    doubts: dict[str, Doubt] = {}
    notices: list[Notice] = []
    when = as_utc_text(now)

    def note(change: Change, entry: Entry | None) -> Notice:
        notices.append(_notice(change, entry, ledger.sequence + len(notices) + 1, when, document.incarnation))
        return notices[-1]

    present = {event.key: event for event in document.events}
    for key, entry in ledger.entries.items():
        if key in present:
            continue
        if not document.complete:
            # its entry may be one that could not be read
            if key in ledger.doubts:
                doubts[key] = ledger.doubts[key]
            continue
        doubt = _count_observation(ledger.doubts.get(key), None)
        if doubt.times < _documents_needed(entry.returns):
            doubts[key] = doubt
            continue
        event = entry.notice.event
        del entries[key]
        ended.pop(key, None)
        ended[key] = entry._replace(notice=note(Change(GONE, event, event), entry), former=None)
    for key, event in present.items():
        known = entries.get(key)
        if known is None:
            earlier = ended.get(key)
            doubt = _count_observation(ledger.doubts.get(key), event)
            if earlier is not None and doubt.times < _documents_needed(earlier.returns):
                doubts[key] = doubt
                continue
            ended.pop(key, None)
            returns = 0 if earlier is None else earlier.returns + 1
            notice = note(Change(APPEARED, event), None)
            entries[key] = Entry(
                notice, event.status == "Started", selected(event), earlier is not None and earlier.announced, returns
            )
            continue
        event_before = known.notice.event
        found = (
            ()
            if event == event_before
            else changes(EventDocument(None, (event_before,)), EventDocument(None, (event,)))
        )
        if not found:
            continue
        comes_back = _is_return(known, event)
        doubt = _count_observation(ledger.doubts.get(key), event)
        if comes_back and doubt.times < _documents_needed(known.returns):
            doubts[key] = doubt
            continue
        notice = note(found[0], known)
        entries[key] = known._replace(
            notice=notice,
            seen_started=known.seen_started or event.status == "Started",
            selected=known.selected or selected(event),
            returns=known.returns + comes_back,
            former=event_before,
        )
    return Ledger(ledger.sequence + len(notices), entries, tuple(ended.values())[-MAX_ENDED:], doubts), tuple(notices)


def add_expected(ledger: Ledger, events: Iterable[ScheduledEvent], now: datetime) -> Ledger:
    """The ledger with these events, which lasted when they were recorded: their end is noticed although their beginning was not."""
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
    """The ledger with what was sent meanwhile: True for an event that lasts, False for its end."""

    def updated(entry: Entry) -> Entry:
        return entry._replace(announced=announced.get(entry.key, entry.announced))

    return ledger._replace(
        entries={key: updated(entry) for key, entry in ledger.entries.items()}, ended=tuple(map(updated, ledger.ended))
    )


def drop_old_ends(ledger: Ledger, now: datetime, gone_for: float) -> Ledger:
    """The ledger without the ends that were seen more than ``gone_for`` seconds ago."""
    kept = ledger.ended
    while kept and _age(kept[0], now) > gone_for:
        kept = kept[1:]
    return ledger if kept is ledger.ended else ledger._replace(ended=kept)


def reselect(ledger: Ledger, selected: Callable[[ScheduledEvent], bool]) -> Ledger:
    """The ledger by another selection, or another name of this VM, than that by which it was made: only last shapes are known."""

    def updated(entry: Entry) -> Entry:
        return entry._replace(selected=selected(entry.notice.event))

    return ledger._replace(
        entries={key: updated(entry) for key, entry in ledger.entries.items()}, ended=tuple(map(updated, ledger.ended))
    )


def _documents_needed(returns: int) -> int:
    """How many documents in a row have to agree before an event is over, or comes back."""
    return ABSENCES_NEEDED << min(returns, _MAX_DOUBLINGS)


def _count_observation(doubt: Doubt | None, event: ScheduledEvent | None) -> Doubt:
    return Doubt(event, doubt.times + 1 if doubt is not None and doubt.event == event else 1)


def _is_return(entry: Entry, event: ScheduledEvent) -> bool:
    """Return True for the shape before the latest change, and for a step back from Started, which never happens in one backend."""
    return event == entry.former or (entry.notice.event.status == "Started" and event.status != "Started")


def _notice(change: Change, entry: Entry | None, sequence: int, now: str, incarnation: int | None) -> Notice:
    event = change.event
    outcome = None
    word = "changed"
    if change.kind == GONE:
        word = GONE
        outcome = "ended" if entry is not None and entry.seen_started else "not_started"
    elif change.kind == STARTED or (change.kind == APPEARED and event.status == "Started"):
        word = "started"
    elif change.kind == APPEARED and event.status == "Scheduled":
        word = "scheduled"
    first_seen = entry.notice.first_seen if entry is not None else now
    return Notice(word, event, change.fields, outcome, sequence, first_seen, now, incarnation)


def _age(entry: Entry, now: datetime) -> float:
    seen = datetime.fromisoformat(entry.notice.changed_at.replace("Z", "+00:00"))
    return (now - seen).total_seconds()
