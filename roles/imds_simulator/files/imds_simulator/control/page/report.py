# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The report of a run: the page with its data embedded, as one HTML file that needs no network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent


def report(run: Mapping[str, Any]) -> str:
    """Return ``run``, the answer to ``GET /state?after_line=0``, as an HTML document."""
    page, style, script = (
        (_FOLDER / name).read_text(encoding="utf-8") for name in ("page.html", "page.css", "page.js")
    )
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'"
    # a text with a tag must not end the element
    data = json.dumps(run).replace("<", "\\u003c")
    parts = {
        '<meta charset="utf-8">': '<meta charset="utf-8">\n'
        f'  <meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<link rel="stylesheet" href="/page.css">': f"<style>{style}</style>",
        '<script src="/page.js"></script>': f'<script type="application/json" id="data">{data}</script>\n'
        f"  <script>{script}</script>",
    }
    for link, content in parts.items():
        page = page.replace(link, content, 1)
    return page


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
