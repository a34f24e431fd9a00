# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Draws panels of a Grafana dashboard, of the types stat, timeseries and table, as SVG."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tools.pictures.dashboard.plot_area import Area, Values, bars, frame, line
from tools.pictures.svg import text

# colours of the series, in order
COLOURS = 12
LINE, LEGEND_LINE, CHARACTER = 18, 15, 6.2
LABEL = re.compile(r"\{\{(\w+)\}\}")
# of Grafana's names of units
UNITS = {"short": "", "s": " s", "reqps": " req/s"}


class Panel(NamedTuple):
    """A panel and its place in pixels.

    Attributes:
        definition: the JSON of the dashboard.
        series: (labels, a value or None for each step), as recorded.
        left, top, width, height: the place.
        seconds: the recorded time.
    """

    definition: dict[str, Any]
    series: Sequence[tuple[dict[str, str], Values]]
    left: float
    top: float
    width: float
    height: float
    seconds: float

    @property
    def unit(self) -> str:
        """The text after a value."""
        return UNITS[self.definition["fieldConfig"]["defaults"].get("unit", "short")]

    def names(self) -> list[str]:
        """Return the legend's text of each series."""
        pattern = self.definition["targets"][0]["legendFormat"]
        return [_filled(pattern, labels) for labels, _values in self.series]


def _filled(pattern: str, labels: dict[str, str]) -> str:
    return LABEL.sub(lambda found: labels.get(found[1], ""), pattern)


def panel(given: Panel) -> list[str]:
    """Return the elements of a panel."""
    draw = {"stat": _stat, "timeseries": _timeseries, "table": _table}[given.definition["type"]]
    box = f'width="{given.width:.0f}" height="{given.height:.0f}" rx="3"'
    return [f'<g transform="translate({given.left:.0f} {given.top:.0f})">', *draw(given, box), "</g>"]


def _stat(given: Panel, box: str) -> list[str]:
    value = next((found for _labels, values in given.series for found in values[::-1] if found is not None), 0.0)
    steps = given.definition["fieldConfig"]["defaults"]["thresholds"]["steps"]
    colour = [step["color"] for step in steps if step["value"] is None or value >= step["value"]][-1]
    return [
        f'<rect class="{colour}" {box}/>',
        *[text(8, LINE + number * 14, words, "on") for number, words in enumerate(_halves(given.definition["title"]))],
        text(given.width / 2, given.height / 2 + 24, f"{value:.0f}{given.unit}", "on value", "middle"),
    ]


def _timeseries(given: Panel, box: str) -> list[str]:
    names = given.names()
    legend = _legend(names, given.width)
    custom = given.definition["fieldConfig"]["defaults"]["custom"]
    all_values = [values for _labels, values in given.series]
    lowest: list[Values] = [[0.0] * len(values) for values in all_values]
    if custom.get("stacking", {}).get("mode") == "normal":
        all_values, lowest = _stacked(all_values)
    bottom = given.height - 26 - LEGEND_LINE * legend[-1][1] - LEGEND_LINE
    area = Area(46, 32, given.width - 10, bottom, max(map(len, all_values), default=2), all_values)
    lines = [f'<rect class="panel" {box}/>', text(8, LINE, given.definition["title"], "title")]
    lines += frame(area, given.unit, given.seconds)
    if not given.series:
        lines.append(text(given.width / 2, (area.top + area.bottom) / 2, "no data", "small", "middle"))
    # a series that was stacked last is behind the others
    for number, values in reversed([*enumerate(all_values)]):
        draw = bars if custom["drawStyle"] == "bars" else line
        lines += draw(area, values, lowest[number], f"s{number % COLOURS}")
    for (name, row, x), number in zip(legend, range(len(names))):
        y = given.height - 10 - LEGEND_LINE * (legend[-1][1] - row)
        lines.append(f'<rect class="k{number % COLOURS}" x="{x:.0f}" y="{y - 6:.0f}" width="12" height="4"/>')
        lines.append(text(x + 16, y, name, "small"))
    return lines


def _table(given: Panel, box: str) -> list[str]:
    options = next(each["options"] for each in given.definition["transformations"] if each["id"] == "organize")
    hidden, renamed = options["excludeByName"], options["renameByName"]
    columns = [name for name in given.series[0][0] if not hidden.get(name)] + ["Value"]
    lines = [f'<rect class="panel" {box}/>', text(8, LINE, given.definition["title"], "title")]
    rows = [[renamed.get(name, name) for name in columns]]
    for labels, values in given.series:
        rows.append([*(labels[name] for name in columns[:-1]), f"{values[-1]:.0f}"])
    for number, row in enumerate(rows):
        y = 44 + number * 24
        lines.append(f'<path class="grid" d="M8 {y + 8}H{given.width - 8:.0f}"/>')
        for column, cell in enumerate(row):
            lines.append(text(8 + column * given.width / len(row), y, cell, "title" if number == 0 else ""))
    return lines


def _halves(title: str) -> list[str]:
    """Return a title on two lines if it is too long for one."""
    words = title.split()
    return [title] if len(title) < 16 else [" ".join(words[:2]), " ".join(words[2:])]


def _stacked(all_values: Sequence[Values]) -> tuple[list[Values], list[Values]]:
    """Return the upper and the lower ends of the series, each on those before it."""
    upper: list[Values] = []
    lower: list[Values] = []
    base = [0.0] * max(map(len, all_values), default=0)
    for values in all_values:
        lower.append([*base])
        base = [below + (value or 0.0) for below, value in zip(base, values)]
        upper.append([below if value is not None else None for below, value in zip(base, values)])
    return upper, lower


def _legend(names: Sequence[str], width: float) -> list[tuple[str, int, float]]:
    """Return (name, number of the row, x) of each name."""
    found: list[tuple[str, int, float]] = []
    row, x = 0, 10.0
    for name in names:
        wide = 16 + CHARACTER * len(name) + 14
        if x > 10 and x + wide > width:
            row, x = row + 1, 10.0
        found.append((name, row, x))
        x += wide
    return found or [("", 0, 0.0)]
