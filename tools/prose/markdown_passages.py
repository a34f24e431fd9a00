# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The prose of Markdown pages: not code, quotations, targets of links, HTML or pictures of characters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tools.prose.passages import CELL, CODE, HEADING, ITEM, PARAGRAPH, PICTURE, Passage

_PARSER = MarkdownIt("commonmark").enable("table")
_QUOTATION = re.compile(r'"[^"]*"')
_KINDS = {"heading_open": HEADING, "th_open": CELL, "td_open": CELL}


def markdown_passages(path: str, text: str) -> Iterator[Passage]:
    """Yield the headings, paragraphs, list items and table cells of a page, and the texts of pictures."""
    line, items, opened = 0, 0, ""
    for token in _PARSER.parse(text):
        if token.map:
            line = token.map[0]
        if token.type == "list_item_open":
            items += 1
        elif token.type == "list_item_close":
            items -= 1
        elif token.type == "inline":
            for child in token.children or []:
                if child.type == "image":
                    yield Passage(path, line + 1, PICTURE, "".join(_shown(child.children or [])))
            shown = _QUOTATION.sub(_quoted, "".join(_shown(token.children or [])))
            if shown.strip():
                yield Passage(path, line + 1, _KINDS.get(opened, ITEM if items else PARAGRAPH), shown)
        opened = token.type


def prose_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line of a paragraph or list item; code spans have no blanks.

    The text of a picture may be a long line.
    """
    lines = text.splitlines()
    opened = ""
    for token in _PARSER.parse(text):
        if token.type == "inline" and opened == "paragraph_open" and token.map:
            pictures = any(child.type == "image" for child in token.children or [])
            for number in range(*token.map) if not pictures else ():
                yield number + 1, _without_blanks_in_code(lines[number])
        opened = token.type


def _shown(children: Sequence[Token]) -> Iterator[str]:
    """Yield the text of inline tokens; each line break is one character, so that lines can be counted."""
    for child in children:
        if child.type in ("softbreak", "hardbreak"):
            yield "\n"
        elif child.type in ("code_inline", "image"):
            yield CODE
        elif child.type != "html_inline":
            yield child.content


def _quoted(match: re.Match[str]) -> str:
    return CODE + "\n" * match[0].count("\n")


def _without_blanks_in_code(line: str) -> str:
    return "".join(part.replace(" ", CODE) if number % 2 else part for number, part in enumerate(_code_and_text(line)))


def _code_and_text(line: str) -> list[str]:
    parts = line.split("`")
    # a code span that goes on in the next line has no second quote here
    return ["`".join(parts)] if len(parts) % 2 == 0 else parts
