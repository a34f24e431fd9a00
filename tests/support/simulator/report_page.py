# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Reads the HTML file that the simulator writes about a run."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any


class ReportPage(HTMLParser):
    """A report: ``elements`` are names with attributes, ``data`` is the embedded run.

    ``scripts`` and ``styles`` are the texts of these elements, without the data.
    """

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._embedded = ""
        self.feed(source)
        self.close()
        self.data: dict[str, Any] = json.loads(self._embedded)

    @classmethod
    def of(cls, file: Path) -> ReportPage:
        return cls(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.elements[-1] if self.elements else ("", {})
        if tag == "script" and attributes.get("id") == "data":
            self._embedded += data
        elif tag in ("script", "style") and data.strip():
            (self.scripts if tag == "script" else self.styles).append(data)

    def steps(self, vm: str) -> list[str]:
        """Return what ``vm`` did, in the order of time: ``seen``, ``approved``, and the texts of its notes."""
        return [
            line.get("note", line["what"])
            for line in self.data["lines"]
            if line["what"] in ("seen", "note", "approved") and vm in (line.get("vm"), line.get("by"))
        ]
