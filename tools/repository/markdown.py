# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Links, headings and anchors of a Markdown text."""

from __future__ import annotations

import re

FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
ANCHOR = re.compile(r"<a id=\"([\w-]+)\"></a>")


def links(text: str) -> list[str]:
    """Return the targets of all inline links."""
    return LINK.findall(FENCED.sub("", text))


def anchors(text: str) -> set[str]:
    """Return the fragments that a link can use for a heading or an anchor."""
    shown = FENCED.sub("", text)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(shown)} | set(
        ANCHOR.findall(shown)
    )
