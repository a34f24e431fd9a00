# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Layouts of graphs by Graphviz, stored in ``layouts`` so that only a changed graph needs Graphviz."""

from __future__ import annotations

import hashlib
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from tools.pictures.graphs.graph import Graph, as_dot
from tools.pictures.picture_error import PictureError

LAYOUTS = Path(__file__).parent / "layouts"
# pixels of an inch
SCALE = 72.0

Point = tuple[float, float]


class Box(NamedTuple):
    """A node: its centre and its size in pixels."""

    x: float
    y: float
    width: float
    height: float


class Curve(NamedTuple):
    """An edge: the points of its Bézier curves, and the centre of its text or None."""

    points: tuple[Point, ...]
    label: Point | None


class Layout(NamedTuple):
    """Places of the nodes and edges, in the order of the graph."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    curves: tuple[Curve, ...]


class StaleLayout(PictureError):
    """The stored layout is that of another graph."""


def stored_layout(name: str, graph: Graph) -> Layout:
    """Return the stored layout.

    Args:
        name: of the picture.
        graph: its content.

    Raises:
        StaleLayout: there is no layout, or it is that of another graph.
    """
    file = LAYOUTS / f"{name}.txt"
    digest, _newline, plain = file.read_text(encoding="utf-8").partition("\n") if file.exists() else ("", "", "")
    if digest != _digest(graph):
        raise StaleLayout(f"{name}: the code differs from the layout of the picture; run `make pictures`")
    return _parsed(plain, graph)


def layout_of(name: str, graph: Graph) -> Layout:
    """Return the stored layout, or store a new one.

    Args:
        name: of the picture.
        graph: its content.

    Raises:
        PictureError: a new layout is needed, and ``dot`` is not installed.
    """
    try:
        return stored_layout(name, graph)
    except StaleLayout as stale:
        if shutil.which("dot") is None:
            raise PictureError(f"{name}: the program dot is missing; install the package graphviz") from stale
    ran = subprocess.run(["dot", "-Tplain"], input=as_dot(graph), text=True, capture_output=True, check=True)
    LAYOUTS.mkdir(exist_ok=True)
    (LAYOUTS / f"{name}.txt").write_text(f"{_digest(graph)}\n{ran.stdout}", encoding="utf-8")
    return stored_layout(name, graph)


def _digest(graph: Graph) -> str:
    return f"# SPDX-License-Identifier: GPL-3.0-or-later; dot {hashlib.sha256(as_dot(graph).encode()).hexdigest()}"


def _parsed(plain: str, graph: Graph) -> Layout:
    """Read the format ``plain`` of Graphviz: inches, with the origin at the bottom left."""
    boxes: dict[str, Box] = {}
    curves: dict[str, Curve] = {}
    width = height = 0.0
    for line in plain.splitlines():
        kind, *words = shlex.split(line)
        if kind == "graph":
            width, height = float(words[1]), float(words[2])
        elif kind == "node":
            x, y, w, h = map(float, words[1:5])
            boxes[words[0]] = Box(x * SCALE, (height - y) * SCALE, w * SCALE, h * SCALE)
        elif kind == "edge" and words[-1].startswith("e"):
            count = int(words[2])
            numbers = [float(word) * SCALE for word in words[3 : 3 + 2 * count]]
            points = tuple((x, height * SCALE - y) for x, y in zip(numbers[::2], numbers[1::2]))
            after = words[3 + 2 * count : -2]
            label = (float(after[1]) * SCALE, (height - float(after[2])) * SCALE) if after else None
            is_upward = graph.edges[int(words[-1][1:])].is_upward
            curves[words[-1]] = Curve(points[::-1] if is_upward else points, label)
    return Layout(
        width * SCALE,
        height * SCALE,
        tuple(boxes[f"n{number}"] for number in range(len(graph.nodes))),
        tuple(curves[f"e{number}"] for number in range(len(graph.edges))),
    )
