# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Azure in virtual seconds: events, and two backends of IMDS that lag and disagree.

The behaviour is that of docs/reference/scheduled-events.md.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from azure_scheduled_events.document import EventDocument, ScheduledEvent

OWN = "vm1"
SCHEDULED, STARTED = "Scheduled", "Started"
ADVICE = "SpotRebalanceRecommendation"
# an unknown type, and one that only advises, are the last ones
TYPES = ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate", "Hibernate", ADVICE)
# types whose event interrupts the guest by a reboot, and types that remove the VM
REBOOTING, REMOVING = ("Reboot", "Redeploy"), ("Preempt", "Terminate")
# virtual second 0
EPOCH = datetime(2026, 11, 23, tzinfo=UTC)
_DATES = [EPOCH + timedelta(seconds=second) for second in range(8000)]


def date_at(second: int) -> datetime:
    """Return the aware UTC time of a virtual second."""
    return _DATES[second] if 0 <= second < len(_DATES) else EPOCH + timedelta(seconds=second)


def second_of(date: datetime) -> float:
    """Return the virtual second of a time."""
    return (date - EPOCH).total_seconds()


@dataclass(frozen=True)
class Change:
    """A change of an event at a second, until it starts: of its type, its VMs or its NotBefore."""

    at: int
    event_type: str | None = None
    vms: frozenset[str] | None = None
    not_before: int | None = None


@dataclass
class AzureEvent:
    """One occurrence of an event.

    Attributes:
        delay: seconds between NotBefore and the start without an approval.
        is_direct: whether it is Started when it appears.
        canceled_at: second at which Azure cancels it, if it has not started.
        hits_after: seconds between its start and the moment at which the VM stops.
    """

    event_id: str
    event_type: str
    vms: frozenset[str]
    appears_at: int
    not_before: int
    is_direct: bool = False
    canceled_at: int | None = None
    delay: int = 0
    lasts: int = 30
    hits_after: int = 3
    changes: list[Change] = field(default_factory=list)
    status: str = ""
    starts_at: int | None = None

    @property
    def key(self) -> str:
        return self.event_id.casefold()

    def entry(self) -> ScheduledEvent:
        not_before = date_at(self.not_before) if self.status == SCHEDULED else None
        vms = tuple(sorted(self.vms))
        return ScheduledEvent(
            self.event_id, self.event_type, self.status, vms, "VirtualMachine", not_before, "", "Platform", None
        )


@dataclass(frozen=True)
class Difference:
    """From `begins` to `ends` one backend has another opinion about an event.

    `what`: "hide" the event, "add" this VM, or the name of a VM that it leaves out, or "later" for NotBefore.
    """

    begins: int
    ends: int
    backend: int
    event_id: str
    what: str


@dataclass
class Backends:
    """How the backends answer.

    Attributes:
        lags: seconds by which each one is behind.
        share: of the answers of the first backend.
        turn: seconds after which the backend changes; 0 to draw it for each answer.
        failing: periods without a good answer.
        unreadable: periods in which the entry of an event, or its VMs, cannot be read.
    """

    lags: tuple[int, int] = (0, 0)
    share: float = 0.5
    turn: int = 0
    differences: list[Difference] = field(default_factory=list)
    failing: list[tuple[int, int]] = field(default_factory=list)
    unreadable: list[tuple[int, int, str]] = field(default_factory=list)

    def is_failing(self, second: int) -> bool:
        return any(begins <= second < ends for begins, ends in self.failing)


