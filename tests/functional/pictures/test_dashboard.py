# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The dashboard of docs/monitoring is valid, and its picture shows recorded answers to its queries."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest

from hook_runner.reporting.metrics import METRICS, PREFIX
from support.repository import REPOSITORY
from tools.pictures.dashboard.drawing import pictures
from tools.pictures.dashboard.recording import DASHBOARD, RECORDED, expression_of

pytestmark = pytest.mark.short
BOARD: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
RECORDING: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = BOARD["panels"]
PAGE = (REPOSITORY / "docs" / "monitoring.md").read_text(encoding="utf-8")
PICTURE = REPOSITORY / "docs" / "images" / "dashboard.svg"
SVG = "{http://www.w3.org/2000/svg}"
COLUMNS = 24
# the samples of a metric by the class of prometheus_client
SUFFIXES = {"Gauge": ("",), "Counter": ("_total",), "Histogram": ("_bucket", "_count", "_sum")}
# labels that Prometheus adds, and that of the buckets of a histogram
ADDED_LABELS = {"instance", "job", "le"}


def expressions(panel: dict[str, Any]) -> list[str]:
    return [str(target["expr"]) for target in panel["targets"]]


def test_committed_picture_is_that_of_the_recording() -> None:
    assert PICTURE.read_text(encoding="utf-8") == pictures()["dashboard.svg"], "make pictures PICTURES=dashboard"


def test_recording_has_the_answers_to_each_query() -> None:
    assert set(RECORDING["panels"]) == {str(panel["id"]) for panel in PANELS}
    for panel in PANELS:
        found = RECORDING["panels"][str(panel["id"])]
        assert found, panel["title"]
        assert {series["expr"] for series in found} == set(expressions(panel)), "make recordings RECORDINGS=dashboard"


def test_recording_has_a_value_for_each_step() -> None:
    steps = RECORDING["seconds"] // RECORDING["step"] + 1
    for panel in PANELS:
        for series in RECORDING["panels"][str(panel["id"])]:
            assert len(series["values"]) == (steps if panel["type"] == "timeseries" else 1)


def test_recorded_run_has_failures_of_each_kind() -> None:
    legends = {
        panel["title"]: {tuple(sorted(series["labels"].items())) for series in RECORDING["panels"][str(panel["id"])]}
        for panel in PANELS
    }
    assert (("result", "failed"), ("stage", "prepare")) in legends["Hook runs by result"]
    assert (("result", "status-400"),) in legends["Approvals by answer"]
    assert (("kind", "status-503"),) in legends["Polls without a good answer"]


def test_picture_shows_each_panel() -> None:
    root = ElementTree.fromstring(PICTURE.read_text(encoding="utf-8"))
    shown = " ".join(element.text or "" for element in root.iter(f"{SVG}text"))
    assert [panel["title"] for panel in PANELS if panel["title"] not in shown] == []
    assert not {element.tag for element in root.iter()} & {f"{SVG}{tag}" for tag in ("script", "image", "a", "use")}


def test_panels_have_the_members_that_grafana_requires() -> None:
    assert {"uid", "title", "schemaVersion", "panels", "templating", "annotations", "time"} <= set(BOARD)
    for panel in PANELS:
        assert {"id", "type", "title", "datasource", "gridPos", "targets", "fieldConfig", "options"} <= set(panel)
        assert panel["type"] in ("stat", "timeseries", "table")
        assert [target["refId"] for target in panel["targets"]] == ["A"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_panels_have_ids_and_titles_of_their_own() -> None:
    for member in ("id", "title"):
        found = [panel[member] for panel in PANELS]
        assert len(set(found)) == len(found)


def test_panels_are_in_the_grid_and_do_not_overlap() -> None:
    cells: list[tuple[int, int]] = []
    for panel in PANELS:
        place = panel["gridPos"]
        columns = range(place["x"], place["x"] + place["w"])
        assert columns and place["h"] > 0 and columns[-1] < COLUMNS
        cells += itertools.product(columns, range(place["y"], place["y"] + place["h"]))
    assert len(set(cells)) == len(cells)


def test_queries_name_metrics_of_the_daemon_and_their_labels() -> None:
    labels_of = {
        PREFIX + name + suffix: {*definition.labels, *ADDED_LABELS}
        for name, definition in METRICS.items()
        for suffix in SUFFIXES[definition.kind]
    }
    queries = [query for panel in PANELS for query in expressions(panel)]
    queries += [each["expr"] for each in BOARD["annotations"]["list"]]
    for query in queries:
        (metric,) = set(re.findall(rf"{PREFIX}\w+", query))
        used = re.findall(r"(\w+)(?:=~|!~|!=|=)\"", query)
        used += [name for group in re.findall(r"by \(([^)]+)\)", query) for name in group.split(", ")]
        assert set(used) <= labels_of[metric], query


def test_legends_name_labels_that_the_queries_keep() -> None:
    for panel in PANELS:
        for series in RECORDING["panels"][str(panel["id"])]:
            assert set(re.findall(r"\{\{(\w+)\}\}", panel["targets"][0]["legendFormat"])) <= set(series["labels"])


def test_variables_of_the_queries_are_replaced() -> None:
    assert [query for panel in PANELS for query in expressions(panel) if "$" in expression_of(query)] == []


def test_page_lists_the_panels_and_shows_the_picture() -> None:
    section = PAGE.split("## Dashboard")[1]
    rows = re.findall(r"^\| (.+?) \|", section.split("![")[0], re.MULTILINE)[2:]
    assert rows == ["six values in the first row", *(panel["title"] for panel in PANELS if panel["type"] != "stat")]
    assert "(images/dashboard.svg)" in section and f"version {RECORDING['prometheus'].split('+')[0]}" in section
