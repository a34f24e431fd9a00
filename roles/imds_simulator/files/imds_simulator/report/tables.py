# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The tables below the picture: events, steps, faults and answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .facts import APPROVED, INTERRUPTED, SEEN, Fact
from .run import Event, Run
from .selection import MAX_FAULTS, Selection
from .wording import counted, duration, escaped, listed, offset, shortened, utc

_MAX_CELL = 120
_MAX_NAMES = 6


class Times:
    """Cells with moments: in UTC, relative to ``zero``, and simulated where ``speed`` is not 1."""

    def __init__(self, zero: float, speed: float) -> None:
        self._zero = zero
        self._speed = speed

    @property
    def headings(self) -> list[str]:
        """The headings of ``cells``."""
        return ["UTC", "since the first event", *(["simulated"] if self._speed != 1 else [])]

    def cells(self, moment: float) -> list[str]:
        """Return the texts of a moment, one for each heading."""
        since = moment - self._zero
        return [utc(moment), offset(since), *([offset(since * self._speed)] if self._speed != 1 else [])]

    def text(self, moment: float | None, *, missing: str = "-") -> str:
        """Return a moment relative to the first event, and simulated."""
        if moment is None:
            return missing
        real, *simulated = self.cells(moment)[1:]
        return f"{real} ({simulated[0]} simulated)" if simulated else real


def table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[object]], times: int = 0) -> str:
    """Return a table; the first ``times`` columns do not wrap."""
    body = "\n".join(
        "<tr>"
        + "".join(
            f'<td class="{"time" if column < times else "name"}">{escaped(shortened(str(cell), _MAX_CELL))}</td>'
            for column, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    head = "".join(f'<th scope="col">{escaped(each)}</th>' for each in headings)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escaped(caption)}"><table>'
        f"<caption>{escaped(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def steps_table(selection: Selection, times: Times) -> str:
    """Return the table of all shown facts."""
    rows = [[*times.cells(fact.moment), fact.vm, fact.event, fact.text] for fact in selection.facts]
    return table("Steps", [*times.headings, "VM", "event", "step"], rows, len(times.headings))


def events_table(run: Run, selection: Selection, facts: Sequence[Fact], times: Times) -> str:
    """Return the table of all shown events; it counts the VMs of all ``facts``."""
    of_event: dict[str, list[Fact]] = {}
    for fact in facts:
        of_event.setdefault(fact.event, []).append(fact)
    headings = ["event", "type", "VMs", "announced", "NotBefore", "first received", "approved", "started", "end"]
    rows = [_event_row(event, of_event.get(event.name, []), times) for event in selection.events]
    return table("Events", headings, rows)


def _event_row(event: Event, facts: Sequence[Fact], times: Times) -> list[str]:
    approved = [fact for fact in facts if fact.kind == APPROVED]
    by = listed([fact.vm for fact in approved], _MAX_NAMES)
    interruptions = sum(1 for fact in facts if fact.kind == INTERRUPTED)
    end = "still in the document" if event.ended is None else times.text(event.ended)
    return [
        shortened(event.name, 60),
        f"{event.type} ({event.source})",
        listed([shortened(vm, 40) for vm in event.vms], _MAX_NAMES),
        f"{utc(event.appeared)} UTC",
        "-" if event.not_before is None else f"{utc(event.not_before)} UTC, {times.text(event.not_before)}",
        _views([fact for fact in facts if fact.kind == SEEN], times),
        f"by {by}, {times.text(approved[0].moment)}" if approved else "no",
        times.text(event.started, missing="no")
        + (f", {counted(interruptions, 'interruption')}" if interruptions else ""),
        f"{end}{' (cancelled)' if event.cancelled else ''}",
    ]


def _views(seen: Sequence[Fact], times: Times) -> str:
    if not seen:
        return "by no VM"
    if len(seen) == 1:
        return f"by {shortened(seen[0].vm, 40)}, {times.text(seen[0].moment)}"
    return f"by {len(seen)} VMs, {times.text(seen[0].moment)} to {times.text(seen[-1].moment)}"


def faults_table(run: Run, times: Times) -> str:
    """Return the table of the faults that were in force."""
    rows = [
        [
            *times.cells(fault.begins),
            "in force at the end" if fault.ends >= run.now else times.text(fault.ends),
            duration(fault.ends - fault.begins),
            fault.kind,
            listed(fault.vms, _MAX_NAMES) or "all VMs",
        ]
        for fault in run.faults[:MAX_FAULTS]
    ]
    return table("Faults", [*times.headings, "until", "for", "kind", "VMs"], rows, len(times.headings))


def answers_table(run: Run, selection: Selection) -> str:
    """Return the numbers of answers since the simulator started, by VM and status."""
    shown = set(selection.vms)
    statuses = sorted({status for _vm, status in run.counts})
    total = {status: sum(count for (_vm, each), count in run.counts.items() if each == status) for status in statuses}
    rows: list[Sequence[object]] = [
        [vm, *(run.counts.get((vm, status), 0) for status in statuses)]
        for vm in [*selection.vms, ""]
        if any((vm, status) in run.counts for status in statuses)
    ]
    rows = [[row[0] or "unknown clients", *row[1:]] for row in rows]
    if len(rows) > 1 or any(vm not in shown for vm, _status in run.counts):
        rows.append(["all VMs", *(total[status] for status in statuses)])
    return table("Answers", ["VM", *(str(each) if each else "no answer" for each in statuses)], rows)
