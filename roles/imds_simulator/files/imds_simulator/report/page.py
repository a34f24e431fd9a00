# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The whole report as one HTML file without external assets."""

from __future__ import annotations

from .facts import APPROVED, ERRORS, PREPARED, RECOVERED, SEEN, Fact, facts_of
from .layout import layout, zero_of
from .picture import picture
from .run import Run
from .selection import select
from .shapes import SHAPES, mark
from .style import STYLE
from .tables import Times, answers_table, events_table, faults_table, steps_table
from .wording import counted, escaped, utc

_BARS = (
    ("scheduled", "the event is announced"),
    ("started", "the event is started"),
    ("interrupted", "the VM is interrupted"),
)


def report(run: Run) -> str:
    """Return ``run`` as an HTML document."""
    facts = facts_of(run)
    selection = select(run, facts)
    zero = zero_of(run, selection)
    title = run.title or "A run of the simulator"
    parts = [f"<h1>{escaped(title)}</h1>", *(f"<p>{escaped(each)}</p>" for each in _summary(run, zero))]
    parts += [f'<p class="left-out">{escaped("Left out: " + each)}</p>' for each in selection.left_out]
    drawn = layout(run, selection)
    if zero is None or drawn is None:
        parts.append("<p>Nothing happened: there was no event, no fault and no note.</p>")
    else:
        times = Times(zero, run.speed)
        parts += ["<h2>Time line</h2>", _legend(run, facts)]
        svg = picture(drawn, f"Time line: {title}", _description(run, facts), run.speed)
        parts.append(f'<div class="scroll" role="region" tabindex="0" aria-label="Time line">\n{svg}\n</div>')
        if selection.events:
            parts += ["<h2>Events</h2>", events_table(run, selection, facts, times)]
        parts += ["<h2>Steps</h2>", steps_table(selection, times)]
        if run.faults:
            parts += ["<h2>Faults</h2>", faults_table(run, times)]
    if run.counts:
        parts += ["<h2>Answers by status</h2>", answers_table(run, selection)]
    return _document(title, parts)


def _document(title: str, parts: list[str]) -> str:
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n"
        f"<title>{escaped(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        "</body>\n</html>\n"
    )


def _summary(run: Run, zero: float | None) -> list[str]:
    lines = [f"{counted(len(run.groups), 'VM')}, {counted(len(run.events), 'event')}."]
    if zero is not None:
        of = "first event" if run.events else "first step"
        lines.append(
            f"Times count from the {of}, {utc(zero, day=True)} UTC. All times are those of the simulator's clock."
        )
    if run.speed != 1:
        lines.append(f"One second of this clock is {run.speed:g} simulated seconds.")
    lines.append(f"The report was made at {utc(run.now, day=True)} UTC.")
    return lines


def _description(run: Run, facts: list[Fact]) -> str:
    """Return the picture in words, for screen readers; the tables have the same facts."""
    kinds = [fact.kind for fact in facts]
    events, faults = counted(len(run.events), "event"), counted(len(run.faults), "fault")
    return (
        f"One lane for each VM, with {events} as bars, {faults} as hatched areas, and marks: "
        f"{kinds.count(SEEN)} first views, {kinds.count(PREPARED)} prepared, {kinds.count(APPROVED)} approvals, "
        f"{kinds.count(RECOVERED)} recovered, {kinds.count(ERRORS)} groups of errors. "
        "The tables below have the same facts."
    )


def _legend(run: Run, facts: list[Fact]) -> str:
    """Return the legend of the bars, and of the marks that occur."""
    kinds = {fact.kind for fact in facts}
    items = [(f'<rect class="bar {kind}" x="1" y="3" width="18" height="12"/>', text) for kind, text in _BARS]
    items.append(('<path class="deadline" d="M9 1h2v16h-2z"/>', "NotBefore (an arrow at the right: after the picture)"))
    if run.faults:
        items.append(('<rect class="fault" x="1" y="2" width="18" height="14"/>', "a fault is in force"))
    items += [(mark(kind, 10, 9), shape.legend) for kind, shape in SHAPES.items() if kind in kinds]
    return (
        '<ul class="legend">'
        + "".join(f'<li><svg viewBox="0 0 22 18" aria-hidden="true">{drawn}</svg>{text}</li>' for drawn, text in items)
        + "</ul>"
    )
