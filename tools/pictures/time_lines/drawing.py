# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Draw the time line of a maintenance from each recorded run: one lane per actor, and time runs down.

The pictures are narrow, so that their text stays legible on a phone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tools.pictures.svg import document, text
from tools.pictures.time_lines.recording import ANNOUNCED, FOLDER, OVER, STARTED, Lane, Recording, read

NAMES = ("host", "playbook", "salt")
LEFT, RIGHT, NARROWEST, LEAST = 42, 10, 138, 420
HEAD, LENGTH, BREAK, FOOT = 112, 470, 52, 46
# of a line of text
LINE = 18
# from the line of a lane to its labels
LABEL = 18
# shorter work has a bar and no label
LABELLED = 0.5
LIGHT = """\
text { font-size: 14px }
.title { font-size: 16px }
.small { font-size: 12px }
.actor { font-weight: 600 }
.lane, .leader { stroke: #59636e; fill: none }
.leader { stroke-width: .75 }
.lane.later { stroke-dasharray: 2 4 }
.work { fill: #83c092; stroke: #ffffff }
.mark { fill: #ffffff; stroke: #1f2328; stroke-width: 1.5 }
.mark.done { fill: #1a7f37 }
.mark.approval { fill: #0969da }
.mark.azure { fill: #bf8700 }
.deadline { stroke: #d1242f; stroke-width: 1.5; stroke-dasharray: 6 3 }"""
DARK = """\
.lane, .leader { stroke: #9198a1 }
.work { fill: #246b33; stroke: #0d1117 }
.mark { fill: #0d1117; stroke: #f0f6fc }
.mark.done { fill: #3fb950 }
.mark.approval { fill: #4493f8 }
.mark.azure { fill: #d29922 }
.deadline { stroke: #f85149 }"""
# a wide picture on a phone: larger text without the times, which the axis has
WIDE = 500
PHONE = """
@media (max-width: 480px) {
text { font-size: 18px }
.title { font-size: 20px }
.small { font-size: 15px }
.time { display: none }
}"""
CLASSES = {
    "prepared": "mark done",
    "recovered": "mark done",
    "approved": "mark approval",
    ANNOUNCED: "mark azure",
    STARTED: "mark azure",
    OVER: "mark azure",
}
LEGEND = (("announced", "announced"), ("interrupted", "started"), ("work", "hooks, tasks or jobs"))


class Scale(NamedTuple):
    """The conversion of seconds to the height in the picture, and the width of a lane."""

    seconds: float
    lane: float

    def y(self, seconds: float) -> float:
        """Return the height of a moment."""
        return HEAD + seconds / self.seconds * LENGTH


class Label(NamedTuple):
    """A text beside a lane; ``time`` is empty for work."""

    at: float
    y: float
    words: str
    time: str


def pictures() -> dict[str, str]:
    """Return name of the file -> SVG."""
    return {f"time-line-{name}.svg": drawing(read(FOLDER / f"{name}.json")) for name in NAMES}


def drawing(recording: Recording) -> str:
    """Return the SVG of a recording."""
    scale = Scale(recording.end, max(NARROWEST, (LEAST - LEFT - RIGHT) / len(recording.lanes)))
    width = LEFT + len(recording.lanes) * scale.lane + RIGHT
    labels = [list(placed(lane, scale, 9 if lane is recording.lanes[0] else 0)) for lane in recording.lanes]
    bottom = max(HEAD + LENGTH, *(label.y for lane in labels for label in lane)) + 12
    deadline = bottom + BREAK
    body = [
        text(12, 26, recording.title, "title"),
        text(12, 46, ", ".join(f"{name} {number}" for name, number in recording.versions.items()), "small"),
        *legend(),
        *phases(recording, scale, width),
        *axis(scale, width),
    ]
    for number, (lane, placed_labels) in enumerate(zip(recording.lanes, labels, strict=True)):
        x = LEFT + number * scale.lane + 14
        body += [
            text(x - 8, HEAD - 12, lane.name, "actor"),
            *drawn_lane(lane, placed_labels, scale, x, bottom, deadline),
        ]
    body += [
        f'<path class="deadline" d="M{LEFT} {deadline:.1f}H{width - RIGHT:.1f}"/>',
        text(LEFT, deadline + 18, f"NotBefore, at {recording.not_before:g} s:", "small"),
        text(LEFT, deadline + 34, "without an approval Azure starts the event then", "small"),
    ]
    return document(
        "make pictures",
        (width, deadline + FOOT),
        recording.title,
        body,
        light=LIGHT + (PHONE if width > WIDE else ""),
        dark=DARK,
        description=description(recording),
        natural=True,
    )


