# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Reads the HTML file that the simulator writes about a run."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

_SVG = "{http://www.w3.org/2000/svg}"


class Mark(NamedTuple):
    """A mark of the picture: its kind, its position and its description."""

    kind: str
    x: float
    y: float
    title: str


class Bar(NamedTuple):
    """A bar or a band of the picture."""

    kind: str
    x: float
    end: float
    y: float
    title: str


class ReportPage(HTMLParser):
    """A parsed report.

    ``elements`` are names with attributes, ``tables`` are caption to rows of cells, ``text`` is all text.
    """

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.text = ""
        self._open: list[str] = []
        self._rows: list[list[str]] = []
        self.feed(source)
        self.close()
        found = re.search(r'<svg class="timeline".*?</svg>', source, re.DOTALL)
        self.svg = ElementTree.fromstring(found[0]) if found else None

    @classmethod
    def of(cls, file: Path) -> ReportPage:
        return cls(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)
        if tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self.text += data
        if "caption" in self._open:
            self.tables[data] = self._rows = []
        elif "td" in self._open or "th" in self._open:
            self._rows[-1][-1] += data

    def rows(self, caption: str) -> list[dict[str, str]]:
        """Return the rows of a table, by heading."""
        head, *rows = self.tables[caption]
        return [dict(zip(head, row, strict=True)) for row in rows]

    def marks(self, vm: str | None = None) -> list[Mark]:
        """Return the marks in the order of time; ``vm``: only those in its lane."""
        found = []
        for path in self._drawn("path"):
            classes = path.get("class", "").split()
            if classes[:1] == ["mark"]:
                x, y = re.findall(r"[-\d.]+", path.get("transform", ""))
                found.append(Mark(classes[1], float(x), float(y), path.findtext(f"{_SVG}title", "")))
        inside = self.lanes()[vm] if vm is not None else (0.0, 1e9)
        return sorted((mark for mark in found if inside[0] <= mark.y <= inside[1]), key=lambda mark: mark.x)

    def bars(self, kind: str) -> list[Bar]:
        """Return the bars of a kind: scheduled, started, interrupted or fault."""
        return [
            Bar(
                kind,
                float(rect.get("x", "")),
                float(rect.get("x", "")) + float(rect.get("width", "")),
                float(rect.get("y", "")),
                rect.findtext(f"{_SVG}title", ""),
            )
            for rect in self._drawn("rect")
            if rect.get("class", "").split()[-1:] == [kind]
        ]

    def lanes(self) -> dict[str, tuple[float, float]]:
        """Return VM to top and bottom of its lane."""
        names = [text.findtext(f"{_SVG}title", "") for text in self._drawn("text") if text.get("class") == "vm"]
        rects = [rect for rect in self._drawn("rect") if rect.get("class", "").split()[:1] == ["lane"]]
        tops = [float(rect.get("y", "")) for rect in rects]
        heights = [float(rect.get("height", "")) for rect in rects]
        return {name: (top, top + height) for name, top, height in zip(names, tops, heights, strict=True)}

    def _drawn(self, name: str) -> list[ElementTree.Element]:
        return [] if self.svg is None else list(self.svg.iter(_SVG + name))
