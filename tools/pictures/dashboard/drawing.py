# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Draw the dashboard of docs/monitoring from recorded answers of a real Prometheus to its queries."""

from __future__ import annotations

import json
from typing import Any

from tools.pictures import svg
from tools.pictures.dashboard.panels import Panel, panel
from tools.pictures.dashboard.recording import DASHBOARD, RECORDED

# pixels of a unit of Grafana's grid, and between two panels
COLUMN, ROW, GAP = 30, 27, 6
COLUMNS, HEAD = 24, 36
# colours of Grafana's thresholds and of the series, on a light and on a dark page
THRESHOLDS = {
    "green": ("#1a7f37", "#238636"),
    "blue": ("#0969da", "#1f6feb"),
    "orange": ("#bc4c00", "#9e6a03"),
    "red": ("#cf222e", "#da3633"),
}
SERIES = (
    ("#0969da", "#4493f8"),
    ("#1a7f37", "#3fb950"),
    ("#bc4c00", "#f0883e"),
    ("#8250df", "#ab7df8"),
    ("#cf222e", "#f85149"),
    ("#9a6700", "#d29922"),
    ("#1b7c83", "#39c5cf"),
    ("#bf3989", "#db61a2"),
    ("#59636e", "#9198a1"),
    ("#4d2d00", "#f8e3a1"),
    ("#116329", "#aff5b4"),
    ("#82071e", "#ffc1ba"),
)
LIGHT = """\
.panel { fill: #f6f8fa; stroke: #d1d9e0 }
.on { fill: #ffffff; font-size: 11.5px }
.value { font-size: 26px; font-weight: 600 }
.title { font-size: 12.5px }
.line { fill: none !important; stroke-width: 1.5 }
.fill { fill-opacity: .12; stroke: none !important }
.bar { fill-opacity: .75; stroke: none !important }"""
DARK = """\
.panel { fill: #151b23; stroke: #3d444d }
.on { fill: #ffffff }"""


def pictures() -> dict[str, str]:
    """Return name of the file -> SVG."""
    recorded: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    dashboard: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return {"dashboard.svg": drawing(dashboard, recorded)}


def drawing(dashboard: dict[str, Any], recorded: dict[str, Any]) -> str:
    """Return the SVG of a dashboard and the recorded answers to its queries."""
    placed = [_placed(definition, recorded) for definition in dashboard["panels"]]
    width = COLUMNS * COLUMN + GAP
    height = max(each.top + each.height for each in placed) + GAP
    heading = f"{recorded['vms']} VMs, Prometheus {recorded['prometheus']}, {recorded['seconds'] // 60} minutes"
    body = [
        svg.text(GAP + 2, 23, dashboard["title"], "title"),
        svg.text(width - GAP - 2, 23, heading, "small", "end"),
        *[element for each in placed for element in panel(each)],
    ]
    return svg.document(
        "make pictures",
        (width, height),
        f"{dashboard['title']}: the dashboard with recorded metrics of {heading}",
        body,
        light="\n".join([LIGHT, *_colours(0)]),
        dark="\n".join([DARK, *_colours(1)]),
        description="Panels: " + "; ".join(definition["title"] for definition in dashboard["panels"]) + ".",
        natural=True,
    )


def _placed(definition: dict[str, Any], recorded: dict[str, Any]) -> Panel:
    found = recorded["panels"][str(definition["id"])]
    place = definition["gridPos"]
    return Panel(
        definition,
        [(series["labels"], series["values"]) for series in found],
        GAP + place["x"] * COLUMN,
        HEAD + place["y"] * ROW,
        place["w"] * COLUMN - GAP,
        place["h"] * ROW - GAP,
        recorded["seconds"],
    )


def _colours(theme: int) -> list[str]:
    thresholds = [f".{name} {{ fill: {colours[theme]} }}" for name, colours in THRESHOLDS.items()]
    series = [
        f".s{number}, .k{number} {{ fill: {colours[theme]}; stroke: {colours[theme]} }}"
        for number, colours in enumerate(SERIES)
    ]
    return thresholds + series
