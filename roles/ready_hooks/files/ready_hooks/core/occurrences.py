# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The events that a reporting hook has seen, in its record: when they came, and which stages it has reported.

The record undoes nothing. Without it a report of the end lacks its duration, and a stage that runs
again is reported again. Therefore a record that cannot be read or written is only a warning.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Callable, NamedTuple

from ready_hooks.core.errors import HookError
from ready_hooks.core.event import Event
from ready_hooks.core.hook import EMERGENCY, RECOVER, STARTED, Run
from ready_hooks.core.outcome import outcome_of

# an event whose end this host never learned is dropped
MOST_KEPT, KEPT_FOR = 50, 30 * 24 * 3600.0


class Occurrence(NamedTuple):
    """One event on this host.

    Attributes:
        event: as it was in the latest stage.
        seen: time of its first stage, in seconds since 1970.
        started: time of stage started or emergency; None before.
        reported: the stages that were reported, in their order.
    """

    event: Event
    seen: float
    started: float | None
    reported: tuple[str, ...]


class Occurrences:
    """The events in the record of one hook; `clock` returns seconds since 1970, and goes on over a reboot."""

    def __init__(self, run: Run, clock: Callable[[], float] = time.time) -> None:
        self._run, self._clock = run, clock

    def enter(self) -> Occurrence:
        """Note that the event of this run has entered its stage, and return its entry."""
        known, event, now = self._load(), self._run.event, self._clock()
        entry = known.get(event.event_id) or Occurrence(event, now, None, ())
        if entry.started is None and event.stage in (STARTED, EMERGENCY):
            entry = entry._replace(started=now)
        known[event.event_id] = entry = entry._replace(event=event)
        self._save(known)
        return entry

    def mark_reported(self) -> None:
        """Note that the stage of this run is reported."""
        known, event = self._load(), self._run.event
        entry = known.get(event.event_id)
        if entry is not None and event.stage not in entry.reported:
            known[event.event_id] = entry._replace(reported=(*entry.reported, event.stage))
            self._save(known)

    def ended(self) -> list[Occurrence]:
        """Return the events that are over now: all in the record.

        The callers recover once, after the end of the last event, and name only one of them.
        """
        own = self._run.event
        found = []
        for event_id, entry in self._load().items():
            if event_id == own.event_id:
                found.append(entry._replace(event=_merged(own, entry.event)))
            else:
                outcome = outcome_of(seen_started=entry.started is not None)
                ended = entry.event._replace(stage=RECOVER, outcome=outcome, seconds_left=None)
                found.append(entry._replace(event=ended))
        return found

    def remove(self, ended: Iterable[Occurrence]) -> None:
        """Drop these events."""
        over = {entry.event.event_id for entry in ended}
        self._save({event_id: entry for event_id, entry in self._load().items() if event_id not in over})

    def _load(self) -> dict[str, Occurrence]:
        try:
            data = self._run.record.load() or {}
            known = {event_id: _from_json(entry) for event_id, entry in data.get("events", {}).items()}
        except (HookError, AttributeError, KeyError, TypeError, ValueError) as error:
            self._run.warn(f"{self._run.record.path}: the record is not used: {error}")
            return {}
        return _kept(known, self._clock())

    def _save(self, known: Mapping[str, Occurrence]) -> None:
        try:
            if known:
                entries = {event_id: _to_json(entry) for event_id, entry in known.items()}
                self._run.remember({"events": entries})
            else:
                self._run.forget()
        except HookError as error:
            self._run.warn(str(error))


def _merged(event: Event, before: Event) -> Event:
    """The event of a recovery, of which some callers know little, with the rest from before."""
    missing = {name: value for name, value in before._asdict().items() if getattr(event, name) in ("", None)}
    return event._replace(**{**missing, "seconds_left": None, "outcome": event.outcome})


def _kept(known: Mapping[str, Occurrence], now: float) -> dict[str, Occurrence]:
    recent = [(event_id, entry) for event_id, entry in known.items() if now - entry.seen < KEPT_FOR]
    return dict(sorted(recent, key=lambda item: item[1].seen)[-MOST_KEPT:])


def _to_json(entry: Occurrence) -> dict[str, Any]:
    return {**entry._asdict(), "event": entry.event._asdict()}


def _from_json(entry: Mapping[str, Any]) -> Occurrence:
    started = entry["started"]
    return Occurrence(
        event=Event(**entry["event"]),
        seen=float(entry["seen"]),
        started=None if started is None else float(started),
        reported=tuple(map(str, entry["reported"])),
    )