def description(recording: Recording) -> str:
    """Return the steps in words."""
    lanes = "; ".join(
        f"{lane.name}: {', '.join(f'{step.step} at {step.at:.1f} s' for step in lane.steps)}"
        for lane in recording.lanes
    )
    return f"{lanes}. NotBefore is at {recording.not_before:g} s."


def table(recording: Recording) -> str:
    """Return the steps as a table of Markdown, one column for each lane."""
    steps = sorted(
        {step.step: None for lane in recording.lanes for step in lane.steps}, key=lambda step: first(recording, step)
    )
    rows = [["step", *(lane.name for lane in recording.lanes)], ["---"] * (len(recording.lanes) + 1)]
    for step in steps:
        cells = [
            {each.step: f"{each.at:.1f} s" for each in reversed(lane.steps)}.get(step, "") for lane in recording.lanes
        ]
        rows.append([step, *cells])
    return "".join(f"| {' | '.join(row)} |\n".replace("|  |", "| |").replace("|  |", "| |") for row in rows)


def first(recording: Recording, step: str) -> float:
    """Return the seconds of a step in the lane that has it first."""
    return min(each.at for lane in recording.lanes for each in lane.steps if each.step == step)


def placed(lane: Lane, scale: Scale, lower: float) -> Iterator[Label]:
    """Yield the labels from above, lower than their moment by so much; labels that are too near move down."""
    wanted = [(step.at, step.step, f" {step.at:.1f}") for step in lane.steps]
    wanted += [
        ((work.begin + work.end) / 2, work.name.removeprefix("azure_events."), "")
        for work in lane.work
        if work.end - work.begin >= LABELLED
    ]
    lowest = 0.0
    for at, words, time in sorted(wanted, key=lambda label: label[0]):
        y = max(scale.y(at) + lower, lowest)
        lowest = y + LINE
        yield Label(at, y, words, time)


def drawn_lane(
    lane: Lane, labels: Sequence[Label], scale: Scale, x: float, bottom: float, deadline: float
) -> Iterator[str]:
    """Yield the elements of a lane at x."""
    yield f'<path class="lane" d="M{x:.1f} {HEAD}V{bottom:.1f}"/>'
    yield f'<path class="lane later" d="M{x:.1f} {bottom:.1f}V{deadline:.1f}"/>'
    for work in lane.work:
        top, below = scale.y(work.begin), scale.y(work.end)
        yield f'<rect class="work" x="{x - 5:.1f}" y="{top:.1f}" width="10" height="{below - top:.1f}"/>'
    for label in labels:
        if abs(label.y - scale.y(label.at)) < LINE / 2:
            yield f'<path class="leader" d="M{x:.1f} {scale.y(label.at):.1f}h{LABEL - 4}"/>'
        else:
            yield f'<path class="leader" d="M{x:.1f} {scale.y(label.at):.1f}L{x + LABEL - 4:.1f} {label.y:.1f}"/>'
        yield text(x + LABEL, label.y + 5, label.words, "step" if label.time else "small", more=label.time)
    for step in lane.steps:
        yield f'<circle class="{CLASSES.get(step.step, "mark")}" cx="{x:.1f}" cy="{scale.y(step.at):.1f}" r="5"/>'


def phases(recording: Recording, scale: Scale, width: float) -> Iterator[str]:
    """Yield the areas of the time while the event is announced and while it is started."""
    azure = recording.lanes[0]
    for kind, begin, end in (("announced", ANNOUNCED, STARTED), ("interrupted", STARTED, OVER)):
        top, below = scale.y(azure.at(begin)), scale.y(azure.at(end))
        yield (
            f'<rect class="{kind}" x="{LEFT}" y="{top:.1f}" width="{width - LEFT - RIGHT:.1f}" '
            f'height="{below - top:.1f}"/>'
        )


def axis(scale: Scale, width: float) -> Iterator[str]:
    """Yield a line and a label for each five seconds."""
    for seconds in range(0, int(scale.seconds) + 1, 5):
        y = scale.y(seconds)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{width - RIGHT:.1f}"/>'
        yield text(LEFT - 6, y + 4, f"{seconds} s", "small", "end")


def legend() -> Iterator[str]:
    """Yield the meaning of the colours of areas and bars."""
    x = 12.0
    for kind, words in LEGEND:
        yield f'<rect class="{kind}" x="{x:.0f}" y="60" width="16" height="12"/>'
        yield text(x + 22, 71, words, "small")
        x += 22 + 8.4 * len(words) + 14
