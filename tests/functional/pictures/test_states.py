# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The pictures and tables of docs/states.md are those of the code."""

from __future__ import annotations

import re
from functools import cache
from xml.etree import ElementTree

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance import outcomes, report

from azure_events_engine import progress
from hook_runner.records import ACCEPTED, PHASES, REFUSED, SENT
from support.repository import REPOSITORY
from tools.pictures.graphs.drawing import drawing
from tools.pictures.graphs.graph import Graph
from tools.pictures.graphs.layout import StaleLayout, layout_of, stored_layout
from tools.pictures.picture_error import PictureError
from tools.pictures.states import drawing as states

PAGE = (REPOSITORY / "docs" / "states.md").read_text(encoding="utf-8")
REFERENCE = (REPOSITORY / "docs" / "reference" / "scheduled-events.md").read_text(encoding="utf-8")
IMAGES = REPOSITORY / "docs" / "images"
SVG = "{http://www.w3.org/2000/svg}"


@cache
def graph_of(name: str) -> Graph:
    return states.GRAPHS[name]()


def first_column(picture: str) -> list[str]:
    """Return the first cells of the table below a picture of the page."""
    section = PAGE.split(f"(images/{picture}.svg)")[1].split("\n## ")[0]
    return [cell.strip("`") for cell in re.findall(r"^\| (.+?) \|", section, re.MULTILINE)][2:]


@pytest.mark.short
@pytest.mark.parametrize("name", states.GRAPHS)
def test_picture_has_the_transitions_of_the_code(name: str) -> None:
    graph = graph_of(name)
    expected = drawing(graph, stored_layout(name, graph))
    assert (IMAGES / f"{name}.svg").read_text(encoding="utf-8") == expected, "make pictures PICTURES=states"


@pytest.mark.short
@pytest.mark.parametrize("name", states.GRAPHS)
def test_picture_shows_each_state_and_each_transition(name: str) -> None:
    graph = graph_of(name)
    root = ElementTree.fromstring((IMAGES / f"{name}.svg").read_text(encoding="utf-8"))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    shown = [line for node in graph.nodes for line in node.lines] + [
        line for edge in graph.edges for line in edge.lines
    ]
    assert sorted(filter(None, texts)) == sorted(shown)
    assert sum("marker-end" in element.attrib for element in root.iter(f"{SVG}path")) == len(graph.edges)
    assert root.findtext(f"{SVG}title") == graph.title and root.findtext(f"{SVG}desc") == graph.description


def test_layout_of_a_changed_graph_is_stale() -> None:
    with pytest.raises(StaleLayout, match="make pictures"):
        stored_layout("event-states", changed(graph_of("event-states")))


def test_layout_of_a_changed_graph_needs_graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(PictureError, match="install the package graphviz"):
        layout_of("event-states", changed(graph_of("event-states")))


def changed(graph: Graph) -> Graph:
    return graph._replace(edges=graph.edges[1:])


@pytest.mark.short
@pytest.mark.parametrize("name", states.GRAPHS)
def test_page_has_a_row_for_each_state(name: str) -> None:
    shown = [line for node in graph_of(name).nodes for line in node.lines]
    assert set(shown) - {"not listed"} == set(first_column(name))


@pytest.mark.short
def test_states_are_those_that_the_code_names() -> None:
    assert set(first_column("maintenance-states")) == set(PHASES)
    assert {ACCEPTED, REFUSED, SENT} < set(first_column("approval-states"))


@pytest.mark.short
def test_states_of_an_event_agree_with_the_reference() -> None:
    rows = re.findall(r"^\|.*\| (absent|Scheduled|Started) \| (absent|Scheduled|Started) \|", REFERENCE, re.MULTILINE)
    names = {"not in the document": "absent", "gone from the document": "absent"}
    lines = {node.name: node.lines[0] for node in graph_of("event-states").nodes}
    shown = {
        tuple(names.get(lines[end], lines[end]) for end in (edge.tail, edge.head))
        for edge in graph_of("event-states").edges
        if edge.kind != "rare"
    }
    assert shown == set(rows)


@pytest.mark.short
def test_table_of_names_has_words_of_the_code() -> None:
    section = PAGE.split("## The same step by its names")[1].split("The playbook's")[0]
    rows = [re.findall(r"(?<=\| )[^|]*(?=\|)", line) for line in section.splitlines() if line.startswith("| ")][2:]
    entries, events, columns = ([row[number].strip(" `") for row in rows] for number in (1, 2, 3))
    observed = {line for edge in graph_of("maintenance-states").edges for line in edge.lines}
    observed |= {line for edge in graph_of("approval-states").edges for line in edge.lines}
    # the engine of the pictures has no hooks
    assert {*filter(None, entries)} <= observed | {"hook-started", "hook-ended"}
    assert {*filter(None, events)} == {*progress.STEPS} - {progress.FAILED}
    assert {*filter(None, columns)} <= {*report.table_of([{**ROW}])[0].split()}


@pytest.mark.short
def test_page_lists_the_outcomes_of_the_report() -> None:
    section = PAGE.split("one of these outcomes:")[1]
    constants = {value for name, value in vars(outcomes).items() if name.isupper() and isinstance(value, str)}
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == constants


ROW = {
    **dict.fromkeys(("prepared", "approved", "started", "over", "recovered", "not_before", "moved_to")),
    **dict.fromkeys(("host", "event_type", "event_id", "outcome", "why_not"), ""),
}
