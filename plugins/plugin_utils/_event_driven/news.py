# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides which deliveries are news: not duplicates, not late, not disordered. Bounded memory, no clock.

An event passes through the phases pending, started and gone. A delivery of an earlier phase than the known one is late.
Several VMs report the same event; the first report of each state is news. An end without an outcome is the observation
of one VM; it is news when every VM that has reported the event has reported its end.
"""

from __future__ import annotations

import collections
import typing as t

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.changes import (
    APPEARED,
    CHANGED,
    GONE,
)

from .change import REPORTED_BY_EVENT_GRID, moment

_PENDING, _STARTED, _GONE = 0, 1, 2
# types after which a VM does not return, so that it reports no end
_VM_IS_LOST = ("preempt", "terminate")
_MAX_REPORTERS = 10000

Change = t.Mapping[str, t.Any]


class _Known:
    """The latest state of an event."""

    def __init__(self) -> None:
        self.phase = -1
        self.at = float("-inf")
        self.state: tuple[t.Any, ...] = ()
        # reporter -> whether it has reported the end
        self.reporters: dict[str, bool] = {}


class News:
    """Remembers events and deliveries.

    Args:
        max_events: of which the state is remembered; the one whose last delivery is oldest is dropped.
        max_deliveries: of which the id is remembered, the latest ones.
    """

    def __init__(self, max_events: int = 2000, max_deliveries: int = 20000) -> None:
        self._max_events, self._max_deliveries = max_events, max_deliveries
        self._events: collections.OrderedDict[str, _Known] = collections.OrderedDict()
        self._deliveries: collections.OrderedDict[tuple[str, str], None] = collections.OrderedDict()

    def judge(self, change: Change) -> tuple[bool, str]:
        """Remember a change; return whether it is news, and its kind.

        The kind of a pending event that is known is "changed", because Event Grid says "Scheduled" for both.
        """
        delivery = (change["reported_by"], change["id"])
        if delivery in self._deliveries:
            return False, change["change"]
        self._deliveries[delivery] = None
        if len(self._deliveries) > self._max_deliveries:
            self._deliveries.popitem(last=False)
        key = change["event"]["event_id"].casefold()
        known = self._events.get(key)
        if known is None:
            known = self._events[key] = _Known()
            if len(self._events) > self._max_events:
                self._events.popitem(last=False)
        self._events.move_to_end(key)
        kind = change["change"]
        if kind == APPEARED and known.phase == _PENDING and change["reported_by"] == REPORTED_BY_EVENT_GRID:
            kind = CHANGED
        return _is_news(known, change), kind


def _is_news(known: _Known, change: Change) -> bool:
    phase, at = _phase(change), moment(change)
    if known.phase == _GONE and phase != _GONE and at > known.at:
        known.phase, known.reporters = -1, {}  # the same ID again, observed after the end
    reporter = change["reporter"]
    if len(known.reporters) < _MAX_REPORTERS or reporter in known.reporters:
        known.reporters[reporter] = phase == _GONE or known.reporters.get(reporter, False)
    if phase < known.phase:
        return False
    if phase == _GONE:
        if known.phase == _GONE:
            return False
        if change["outcome"] is None and _awaited(known, change):
            return False
    state = _state(change)
    if phase == known.phase and (state == known.state or at < known.at):
        return False
    known.phase, known.at, known.state = phase, max(at, known.at), state
    return True


def _awaited(known: _Known, change: Change) -> list[str]:
    """Return the reporters of the event whose end is still to come."""
    event = change["event"]
    lost = {name.casefold() for name in event["resources"]} if event["event_type"].casefold() in _VM_IS_LOST else set()
    return [
        name
        for name, has_ended in known.reporters.items()
        # Event Grid has no name and reports the end itself, with its outcome
        if not has_ended and name.casefold() not in lost
    ]


def _phase(change: Change) -> int:
    if change["change"] == GONE:
        return _GONE
    return _STARTED if change["event"]["status"].casefold() == "started" else _PENDING


def _state(change: Change) -> tuple[t.Any, ...]:
    """Return the values whose difference is a change; reporters may spell the others in another way."""
    event = change["event"]
    started = _phase(change) != _PENDING
    return (
        event["event_type"].casefold(),
        tuple(sorted(name.casefold() for name in event["resources"])),
        None if started else event["not_before"],
        "" if started else event["status"].casefold(),
    )
