# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Draws a graph with its layout as one self-contained SVG, which is legible on light and dark pages."""

from __future__ import annotations

from html import escape

from tools.pictures import svg
from tools.pictures.graphs.graph import Graph
from tools.pictures.graphs.layout import Curve, Layout, Point

MARGIN = 14
# pixels between two lines of text, in a node and at an edge
NODE_LINE, EDGE_LINE = 16, 14
LIGHT = """\
text { font-size: 13px; text-anchor: middle }
.node { fill: #ddf4ff; stroke: #0969da }
.outside { fill: #f6f8fa; stroke: #818b98 }
.arrow { fill: none; stroke: #59636e; stroke-width: 1.2 }
.rare { stroke-dasharray: 5 3 }
.tip { fill: #59636e }
.label { font-size: 11.5px; fill: #424a53 }
.label { stroke: #ffffff; stroke-width: 4; paint-order: stroke; stroke-linejoin: round }"""
DARK = """\
.node { fill: #121d2f; stroke: #4493f8 }
.outside { fill: #151b23; stroke: #656c76 }
.arrow { stroke: #9198a1 }
.tip { fill: #9198a1 }
.label { fill: #c8d1da; stroke: #0d1117 }"""
TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" '
    'markerUnits="userSpaceOnUse" orient="auto"><path class="tip" d="M0 0.8L8 4L0 7.2z"/></marker></defs>'
)


def drawing(graph: Graph, layout: Layout) -> str:
    """Return the SVG."""
    lines = [TIP, f'<g transform="translate({MARGIN} {MARGIN})">']
    for edge, curve in zip(graph.edges, layout.curves):
        kind = f"arrow {edge.kind}".strip()
        lines.append(f'<path class="{kind}" marker-end="url(#tip)" d="{_path(curve)}"/>')
    for node, box in zip(graph.nodes, layout.boxes):
        left, top = box.x - box.width / 2, box.y - box.height / 2
        lines.append(
            f'<rect class="{node.kind or "node"}" x="{left:.1f}" y="{top:.1f}" '
            f'width="{box.width:.1f}" height="{box.height:.1f}" rx="6"/>'
        )
        lines += _texts(node.lines, (box.x, box.y), NODE_LINE, "")
    for edge, curve in zip(graph.edges, layout.curves):
        if curve.label is not None:
            lines += _texts(edge.lines, curve.label, EDGE_LINE, ' class="label"')
    return svg.document(
        "make pictures",
        (layout.width + 2 * MARGIN, layout.height + 2 * MARGIN),
        graph.title,
        [*lines, "</g>"],
        light=LIGHT,
        dark=DARK,
        description=graph.description,
        natural=True,
    )


def _path(curve: Curve) -> str:
    first, *others = [f"{x:.1f} {y:.1f}" for x, y in curve.points]
    return f"M{first}C{' '.join(others)}"


def _texts(lines: tuple[str, ...], centre: Point, step: int, style: str) -> list[str]:
    x, y = centre
    # a line of text is as far above its middle as a third of its height
    top = y - step * (len(lines) - 1) / 2 + step * 0.29
    return [
        f'<text{style} x="{x:.1f}" y="{top + number * step:.1f}">{escape(line, quote=False)}</text>'
        for number, line in enumerate(lines)
    ]
