# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Tracks which events there are, and which VMs each of them affects (docs/reference/scheduled-events.md 2.5.7, 6.2.12).

The backends of IMDS may disagree for a moment. Therefore an event, or a VM of its Resources, is gone when at least two
good documents in a row lack it whose requests were sent GONE_AFTER apart. Until then it counts as present: an approval
would still release its VMs. An event that becomes less severe keeps its type as long. What comes back after it was gone
is new, and its next absence has to last GONE_AFTER_A_RETURN. Nothing else answers these questions.
"""

from __future__ import annotations

from copy import copy
from typing import Collection, Iterable, Mapping, NamedTuple

from .changes import Change, changes
from .document import EventDocument, ScheduledEvent
from .event_types import severity
from .identity import vm_key

# seconds between the requests of the first and the last document that lacks what is then gone
GONE_AFTER = 2.0
# the same for an event that came back, or a VM of which came back, after it was gone
GONE_AFTER_A_RETURN = 60.0
# seconds for which an event that is gone is remembered, and how many of them are
REMEMBERED_FOR = 86400.0
_MOST_REMEMBERED = 1000
# Stands for events of which no document is known yet. A Tracker that knows it confirms "no events" as it does the end
# of a listed event. No listed event has this id.
UNLISTED = ScheduledEvent("", "", "", (), None, None, None, None, None)


class Sighting(NamedTuple):
    """An event that is not gone.

    Attributes:
        event: as it was listed last, with all its VMs that are not gone. It stays Started once it was Started,
            and does not become less severe at once, whatever a slower backend says.
        listed: whether the last document lists it.
        named: the VMs that the last document names for it, each as `vm_key`; empty if it lacks the event.
        readable: whether the last document that lists it gives its VMs in readable form; before the first one, whether
            any are known.
    """

    event: ScheduledEvent
    listed: bool
    named: frozenset[str]
    readable: bool


class Observation(NamedTuple):
    """The events after one good document.

    Attributes:
        document: this document.
        events: those that are not gone, by key.
        documents: how many documents this process has read; one alone confirms nothing.
        changes: what the document changed. What came back after it was gone has appeared.
        doubt: whether a document without something present was read that did not suffice: another one may end it.
    """

    document: EventDocument
    events: Mapping[str, Sighting]
    documents: int
    changes: tuple[Change, ...]
    doubt: bool


class Tracker:
    """Compares the good documents of one VM.

    Args:
        known: the events of an earlier process that were not gone, each with its VMs that were not: they count as
            listed until documents of this process lack them.
        returned: keys of those of them that had come back.
        gone: keys of the events that were gone less than a day ago.
    """

    def __init__(
        self, known: Iterable[ScheduledEvent] = (), returned: Collection[str] = (), gone: Collection[str] = ()
    ) -> None:
        self._present = {event.key: _Present(event, event.key in returned) for event in known}
        # with the time at which each of them was gone; None until the first document gives a time
        self._gone: dict[str, float | None] = dict.fromkeys(gone)
        self._documents = 0
        self._last: Observation | None = None

    @property
    def returned(self) -> frozenset[str]:
        """Keys of the present events that came back, for the Tracker of the next process."""
        return frozenset(key for key, present in self._present.items() if present.returned)

    @property
    def gone(self) -> tuple[str, ...]:
        """Keys of the events that were gone within a day, for the Tracker of the next process."""
        return tuple(self._gone)

    def copy(self) -> Tracker:
        """Return a Tracker that has read the same documents, for a caller that keeps this one as it is."""
        copied = copy(self)
        copied._present = {key: copy(present) for key, present in self._present.items()}
        copied._gone = dict(self._gone)
        return copied

    def observe(self, document: EventDocument) -> Observation:
        """Return the events after a good document; ``sent_at`` and ``sent_by`` of the document say when it was read."""
        self._documents += 1
        self._forget(document.sent_at)
        last = self._last
        if last is not None and not last.doubt and _is_same(document, last.document):
            self._last = last._replace(document=document, documents=self._documents, changes=())
            return self._last
        before = EventDocument(None, tuple(present.event for present in self._present.values()))
        for event in document.events:
            present = self._present.get(event.key)
            if present is None:
                present = self._present[event.key] = _Present(event, event.key in self._gone)
                self._gone.pop(event.key, None)
            present.see(event, document)
        listed = {event.key for event in document.events}
        for key in [key for key in self._present if key not in listed]:
            if self._present[key].lack(document):
                del self._present[key]
                self._gone[key] = document.sent_at
        for key in list(self._gone)[:-_MOST_REMEMBERED]:
            del self._gone[key]
        after = EventDocument(None, tuple(present.event for present in self._present.values()))
        self._last = Observation(
            document,
            {key: present.sighting(key in listed) for key, present in self._present.items()},
            self._documents,
            changes(before, after),
            any(present.in_doubt for present in self._present.values()),
        )
        return self._last

    def _forget(self, now: float) -> None:
        for key, since in list(self._gone.items()):
            if since is None:
                self._gone[key] = now
            elif now - since > REMEMBERED_FOR:
                del self._gone[key]


def _is_same(one: EventDocument, two: EventDocument) -> bool:
    """Return True if both have the same content, in the usual case that the body has not changed, which is fast."""
    return one.events is two.events and one.complete == two.complete


class _Present:
    """An event that is not gone, and when its present absences began: its own, and those of its VMs by key.

    Its values are replaced, never changed, so that a copy may share them.

    Args:
        event: the event.
        returned: whether it came back after it was gone.
    """

    def __init__(self, event: ScheduledEvent, returned: bool) -> None:
        self.event = event
        self.returned = returned
        self._lacked_since: float | None = None
        self._milder_since: float | None = None
        self._absent_vms: dict[str, float] = {}
        self._gone_vms: frozenset[str] = frozenset()
        self._named: frozenset[str] = frozenset()
        self._readable = bool(event.resources)

    @property
    def in_doubt(self) -> bool:
        return self._lacked_since is not None or self._milder_since is not None or bool(self._absent_vms)

    def sighting(self, listed: bool) -> Sighting:
        return Sighting(self.event, listed, self._named if listed else frozenset(), self._readable)

    def see(self, event: ScheduledEvent, document: EventDocument) -> None:
        """Take in a document that lists the event."""
        self._lacked_since = None
        self._readable = bool(event.resources) and event.key not in document.doubtful
        self._named = frozenset(map(vm_key, event.resources))
        if not self._gone_vms.isdisjoint(self._named):
            self.returned = True
        kept = self._absent(document.complete and self._readable, document)
        if self.event.status == "Started" and event.status != "Started":
            event = event._replace(status="Started", not_before=self.event.not_before)
        is_milder = 0 < severity(event.event_type) < severity(self.event.event_type)
        since = document.sent_by if self._milder_since is None else self._milder_since
        self._milder_since = since if is_milder and not self._is_over(since, document) else None
        if self._milder_since is not None:
            event = event._replace(event_type=self.event.event_type)
        self.event = event._replace(resources=event.resources + kept) if kept else event

    def lack(self, document: EventDocument) -> bool:
        """Take in a document that does not list the event; return True if it is gone."""
        if not document.complete:
            return False  # the entry that cannot be read may be this event
        if self._lacked_since is None:
            self._lacked_since = document.sent_by
            return False
        return self._is_over(self._lacked_since, document)

    def _absent(self, confirms: bool, document: EventDocument) -> tuple[str, ...]:
        """Return the VMs that the document does not name, and that are not gone.

        Args:
            confirms: whether the document confirms an absence.
            document: lists the event.
        """
        kept = []
        absent = {}
        for name in self.event.resources:
            key = vm_key(name)
            if key in self._named:
                continue
            since = self._absent_vms.get(key)
            if confirms and since is not None and self._is_over(since, document):
                self._gone_vms |= {key}
                continue
            kept.append(name)
            if since is not None or confirms:
                absent[key] = document.sent_by if since is None else since
        self._absent_vms = absent
        return tuple(kept)

    def _is_over(self, since: float, document: EventDocument) -> bool:
        return document.sent_at - since >= (GONE_AFTER_A_RETURN if self.returned else GONE_AFTER)
