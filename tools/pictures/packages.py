# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Draw the components of the repository, and the packages of the two programs, with their imports."""

from __future__ import annotations

import textwrap
from pathlib import Path

from tools.pictures.graphs.drawing import drawing
from tools.pictures.graphs.graph import Edge, Graph, Node
from tools.pictures.graphs.layout import layout_of
from tools.repository.components import COMPONENTS, HELPER, imports
from tools.repository.imports import internal_imports
from tools.repository.layers import HOOK_RUNNER, LAYERS, SIMULATOR

PROGRAMS = {HOOK_RUNNER: "hook runner", SIMULATOR: "simulator"}
# characters of a line in a box
NARROW = 15
# layers of the package itself, which the pictures leave out
WHOLE: tuple[set[str], ...] = ({""}, {"__main__"})


def pictures() -> dict[str, str]:
    """Return name of the file -> SVG."""
    return {f"{name}.svg": drawing(graph, layout_of(name, graph)) for name, graph in graphs().items()}


def graphs() -> dict[str, Graph]:
    """Return name of the picture -> its content."""
    return {"packages": components_graph(), **{f"import-order-{each.name}": program_graph(each) for each in PROGRAMS}}


def components_graph() -> Graph:
    """Return the components with all imports between them."""
    pairs = sorted(imports())
    order = {component.name: number for number, component in enumerate(COMPONENTS)}
    edges = tuple(Edge(tail, head) for tail, head in sorted(pairs, key=lambda pair: (order[pair[0]], order[pair[1]])))
    alone = [name for name in order if not any(name in pair for pair in pairs)]
    names = [*(name for name in order if name != HELPER), HELPER]
    nodes = tuple(Node(name, tuple(textwrap.wrap(name, NARROW)), "outside" if name in alone else "") for name in names)
    return Graph(
        "The components and their imports",
        f"{_sentences(pairs)} Without imports between components: {', '.join(alone)}.",
        nodes,
        edges,
        _rows(order, pairs),
    )


def program_graph(package: Path) -> Graph:
    """Return the packages of a program by layer; an import that follows from others has no arrow."""
    pairs = package_imports(package)
    rows = tuple(tuple(sorted(names)) for names in reversed(LAYERS[package]) if names not in WHOLE)
    shown = sorted(direct(pairs))
    return Graph(
        f"Packages of the {PROGRAMS[package]} and their imports",
        f"From the top: {order_of(package)}. {_sentences(shown)}",
        tuple(Node(name, (name,)) for row in rows for name in row),
        tuple(Edge(tail, head) for tail, head in shown),
        rows,
        separation=0.3,
    )


def order_of(package: Path) -> str:
    """Return the layers of a program from the top, as text."""
    return "; ".join(", ".join(sorted(names)) for names in reversed(LAYERS[package]) if names not in WHOLE)


def package_imports(package: Path) -> set[tuple[str, str]]:
    """Return (importing package, imported package) for each pair inside of a program."""
    pairs = {
        (module.partition(".")[0], imported.partition(".")[0])
        for module, found in internal_imports(package).items()
        for imported in found
    }
    return {(tail, head) for tail, head in pairs if tail != head and not {tail, head} & {"", "__main__"}}


def direct(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the pairs that do not follow from others; the pairs have no cycle."""
    return {
        (tail, head)
        for tail, head in pairs
        if not any(_reaches(middle, head, pairs) for start, middle in pairs if start == tail and middle != head)
    }


def _reaches(tail: str, head: str, pairs: set[tuple[str, str]]) -> bool:
    return any(middle == head or _reaches(middle, head, pairs) for start, middle in pairs if start == tail)


def _rows(names: dict[str, int], pairs: list[tuple[str, str]]) -> tuple[tuple[str, ...], ...]:
    """Return the components by the longest way to one that imports no other one, the highest first."""

    def height(name: str) -> int:
        return max((1 + height(head) for tail, head in pairs if tail == name), default=0)

    heights = {name: height(name) for name in names}
    return tuple(
        tuple(name for name in names if heights[name] == number) for number in range(max(heights.values()), -1, -1)
    )


def _sentences(pairs: list[tuple[str, str]]) -> str:
    heads: dict[str, list[str]] = {}
    for tail, head in pairs:
        heads.setdefault(tail, []).append(head)
    return " ".join(f"{tail} imports {', '.join(found)}." for tail, found in heads.items())
