# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Break long lines of Markdown prose: python -m tools.prose.wrapping FILE ...

A paragraph or list item is wrapped from its first long line on. Code spans and targets of links stay
whole. A file whose rendering would change is not written.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from markdown_it import MarkdownIt

from tools.prose.checks import line_findings
from tools.prose.passages import CODE
from tools.prose.vocabulary import load

_PARSER = MarkdownIt("commonmark").enable("table")
_LEAD = re.compile(r"[ >]*(?:(?:[-*+]|\d+\.) +)?")
_CODE = re.compile(r"(`+).+?\1", re.DOTALL)


def wrapped(text: str, long_lines: Sequence[int], columns: int) -> str:
    """Return a page whose paragraphs have no long lines.

    Args:
        text: the page.
        long_lines: numbers of the lines that are too long.
        columns: the greatest length of a line.

    Raises:
        ValueError: the page would have another meaning.
    """
    lines = text.split("\n")
    for start, end in reversed(list(_blocks(text))):
        long = [number - 1 for number in long_lines if start < number <= end]
        if long:
            lines[long[0] : end] = _filled(lines[long[0] : end], columns)
    result = "\n".join(lines)
    if _rendered(result) != _rendered(text):
        raise ValueError("a line would begin a list or another block; break it by hand")
    return result


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    opened = ""
    for token in _PARSER.parse(text):
        if token.type == "inline" and token.map and opened == "paragraph_open":
            yield token.map[0], token.map[1]
        opened = token.type


def _filled(lines: Sequence[str], columns: int) -> Iterator[str]:
    found = _LEAD.match(lines[0])
    lead = found[0] if found else ""
    # a list item goes on below its text, a quotation behind its mark
    next_lead = re.sub(r"[^ >]", " ", lead)
    rest = [line[len(next_lead) :] if line.startswith(next_lead) else line.lstrip(" >") for line in lines[1:]]
    text = " ".join([lines[0][len(lead) :], *rest])
    current = ""
    for word in _CODE.sub(lambda code: code[0].replace(" ", CODE), text).split():
        if current and len(lead) + len(current) + 1 + len(word) > columns:
            yield (lead + current).replace(CODE, " ")
            lead, current = next_lead, word
        else:
            current = f"{current} {word}" if current else word
    yield (lead + current).replace(CODE, " ")


def _rendered(text: str) -> list[str]:
    return str(_PARSER.render(text)).split()


def main(arguments: Sequence[str]) -> int:
    """Wrap the given files; return 1 if one of them stays as it is because its meaning would change."""
    settings = load().forms["long-line"]
    failed = False
    for name in arguments:
        text = Path(name).read_text(encoding="utf-8")
        numbers = [finding.line for finding in line_findings(name, text, settings)]
        try:
            Path(name).write_text(wrapped(text, numbers, settings["columns"]), encoding="utf-8")
        except ValueError as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
