# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Parts of a self-contained SVG, which has a background of its own on light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_LIGHT = """\
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 14px }
.small { font-size: 11px; fill: #59636e }
.page { fill: #ffffff }
.frame { fill: none; stroke: #d1d9e0 }
.grid { stroke: #d1d9e0; stroke-width: .5 }
.announced { fill: #0969da; fill-opacity: .13 }
.interrupted { fill: #bf8700; fill-opacity: .32 }"""
_DARK = """\
text { fill: #f0f6fc }
.small { fill: #9198a1 }
.page { fill: #0d1117 }
.frame, .grid { stroke: #3d444d }
.announced { fill: #4493f8; fill-opacity: .2 }
.interrupted { fill: #d29922; fill-opacity: .4 }"""


def document(
    command: str,
    size: tuple[float, float],
    title: str,
    body: Sequence[str],
    *,
    light: str,
    dark: str,
) -> str:
    """Return the text of a file.

    Args:
        command: the command that writes the file.
        size: width and height.
        title: for programs that read the picture aloud.
        body: the elements.
        light: further rules of CSS; the classes text, title, small, page, frame, grid, announced and
            interrupted have some.
        dark: further rules for a dark page.
    """
    width, height = (f"{value:.0f}" for value in size)
    return "\n".join(
        [
            f"<!-- written by `{command}` -->",
            "<!-- SPDX-License-Identifier: GPL-3.0-or-later -->",
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
            f' width="{width}" height="{height}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{_LIGHT}\n{light}\n@media (prefers-color-scheme: dark) {{\n{_DARK}\n{dark}\n}}\n</style>",
            f'<rect class="page" width="{width}" height="{height}" rx="6"/>',
            *body,
            "</svg>\n",
        ]
    )


def text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    """Return a text.

    Args:
        x: the place of its anchor.
        y: its base line.
        words: the text.
        kind: its class.
        anchor: start, middle or end.
    """
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
