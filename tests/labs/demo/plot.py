# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Draws the time lines of all runs as one self-contained SVG with a background for light and for dark pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from statistics import median

from demo.load import Answer
from demo.result import Phases, Result

WIDTH, LEFT, RIGHT = 960, 64, 16
HEAD, PANEL, STRIP, GAP, FOOT = 44, 136, 10, 46, 34
# of the names of an event, above the lines
NAMES = 28
# seconds; the axis of latencies is logarithmic
LOWEST, HIGHEST = 0.002, 100.0
MARKS = ((0.01, "10 ms"), (0.1, "100 ms"), (1.0, "1 s"), (10.0, "10 s"))
BIN = 0.5
STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 14px }
.small { font-size: 11px; fill: #59636e }
.page { fill: #ffffff }
.frame { fill: none; stroke: #d1d9e0 }
.grid { stroke: #d1d9e0; stroke-width: .5 }
.announced { fill: #0969da; fill-opacity: .13 }
.interrupted { fill: #bf8700; fill-opacity: .32 }
.approved { stroke: #0969da; stroke-width: 1.5; stroke-dasharray: 3 2 }
.slowest { fill: none; stroke: #59636e; stroke-width: 1 }
.median { fill: none; stroke: #0969da; stroke-width: 1.5 }
.failed { fill: #d1242f }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.small { fill: #9198a1 }
.page { fill: #0d1117 }
.frame, .grid { stroke: #3d444d }
.announced { fill: #4493f8; fill-opacity: .2 }
.interrupted { fill: #d29922; fill-opacity: .4 }
.approved, .median { stroke: #4493f8 }
.slowest { stroke: #9198a1 }
.failed { fill: #f85149 }
}"""
LEGEND = (
    ("announced", "event announced"),
    ("interrupted", "host frozen, off or booting"),
    ("approved", "approved"),
    ("slowest", "slowest request of each half second"),
    ("median", "median"),
    ("failed", "failed requests"),
)


def drawing(results: Sequence[Result]) -> str:
    end = max([answer.due for result in results for answer in result.answers] or [1.0])
    across = (WIDTH - LEFT - RIGHT) / end
    height = HEAD + len(results) * (PANEL + STRIP + GAP) + FOOT
    body = [_legend()]
    for number, result in enumerate(results):
        top = HEAD + number * (PANEL + STRIP + GAP) + 20
        body += [f'<g transform="translate({LEFT} {top})">', *_panel(result, across, end), "</g>"]
    body.append(text(WIDTH / 2, height - 10, "seconds since the begin of the load", "small", "middle"))
    return "\n".join(
        [
            "<!-- written by `make demo-zero-loss` -->",
            "<!-- SPDX-License-Identifier: GPL-3.0-or-later -->",
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
            f' width="{WIDTH}" height="{height}" role="img">',
            f"<title>{escape('; '.join(map(_summary, results)))}</title>",
            f"<style>\n{STYLE}\n</style>",
            f'<rect class="page" width="{WIDTH}" height="{height}" rx="6"/>',
            *body,
            "</svg>\n",
        ]
    )


def text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _summary(result: Result) -> str:
    return (
        f"{result.handling}: {len(result.failed)} of {len(result.answers)} requests failed, "
        f"slowest {_seconds(result.slowest)}, {len(result.lost)} acknowledged writes lost"
    )


def _panel(result: Result, across: float, end: float) -> list[str]:
    width = end * across
    lines = [text(0, -8, _summary(result), "title")]
    for phases in result.phases:
        lines += _shades(phases, across)
    for seconds, label in MARKS:
        lines.append(f'<path class="grid" d="M0 {_y(seconds):.1f}H{width:.1f}"/>')
        lines.append(text(-6, _y(seconds) + 4, label, "small", "end"))
    bins: dict[int, list[Answer]] = {}
    for answer in result.answers:
        bins.setdefault(max(0, math.floor(answer.due / BIN)), []).append(answer)
    latencies = {number: [answer.latency for answer in bins[number]] for number in sorted(bins)}
    lines.append(_line("slowest", {number: max(found) for number, found in latencies.items()}, across))
    lines.append(_line("median", {number: median(found) for number, found in latencies.items()}, across))
    for number, answers in sorted(bins.items()):
        if count := sum(bool(answer.failure) for answer in answers):
            tall = min(1.0, 0.4 + count / 20) * STRIP
            lines.append(
                f'<rect class="failed" x="{number * BIN * across:.1f}" y="{PANEL + STRIP - tall:.1f}" '
                f'width="{BIN * across:.1f}" height="{tall:.1f}"/>'
            )
    lines.append(f'<rect class="frame" width="{width:.1f}" height="{PANEL + STRIP}"/>')
    lines += [
        text(seconds * across, PANEL + STRIP + 14, str(seconds), "small", "middle")
        for seconds in range(0, int(end) + 1, 20)
    ]
    return lines


def _shades(phases: Phases, across: float) -> list[str]:
    def shade(kind: str, begin: float, end: float) -> str:
        width = max(0.0, end - begin) * across
        return f'<rect class="{kind}" x="{begin * across:.1f}" width="{width:.1f}" height="{PANEL + STRIP}"/>'

    lines = [
        shade("announced", phases.announced, phases.started),
        shade("interrupted", phases.started, phases.over),
        text(phases.announced * across + 3, 12, phases.kind, "small"),
        text(phases.announced * across + 3, 25, phases.host, "small"),
    ]
    if phases.approved is not None:
        lines.append(f'<path class="approved" d="M{phases.approved * across:.1f} {NAMES}V{PANEL + STRIP}"/>')
    return lines


def _line(kind: str, seconds_of: dict[int, float], across: float) -> str:
    points = [f"{number * BIN * across:.1f} {_y(seconds):.1f}" for number, seconds in seconds_of.items()]
    return f'<path class="{kind}" d="M{"L".join(points)}"/>'


def _y(seconds: float) -> float:
    share = math.log(min(max(seconds, LOWEST), HIGHEST) / LOWEST) / math.log(HIGHEST / LOWEST)
    return PANEL * (1 - share)


def _legend() -> str:
    lines, x = [], float(LEFT)
    for kind, label in LEGEND:
        if kind in ("announced", "interrupted", "failed"):
            lines.append(f'<rect class="{kind}" x="{x:.0f}" y="14" width="18" height="12"/>')
        else:
            lines.append(f'<path class="{kind}" d="M{x:.0f} 20h18"/>')
        lines.append(text(x + 24, 24, label, "small"))
        x += 24 + 6.0 * len(label) + 18
    return "\n".join(lines)


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