class Azure:
    """The truth about all events, and the documents that IMDS gives of it."""

    def __init__(self, events: list[AzureEvent], backends: Backends, chance: random.Random) -> None:
        self._planned = sorted(events, key=lambda event: event.appears_at)
        self._backends = backends
        self._chance = chance
        self.listed: list[AzureEvent] = []
        self._versions: list[tuple[ScheduledEvent, ...]] = []
        self._last: tuple[ScheduledEvent, ...] = ()
        self.trace: list[str] = []

    def advance(self, second: int) -> list[AzureEvent]:
        """Let a second pass; return the events that stop their VMs now."""
        while self._planned and self._planned[0].appears_at <= second:
            event = self._planned.pop(0)
            event.status = STARTED if event.is_direct else SCHEDULED
            event.starts_at = second if event.is_direct else None
            self.listed.append(event)
            self.trace.append(
                f"azure: {event.event_id} {event.event_type} {event.status} {sorted(event.vms)},"
                f" not before {event.not_before}"
            )
        hits = []
        for event in list(self.listed):
            self._change(event, second)
            if event.status == SCHEDULED and event.canceled_at is not None and second >= event.canceled_at:
                self.listed.remove(event)
                self.trace.append(f"azure: {event.event_id} canceled")
            elif event.status == SCHEDULED and self._starts(event, second):
                event.status, event.starts_at = STARTED, second
                self.trace.append(f"azure: {event.event_id} started")
            if event.status == STARTED and event.starts_at is not None:
                if second == event.starts_at + event.hits_after:
                    hits.append(event)
                if second >= event.starts_at + event.lasts:
                    self.listed.remove(event)
                    self.trace.append(f"azure: {event.event_id} over")
        version = tuple(event.entry() for event in self.listed)
        before = self._versions[-1] if self._versions else ()
        self._versions.append(before if version == before else version)
        return hits

    def approve(self, key: str, second: int) -> None:
        """Take an approval: the event starts some seconds later."""
        for event in self.listed:
            if event.key == key and event.status == SCHEDULED and event.starts_at is None:
                event.starts_at = second + self._chance.randint(1, 15)

    def answer(self, second: int) -> EventDocument | None:
        """Return the document that a poll gets, or None if it fails."""
        backends = self._backends
        if backends.is_failing(second):
            return None
        drawn = 0 if self._chance.random() < backends.share else 1
        backend = second // backends.turn % 2 if backends.turn else drawn
        version = self._versions[max(0, len(self._versions) - 1 - backends.lags[backend])]
        events = {event.key: event for event in version}
        for difference in backends.differences:
            if difference.begins <= second < difference.ends and difference.backend == backend:
                _differ(events, difference)
        complete, doubtful = True, []
        for begins, ends, event_id in backends.unreadable:
            if begins <= second < ends and event_id.casefold() in events:
                key = event_id.casefold()
                if second % 2:
                    del events[key]
                    complete = False
                else:
                    events[key] = events[key]._replace(resources=())
                    doubtful.append(key)
        listed = self._shuffled(tuple(events.values()))
        return EventDocument(
            None, listed, (), complete, date_at(second), tuple(doubtful), sent_at=float(second), sent_by=float(second)
        )

    def _shuffled(self, events: tuple[ScheduledEvent, ...]) -> tuple[ScheduledEvent, ...]:
        """Return the same tuple for the same content most of the time, as a cache does, else in another order."""
        if self._chance.random() < 0.1:
            mixed = [each._replace(event_id=each.event_id.swapcase()) for each in events]
            self._chance.shuffle(mixed)
            self._last = tuple(mixed)
        elif events != self._last:
            self._last = events
        return self._last

    def _change(self, event: AzureEvent, second: int) -> None:
        for change in event.changes:
            if change.at == second and (event.status == SCHEDULED or change.vms is not None):
                event.event_type = change.event_type or event.event_type
                event.vms = change.vms or event.vms
                event.not_before = change.not_before or event.not_before
                self.trace.append(
                    f"azure: {event.event_id} is {event.event_type} {sorted(event.vms)}, not before {event.not_before}"
                )

    def _starts(self, event: AzureEvent, second: int) -> bool:
        approved = event.starts_at is not None and second >= event.starts_at
        return approved or second >= event.not_before + event.delay


def _differ(events: dict[str, ScheduledEvent], difference: Difference) -> None:
    key = difference.event_id.casefold()
    event = events.get(key)
    if event is None:
        return
    if difference.what == "hide":
        del events[key]
    elif difference.what == "add":
        events[key] = event._replace(resources=tuple(sorted({*event.resources, OWN})))
    elif difference.what == "later":
        if event.not_before is not None:
            events[key] = event._replace(not_before=event.not_before + timedelta(seconds=30))
    elif len(event.resources) > 1:  # Azure lists no event without a VM
        events[key] = event._replace(resources=tuple(vm for vm in event.resources if vm != difference.what))
