# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Places lanes, bars and marks of the time line; all lengths are those of the picture's own unit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .axis import Axis, axis_over
from .facts import ANNOUNCED, APPROVED, ENDED, INTERRUPTED, RESUMED, STARTED, Fact
from .run import Event, Fault, Run
from .selection import MAX_FAULTS, Selection
from .wording import shortened

WIDTH = 1160.0
LEFT, RIGHT = 170.0, 1140.0
TOP = 44.0
GROUP = 26.0
BAR = 16.0
MARK = 16.0
LABEL = 15.0
GAP = 8.0
# a character of a label, at most
CHARACTER = 6.6
MAX_LABEL = 60
# bars show these, marks do not
_BARS = frozenset((ANNOUNCED, STARTED, INTERRUPTED, RESUMED, ENDED))


class Bar(NamedTuple):
    """A part of an event from ``x`` to ``end``. ``kind``: scheduled, started or interrupted."""

    kind: str
    event: Event
    x: float
    end: float
    y: float


class Mark(NamedTuple):
    """A fact at (``x``, ``y``), its centre."""

    fact: Fact
    x: float
    y: float


class Label(NamedTuple):
    """A text at (``x``, ``y``)."""

    text: str
    x: float
    y: float


class Deadline(NamedTuple):
    """NotBefore of an event at ``x``; ``is_later``: it is beyond the end of the axis."""

    event: Event
    x: float
    y: float
    is_later: bool


class Band(NamedTuple):
    """A fault over a lane."""

    fault: Fault
    x: float
    end: float
    y: float
    height: float


class Lane(NamedTuple):
    """One VM from ``y`` over ``height``."""

    vm: str
    y: float
    height: float


class Layout(NamedTuple):
    """All parts of the picture."""

    axis: Axis
    zero: float
    height: float
    groups: tuple[Label, ...]
    lanes: tuple[Lane, ...]
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...]
    labels: tuple[Label, ...]
    deadlines: tuple[Deadline, ...]
    bands: tuple[Band, ...]


def zero_of(run: Run, selection: Selection) -> float | None:
    """Return the moment from which the report counts: the first event, else the first fact; None without either."""
    if selection.events:
        return selection.events[0].appeared
    moments = [fact.moment for fact in selection.facts] + [fault.begins for fault in run.faults]
    return min(moments, default=None)


def layout(run: Run, selection: Selection) -> Layout | None:
    """Return the picture of the selected part; None: there is nothing to show."""
    zero = zero_of(run, selection)
    if zero is None or not selection.vms:
        return None
    faults = run.faults[:MAX_FAULTS]
    axis = axis_over(_moments(run, selection, zero), LEFT, RIGHT)
    picture = _Picture(run, selection, axis)
    for group in dict.fromkeys(run.groups[vm] for vm in selection.vms):
        picture.add_group(group, [vm for vm in selection.vms if run.groups[vm] == group])
    bands = [
        Band(fault, axis.x(fault.begins), axis.x(fault.ends), lane.y, lane.height)
        for lane in picture.lanes
        for fault in faults
        if (not fault.vms or lane.vm in fault.vms) and fault.ends >= axis.begins and fault.begins <= axis.ends
    ]
    return Layout(
        axis,
        zero,
        picture.y + GAP,
        tuple(picture.groups),
        tuple(picture.lanes),
        tuple(picture.bars),
        tuple(picture.marks),
        tuple(picture.labels),
        tuple(picture.deadlines),
        tuple(bands),
    )


def _moments(run: Run, selection: Selection, zero: float) -> Iterable[float]:
    """Yield the moments that the axis has to show: what happened, not a NotBefore that was not reached."""
    yield zero
    yield from (fact.moment for fact in selection.facts)
    for event in selection.events:
        yield run.now if event.ended is None else event.ended
    for fault in run.faults[:MAX_FAULTS]:
        yield fault.begins
        if fault.ends < run.now:
            yield fault.ends


class _Row(NamedTuple):
    """A line of a lane with events that do not overlap in the picture."""

    events: list[Event]
    marks: list[Fact]


