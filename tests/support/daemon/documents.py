# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Reads blocks, tables and console sessions of docs/hook-runner.md and docs/configuration.md."""

from __future__ import annotations

import re

from support.recipes import printed
from support.repository import REPOSITORY

GUIDE = (REPOSITORY / "docs" / "hook-runner.md").read_text(encoding="utf-8")
REFERENCE = (REPOSITORY / "docs" / "configuration.md").read_text(encoding="utf-8")

# patterns of text that differs between two runs, in the order of their replacement
_DIFFERS = (
    (r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", "ID"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{3})?Z?", "TIME"),
    (r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4}\b", "DAY"),
    (r"\btook \S+ .*", "took TIME"),
    (r"-?\d+(\.\d+)*", "N"),
    # columns are as wide as their content
    (r" {2,}", "  "),
)


def blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return [block for found, block in printed.fences(text) if found == language]


def section(text: str, heading: str) -> str:
    """Return the text from a heading to the next one."""
    return re.split(r"^#+ ", text.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str, heading: str) -> list[list[str]]:
    """Return the cells of the table rows below a heading, without header rows."""
    lines = [
        [cell.strip() for cell in line.strip("|").split(" |")]
        for line in section(text, heading).splitlines()
        if line.startswith("|")
    ]
    return [
        line
        for number, line in enumerate(lines)
        if not is_rule(line) and not (number + 1 < len(lines) and is_rule(lines[number + 1]))
    ]


def column(text: str, heading: str, header: str) -> list[str]:
    """Return the texts in backquotes of the first column of the table below a heading with this first header."""
    table = section(text, heading).partition(f"| {header} |")[2].partition("\n\n")[0]
    return [word for line in table.splitlines()[2:] for word in quoted(line.strip("|").split(" |")[0])]


def is_rule(cells: list[str]) -> bool:
    """Return True if this is the line below a header row."""
    return all(re.fullmatch(r"-+:?", cell) for cell in cells)


def quoted(cell: str) -> list[str]:
    """Return the texts in backquotes."""
    return re.findall(r"`([^`]+)`", cell)


def dialogues(text: str) -> list[tuple[str, str]]:
    """Return (command, output) of all commands in console blocks."""
    return [each for block in blocks(text, "console") for each in printed.dialogues(block)]


def shape(text: str) -> list[str]:
    """Return the lines of an output, with placeholders for text that differs between two runs."""
    return printed.replaced(text, _DIFFERS)
