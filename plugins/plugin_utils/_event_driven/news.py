# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides which deliveries are news: not duplicates, not late, not disordered. Bounded memory, no clock.

An event passes through the phases pending, started and gone. Several VMs report the same event; the first report of
each state is news. The clock of a VM may be wrong, and a report may be forged. Therefore a report is late only if the
same reporter has reported a later phase, or the same phase at a later time. An end that Event Grid reports is that of
the event. One that a VM reports is news when every VM that has reported the event has reported its end. A report after
the end counts as a new occurrence of the event if its own reporter has reported the end before, by the same clock, or
if it is the first report of this reporter, and its state is not known or its time is after the end.
"""

from __future__ import annotations

import collections
import hashlib
import typing as t

from ...module_utils.azure_scheduled_events.changes import APPEARED, CHANGED, GONE
from ...module_utils.azure_scheduled_events.event_types import removes_vm
from ...module_utils.azure_scheduled_events.identity import vm_key
from .change import REPORTED_BY_EVENT_GRID, moment

_PENDING, _STARTED, _GONE = 0, 1, 2
_MAX_REPORTERS = 2000
_MAX_STATES = 100

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


class _State(t.NamedTuple):
    """The values of a report whose difference is a change; reporters may spell the others in another way.

    Attributes:
        phase: of the event.
        has_resources: Salt omits a list of VMs that is too long.
        names: a hash of the names of the VMs.
        event_type, not_before, status: the last two only while it is pending.
    """

    phase: int
    has_resources: bool
    names: bytes
    event_type: str
    not_before: str | None
    status: str


class _Known:
    """What is known of an event: its present occurrence, and the ends of all."""

    def __init__(self) -> None:
        self.occurrence = 1
        # the latest state that was news, its reporter as `vm_key`, and the latest time of news
        self.state: _State | None = None
        self.reporter = ""
        self.at = float("-inf")
        # each state that was news, oldest first
        self.states: dict[_State, None] = {}
        # reporter that has not reported the end -> phase and time of its latest report
        self.reports: dict[str, tuple[int, float]] = {}
        # reporter -> time of its latest report of an end, also of an earlier occurrence
        self.ends: dict[str, float] = {}

    def is_in(self, phase: int) -> bool:
        """Return True if the latest state that was news is of this phase."""
        return self.state is not None and self.state.phase == phase

    def begin_again(self) -> None:
        """Begin another occurrence."""
        self.occurrence += 1
        self.state = None
        self.states.clear()
        self.reports.clear()

    def note_report(self, reporter: str, phase: int, at: float) -> None:
        """Remember the time of a report."""
        if phase == _GONE:
            self.reports.pop(reporter, None)
            if len(self.ends) < _MAX_REPORTERS or reporter in self.ends:
                self.ends[reporter] = at
        elif len(self.reports) < _MAX_REPORTERS or reporter in self.reports:
            self.reports[reporter] = max((phase, at), self.reports.get(reporter, (phase, at)))

    def note_news(self, state: _State, reporter: str, at: float) -> None:
        """Remember a state that is news."""
        self.state, self.reporter, self.at = state, reporter, max(at, self.at)
        self.states[state] = None
        if len(self.states) > _MAX_STATES:
            del self.states[next(iter(self.states))]


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
        if kind == APPEARED and known.is_in(_PENDING) and change["reported_by"] == REPORTED_BY_EVENT_GRID:
            kind = CHANGED
        return Judgement(_is_news(known, change), kind, known.occurrence)


def _is_news(known: _Known, change: Change) -> bool:
    state, at, reporter = _state(change), moment(change), vm_key(change["reporter"])
    if at <= known.ends.get(reporter, float("-inf")):
        return False  # this reporter observed it before the end
    if known.is_in(_GONE) and state.phase != _GONE and _begins_again(known, change, state, reporter, at):
        known.begin_again()
    is_late = (state.phase, at) < known.reports.get(reporter, (_PENDING, float("-inf")))
    known.note_report(reporter, state.phase, at)
    if is_late or known.is_in(_GONE):
        return False
    adds_nothing = _is_awaited(known, change) if state.phase == _GONE else _is_reported(known, state, reporter)
    if adds_nothing:
        return False
    known.note_news(state, reporter, at)
    return True


def _begins_again(known: _Known, change: Change, state: _State, reporter: str, at: float) -> bool:
    """Return True if a report of an event that is gone belongs to a new occurrence of the same ID."""
    if reporter in known.ends:
        return True
    return change["change"] == APPEARED and (state not in known.states or at > known.at)


def _is_reported(known: _Known, state: _State, reporter: str) -> bool:
    """Return True if the state adds nothing to those that have been reported."""
    if state in known.states:
        # a pending event can return to an earlier state: the reporter of the latest one sees that
        is_return = state.phase == _PENDING and state != known.state and reporter == known.reporter
        return not is_return
    # without a list of VMs it adds nothing to a complete one
    return not state.has_resources and any(each.has_resources and each.phase == state.phase for each in known.states)


def _is_awaited(known: _Known, change: Change) -> bool:
    """Return True if the end of the event at one of its reporters is still to come."""
    if change["reported_by"] == REPORTED_BY_EVENT_GRID:
        return False
    event = change["event"]
    # a VM that is removed reports no end
    lost = set(map(vm_key, event["resources"])) if removes_vm(event["event_type"]) else set()
    # Event Grid has no name and reports the end itself
    return any(name not in lost for name in known.reports)


def _state(change: Change) -> _State:
    event = change["event"]
    is_started = event["status"].casefold() == "started"
    phase = _GONE if change["change"] == GONE else _STARTED if is_started else _PENDING
    return _State(
        phase=phase,
        has_resources=bool(event["resources"]),
        names=hashlib.sha256("\n".join(sorted(map(vm_key, event["resources"]))).encode()).digest(),
        event_type=event["event_type"].casefold(),
        not_before=event["not_before"] if phase == _PENDING else None,
        status=event["status"].casefold() if phase == _PENDING else "",
    )
