# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Directed graphs, and their text for the program ``dot`` of Graphviz."""

from __future__ import annotations

from typing import NamedTuple


class Node(NamedTuple):
    """A box.

    Attributes:
        name: identifies it.
        lines: the lines of its text.
        kind: class of its style: "", or "outside" for a grey box.
    """

    name: str
    lines: tuple[str, ...]
    kind: str = ""


class Edge(NamedTuple):
    """An arrow.

    Attributes:
        tail, head: names of its nodes.
        lines: the lines of its text.
        kind: class of its style: "", or "rare" for a dashed line.
        is_upward: whether its head is above its tail.
    """

    tail: str
    head: str
    lines: tuple[str, ...] = ()
    kind: str = ""
    is_upward: bool = False


class Graph(NamedTuple):
    """A picture before its layout.

    Attributes:
        title, description: for readers who do not see the picture.
        nodes, edges: its content, in a fixed order.
        rows: names of the nodes that are on the same height, from the top.
        separation: inches between two rows.
    """

    title: str
    description: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    rows: tuple[tuple[str, ...], ...] = ()
    separation: float = 0.5


def as_dot(graph: Graph) -> str:
    """Return the text for ``dot``; the nodes and edges have their numbers as names."""
    numbers = {node.name: f"n{number}" for number, node in enumerate(graph.nodes)}
    lines = [
        "digraph {",
        f"graph [rankdir=TB ranksep={graph.separation} nodesep=0.12 splines=spline]",
        'node [shape=box fontname="DejaVu Sans" fontsize=13 margin="0.14,0.09" height=0.3]',
        'edge [arrowhead=none fontname="DejaVu Sans" fontsize=11]',
    ]
    lines += [f"{numbers[node.name]} [label={_quoted(node.lines)}]" for node in graph.nodes]
    for row in graph.rows:
        lines.append("{rank=same; " + "; ".join(numbers[name] for name in row) + "}")
    for row, next_row in zip(graph.rows, graph.rows[1:]):
        lines.append(f"{numbers[row[0]]} -> {numbers[next_row[0]]} [style=invis weight=2]")
    for number, edge in enumerate(graph.edges):
        label = f" label={_quoted(edge.lines)}" if edge.lines else ""
        above, below = (edge.head, edge.tail) if edge.is_upward else (edge.tail, edge.head)
        # Graphviz hands the colour on, which identifies the edge
        lines.append(f"{numbers[above]} -> {numbers[below]} [color=e{number}{label}]")
    return "\n".join([*lines, "}", ""])


def _quoted(lines: tuple[str, ...]) -> str:
    return '"' + "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines) + '"'
