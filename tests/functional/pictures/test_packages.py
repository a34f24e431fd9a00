# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The pictures of docs/architecture.md are those of the import graph."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.repository import REPOSITORY
from tools.pictures import packages
from tools.pictures.graphs.drawing import drawing
from tools.pictures.graphs.layout import stored_layout
from tools.repository.components import COMPONENTS, HELPER, imports, owner_of
from tools.repository.imports import sources

pytestmark = pytest.mark.short
PAGE = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
# folders of a user's installation
SHIPPED = ("plugins", "extensions", "roles", "salt")


@pytest.mark.parametrize("name", packages.graphs())
def test_picture_has_the_imports_of_the_code(name: str) -> None:
    graph = packages.graphs()[name]
    committed = (REPOSITORY / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8")
    assert committed == drawing(graph, stored_layout(name, graph)), "make pictures PICTURES=packages"
    assert f"(images/{name}.svg)" in PAGE


@pytest.mark.parametrize("program", packages.PROGRAMS, ids=lambda program: program.name)
def test_arrows_of_a_program_lead_down(program: Path) -> None:
    graph = packages.program_graph(program)
    row = {name: number for number, names in enumerate(graph.rows) for name in names}
    assert graph.edges and all(row[edge.tail] < row[edge.head] for edge in graph.edges)


@pytest.mark.parametrize("program", packages.PROGRAMS, ids=lambda program: program.name)
def test_imports_without_an_arrow_follow_from_others(program: Path) -> None:
    pairs = packages.package_imports(program)
    reached = packages.direct(pairs)
    while more := {(a, d) for a, b in reached for c, d in reached if b == c} - reached:
        reached |= more
    assert pairs <= reached


def test_direct_imports_leave_out_those_that_follow() -> None:
    assert packages.direct({("a", "b"), ("b", "c"), ("a", "c"), ("a", "d")}) == {("a", "b"), ("b", "c"), ("a", "d")}


def test_each_shipped_file_belongs_to_a_component() -> None:
    files = [file for folder in SHIPPED for file in sources(REPOSITORY / folder) if not file.is_symlink()]
    without = {file.relative_to(REPOSITORY).as_posix() for file in files if not owner_of(file)}
    assert {path.rpartition("/")[0] for path in without} <= {"extensions/eda/plugins", "salt/package", "salt"}


def test_page_names_the_folders_of_the_components() -> None:
    for component in COMPONENTS:
        assert re.search(rf"`{component.folders[0]}/?`", PAGE) or component.name == "Event-Driven Ansible", component


def test_no_component_imports_a_frontend() -> None:
    shared = {HELPER, "shared by plugins", "shared by Salt"}
    assert {head for _tail, head in imports()} == shared
