# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The time line as SVG."""

from __future__ import annotations

from .layout import BAR, GAP, LEFT, RIGHT, TOP, WIDTH, Bar, Deadline, Layout
from .shapes import mark
from .wording import duration, escaped, offset, shortened, utc

_MAX_NAME = 22
_BAR_TEXT = {
    "scheduled": "announced, not started",
    "started": "started",
    "interrupted": "interrupted",
}


def picture(drawn: Layout, title: str, description: str, speed: float) -> str:
    """Return ``drawn`` as an SVG element.

    ``title`` and ``description`` are for screen readers; ``speed`` is in simulated seconds per second.
    """
    parts = [
        f'<svg class="timeline" role="img" aria-labelledby="timeline-title timeline-description" '
        f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {drawn.height:g}">',
        f'<title id="timeline-title">{escaped(title)}</title>',
        f'<desc id="timeline-description">{escaped(description)}</desc>',
        '<defs><pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect class="hatched" width="2.5" height="6"/></pattern></defs>',
        *_axis(drawn, speed),
        *_lanes(drawn),
        *_bands(drawn),
        *(_bar(each) for each in drawn.bars),
        *(_deadline(each) for each in drawn.deadlines),
        *(
            f'<text class="event-label" x="{each.x:g}" y="{each.y:g}">{escaped(each.text)}</text>'
            for each in drawn.labels
        ),
        *(
            mark(
                each.fact.kind,
                each.x,
                each.y,
                _title(
                    f"{each.fact.vm + ': ' if each.fact.vm else ''}{each.fact.text}"
                    f"{', event ' + each.fact.event if each.fact.event else ''}, "
                    f"{offset(each.fact.moment - drawn.zero)}, {utc(each.fact.moment)} UTC"
                ),
            )
            for each in drawn.marks
        ),
        "</svg>",
    ]
    return "\n".join(parts)


def _title(text: str) -> str:
    return f"<title>{escaped(text)}</title>"


def _axis(drawn: Layout, speed: float) -> list[str]:
    parts = []
    for moment in drawn.axis.ticks(drawn.zero):
        x, since = drawn.axis.x(moment), moment - drawn.zero
        parts.append(f'<line class="grid" x1="{x:g}" x2="{x:g}" y1="{TOP - 6:g}" y2="{drawn.height:g}"/>')
        parts.append(f'<text class="tick" x="{x:g}" y="{TOP - 24:g}">{_tick(since)}</text>')
        if speed != 1:
            parts.append(f'<text class="tick simulated" x="{x:g}" y="{TOP - 10:g}">{_tick(since * speed)}</text>')
    if speed != 1:
        parts.append(f'<text class="axis-name" x="{GAP:g}" y="{TOP - 24:g}">time since the first event</text>')
        parts.append(f'<text class="axis-name simulated" x="{GAP:g}" y="{TOP - 10:g}">simulated time</text>')
    return parts


def _tick(seconds: float) -> str:
    """Return the label of a tick, without digits that are always zero."""
    text = duration(round(seconds, 3))
    if "." in text:
        text = text[:-2].rstrip("0").rstrip(".") + " s"
    for zeros in (" 00 s", " 00 min"):
        text = text[: -len(zeros)] if text.endswith(zeros) else text
    return escaped(text)


def _lanes(drawn: Layout) -> list[str]:
    parts = []
    for group in drawn.groups:
        parts.append(
            f'<text class="group" x="{group.x:g}" y="{group.y:g}">{_title(group.text)}'
            f"{escaped(shortened(group.text, 60))}</text>"
        )
    for number, lane in enumerate(drawn.lanes):
        parts.append(
            f'<rect class="lane{" odd" if number % 2 else ""}" x="0" y="{lane.y:g}" width="{WIDTH:g}" '
            f'height="{lane.height:g}"/>'
        )
        parts.append(f'<line class="base" x1="{LEFT:g}" x2="{RIGHT:g}" y1="{lane.y:g}" y2="{lane.y:g}"/>')
        parts.append(
            f'<text class="vm" x="{2 * GAP:g}" y="{lane.y + lane.height / 2 + 4:g}">{_title(lane.vm)}'
            f"{escaped(shortened(lane.vm, _MAX_NAME))}</text>"
        )
    return parts


def _bands(drawn: Layout) -> list[str]:
    return [
        f'<rect class="fault" x="{each.x:g}" y="{each.y:g}" width="{max(each.end - each.x, 2):g}" '
        f'height="{each.height:g}">'
        + _title(
            f"fault {each.fault.kind}, from {offset(each.fault.begins - drawn.zero)} "
            f"to {offset(each.fault.ends - drawn.zero)}"
        )
        + "</rect>"
        for each in drawn.bands
    ]


def _bar(drawn: Bar) -> str:
    top, height = (drawn.y + BAR - 7, 7.0) if drawn.kind == "interrupted" else (drawn.y, BAR)
    return (
        f'<rect class="bar {drawn.kind}" x="{drawn.x:g}" y="{top:g}" width="{max(drawn.end - drawn.x, 2):g}" '
        f'height="{height:g}">{_title(f"{drawn.event.name}: {_BAR_TEXT[drawn.kind]}")}</rect>'
    )


def _deadline(deadline: Deadline) -> str:
    event = deadline.event
    title = _title(f"NotBefore of {event.name}: {utc(event.not_before or 0.0)} UTC")
    y = deadline.y
    if deadline.is_later:
        x = RIGHT
        return f'<path class="deadline later" d="M{x:g} {y + 2:g}l8 6l-8 6z">{title}</path>'
    x = deadline.x
    return f'<path class="deadline" d="M{x - 1:g} {y - 5:g}h2v{BAR + 8:g}h-2z">{title}</path>'
