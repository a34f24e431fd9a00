# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides which deliveries are news: not duplicates, not late, not disordered. Bounded memory, no clock.

An event passes through the phases pending, started and gone. A delivery of an earlier phase than the known one is late.
Several VMs report the same event; the first report of each state is news. An end that Event Grid reports is that of the
event. One that a VM reports is news when every VM that has reported the event has reported its end. The clocks of two
reporters may differ. Therefore a report after the end counts as a new occurrence of the event only if its own reporter
has reported the end before, by the same clock, or if it is the first report of this reporter.
"""

from __future__ import annotations

import collections
import hashlib
import typing as t

from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.changes import (
    APPEARED,
    CHANGED,
    GONE,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.event_types import (
    removes_vm,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.identity import (
    vm_key,
)

from .change import REPORTED_BY_EVENT_GRID, moment

_PENDING, _STARTED, _GONE = 0, 1, 2
_MAX_REPORTERS = 2000

Change = t.Mapping[str, t.Any]


class Judgement(t.NamedTuple):
    """The part of a change that is new to the known state of its event.

    Attributes:
        is_news: whether it adds anything.
        kind: of the change. The kind of a pending event that is known is "changed", because Event Grid says
            "Scheduled" for both.
        occurrence: 1, and one more each time the event is listed again after its end.
    """

    is_news: bool
    kind: str
    occurrence: int


class _Known:
    """The latest state of an event."""

    def __init__(self) -> None:
        self.occurrence = 1
        self.phase = -1
        self.at = float("-inf")
        self.state: tuple[t.Any, ...] = ()
        self.has_resources = False
        # reporter -> time of its latest report of an end
        self.ends: dict[str, float] = {}
        # reporters of this occurrence that have not reported its end
        self.awaited: set[str] = set()


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

    def judge(self, change: Change) -> Judgement:
        """Remember a change; return what it adds."""
        key = change["event"]["event_id"].casefold()
        delivery = (change["reported_by"], change["id"])
        if delivery in self._deliveries:
            return Judgement(False, change["change"], self._events[key].occurrence if key in self._events else 1)
        self._deliveries[delivery] = None
        if len(self._deliveries) > self._max_deliveries:
            self._deliveries.popitem(last=False)
        known = self._events.get(key)
        if known is None:
            known = self._events[key] = _Known()
            if len(self._events) > self._max_events:
                self._events.popitem(last=False)
        self._events.move_to_end(key)
        kind = change["change"]
        if kind == APPEARED and known.phase == _PENDING and change["reported_by"] == REPORTED_BY_EVENT_GRID:
            kind = CHANGED
        return Judgement(_is_news(known, change), kind, known.occurrence)


def _is_news(known: _Known, change: Change) -> bool:
    phase, at, reporter = _phase(change), moment(change), change["reporter"]
    if at <= known.ends.get(reporter, float("-inf")):
        return False  # this reporter observed it before the end
    if known.phase == _GONE and phase != _GONE and _begins_again(known, change, at):
        known.occurrence += 1
        known.phase, known.awaited = -1, set()
    _note_reporter(known, reporter, phase, at)
    if phase < known.phase:
        return False
    if phase == _GONE and (known.phase == _GONE or _is_awaited(known, change)):
        return False
    state, has_resources = _state(change), bool(change["event"]["resources"])
    # Salt omits a list of VMs that is too long: such a report adds nothing to a complete one
    completes, is_cut = has_resources > known.has_resources, has_resources < known.has_resources
    if phase == known.phase and not completes and (is_cut or state == known.state or at < known.at):
        return False
    known.phase, known.at, known.state, known.has_resources = phase, max(at, known.at), state, has_resources
    return True


def _begins_again(known: _Known, change: Change, at: float) -> bool:
    """Return True if a report of an event that is gone belongs to a new occurrence of the same ID."""
    return change["reporter"] in known.ends or (change["change"] == APPEARED and at > known.at)


def _note_reporter(known: _Known, reporter: str, phase: int, at: float) -> None:
    if phase != _GONE:
        if len(known.awaited) < _MAX_REPORTERS:
            known.awaited.add(reporter)
        return
    known.awaited.discard(reporter)
    if len(known.ends) < _MAX_REPORTERS or reporter in known.ends:
        known.ends[reporter] = at


def _is_awaited(known: _Known, change: Change) -> bool:
    """Return True if the end of the event at one of its reporters is still to come."""
    if change["reported_by"] == REPORTED_BY_EVENT_GRID:
        return False
    event = change["event"]
    # a VM that is removed reports no end
    lost = set(map(vm_key, event["resources"])) if removes_vm(event["event_type"]) else set()
    # Event Grid has no name and reports the end itself
    return any(name.casefold() not in lost for name in known.awaited)


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
        hashlib.sha256("\n".join(sorted(map(vm_key, event["resources"]))).encode()).digest(),
        None if started else event["not_before"],
        "" if started else event["status"].casefold(),
    )