class _Picture:
    def __init__(self, run: Run, selection: Selection, axis: Axis) -> None:
        self.y = TOP
        self.groups: list[Label] = []
        self.lanes: list[Lane] = []
        self.bars: list[Bar] = []
        self.marks: list[Mark] = []
        self.labels: list[Label] = []
        self.deadlines: list[Deadline] = []
        self._now = run.now
        self._axis = axis
        self._selection = selection
        self._interruptions = _interruptions(selection.facts, run.now)

    def add_group(self, name: str, vms: Sequence[str]) -> None:
        self.groups.append(Label(name, GAP, self.y + GROUP - GAP))
        self.y += GROUP
        for vm in vms:
            self._add_lane(vm)

    def _add_lane(self, vm: str) -> None:
        top = self.y
        self.y += GAP / 2
        for row in self._rows(vm):
            self._add_row(row, vm)
        self.y += GAP / 2
        self.lanes.append(Lane(vm, top, self.y - top))

    def _rows(self, vm: str) -> list[_Row]:
        rows: list[_Row] = []
        row_of: dict[str, _Row] = {}
        events = [event for event in self._selection.events if vm in event.vms]
        for event in events:
            row = next((each for each in rows if not self._overlaps(each, event)), None)
            if row is None:
                row = _Row([], [])
                rows.append(row)
            row.events.append(event)
            row_of[event.name] = row
        if not rows:
            rows.append(_Row([], []))
        for fact in self._selection.facts:
            if not _is_mark_of(fact, vm, row_of):
                continue
            # a fact without an event of the VM is shown at its latest event
            earlier = [each for each in events if each.appeared <= fact.moment]
            row = row_of.get(fact.event) or (row_of[earlier[-1].name] if earlier else rows[0])
            row.marks.append(fact)
        return rows

    def _overlaps(self, row: _Row, event: Event) -> bool:
        return any(self._axis.x(event.appeared) < self._right_end(each) + GAP for each in row.events)

    def _right_end(self, event: Event) -> float:
        x = self._axis.x(event.appeared)
        end = self._axis.x(self._now if event.ended is None else event.ended)
        return max(end, x + len(label_of(event)) * CHARACTER)

    def _add_row(self, row: _Row, vm: str) -> None:
        levels: list[float] = []
        placed = []
        for fact in row.marks:
            x = self._axis.x(fact.moment)
            level = next((number for number, last in enumerate(levels) if x - last >= MARK), len(levels))
            levels[level : level + 1] = [x]
            placed.append((fact, x, level))
        bar_y = self.y + max(len(levels), 1) * MARK
        self.marks += [Mark(fact, x, bar_y - (level + 0.5) * MARK) for fact, x, level in placed]
        for event in row.events:
            self._add_event(event, bar_y, vm)
        self.y = bar_y + (BAR + LABEL if row.events else 2)

    def _add_event(self, event: Event, y: float, vm: str) -> None:
        ended = self._now if event.ended is None else event.ended
        started = ended if event.started is None else event.started
        x = self._axis.x
        if started > event.appeared:
            self.bars.append(Bar("scheduled", event, x(event.appeared), x(started), y))
        if event.started is not None:
            self.bars.append(Bar("started", event, x(event.started), x(ended), y))
        for begins, ends, vms in self._interruptions.get(event.name, ()):
            if vm in vms:
                self.bars.append(Bar("interrupted", event, x(begins), x(ends), y))
        if event.not_before is not None:
            self.deadlines.append(Deadline(event, x(event.not_before), y, event.not_before > self._axis.ends))
        text = label_of(event)
        self.labels.append(Label(text, min(x(event.appeared), RIGHT - len(text) * CHARACTER), y + BAR + LABEL - 4))


def label_of(event: Event) -> str:
    """Return the text at the bar of ``event``."""
    return shortened(f"{event.name} \u00b7 {event.type}", MAX_LABEL)


def _is_mark_of(fact: Fact, vm: str, row_of: dict[str, _Row]) -> bool:
    if fact.kind in _BARS:
        return False
    # a change, or an approval that no VM sent, belongs to all VMs of the event
    return fact.vm == vm or (fact.event in row_of and (not fact.vm or _is_of_the_platform(fact)))


def _is_of_the_platform(fact: Fact) -> bool:
    return fact.kind == APPROVED and fact.vm in ("control-plane", "arm")


def _interruptions(facts: Iterable[Fact], now: float) -> dict[str, list[tuple[float, float, tuple[str, ...]]]]:
    """Return name of an event -> begin, end and VMs of its interruptions."""
    found: dict[str, list[tuple[float, float, tuple[str, ...]]]] = {}
    for fact in facts:
        of_event = found.setdefault(fact.event, [])
        if fact.kind == INTERRUPTED:
            of_event.append((fact.moment, now, fact.vms))
        elif fact.kind == RESUMED:
            number = next((each for each, (_begins, ends, _vms) in enumerate(of_event) if ends == now), None)
            if number is not None:
                begins, _ends, vms = of_event[number]
                of_event[number] = (begins, fact.moment, vms)
    return found
