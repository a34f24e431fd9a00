# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The sections of docs/troubleshooting.md, and the comparison of their output with that of a run."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from support.recipes.printed import dialogues, fences, is_shown, replaced
from support.repository import REPOSITORY

DOCUMENT = "docs/troubleshooting.md"
_EVENT_ID = re.compile(r"[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}")
_HEADING = re.compile(r"^#{2,4} (.+)$", re.MULTILINE)
# text that differs between two runs, in the order of its replacement
_DIFFERS = (
    (r"Python [\d.]+, requests [\d.]+, PyYAML [\d.]+", "VERSIONS"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?", "TIME"),
    (r"\b\d\d:\d\d:\d\d\b", "TIME"),
    (r"\b(in|after|within) \d+(\.\d+)? s(econds)?\b", r"\1 N s"),
    (r"\bleft \(\d+ s\)", "left (N s)"),
    (r"\brun \S+, process \d+ of \S+ on \S+,", "run ID, process N of USER on HOST,"),
    (r"\b\d+ (errors in a row|seconds ago)", r"N \1"),
    # a maintenance
    (r"\b\d{13}\b", "NUMBER"),
    # seconds since the answer of a minion
    (r"  \d+  ", "  N  "),
    # columns are as wide as their content
    (r" {2,}", "  "),
)
# runs a command of the page, and returns its exit code and output
Run = Callable[[str], tuple[int, str]]


class Block(NamedTuple):
    """One step of a section.

    Attributes:
        language: that of the fenced block.
        text: a command of a console block, or the whole text of another block.
        output: the output below the command.
    """

    language: str
    text: str
    output: str


class Section:
    """The blocks below one heading, in their order; a test takes them one after the other.

    Attributes:
        left: the blocks that no test has taken.
        event_id: the first one in an output, or "".
    """

    def __init__(self, heading: str) -> None:
        self.heading = heading
        self.left = sections()[heading]
        ids = [found[0] for block in self.left for found in [_EVENT_ID.search(block.output)] if found]
        self.event_id = ids[0] if ids else ""

    def take(self, language: str) -> Block:
        """Return the next block; it has to have this language."""
        block = self.left.pop(0)
        assert block.language == language, f"the next block of {self.heading!r} is {block}"
        return block

    def see(self, run: Run, *exit_codes: int) -> None:
        """Run a command for each exit code, by default one that succeeds; compare codes and output with the page."""
        for exit_code in exit_codes or (0,):
            self.see_block(self.take("console"), run, exit_code)

    def see_block(self, block: Block, run: Run, exit_code: int = 0) -> None:
        """Do the same with a command that was taken before."""
        code, text = run(block.text)
        assert is_shown(shape(text), shape(block.output)), (
            f"{self.heading}: $ {block.text}\nthe page has\n{block.output}\nthe run printed\n{text}"
        )
        assert code == exit_code, f"{block.text}: exit code {code}\n{text}"

    def see_all(self, run: Run) -> None:
        """Run all further commands of the section, which succeed."""
        while self.left:
            self.see(run)


def sections() -> dict[str, list[Block]]:
    """Return the blocks of each heading of the page that has any."""
    _before, *parts = _HEADING.split((REPOSITORY / DOCUMENT).read_text(encoding="utf-8"))
    found = {heading: _blocks(text) for heading, text in zip(parts[::2], parts[1::2], strict=True)}
    return {heading: blocks for heading, blocks in found.items() if blocks}


def _blocks(text: str) -> list[Block]:
    found: list[Block] = []
    for language, block in fences(text):
        if language == "console":
            found += [Block(language, command, output) for command, output in dialogues(block)]
        else:
            found.append(Block(language, block, ""))
    return found


def shape(text: str) -> list[str]:
    """Return the lines of an output, with placeholders for text that differs between two runs."""
    return replaced(text, _DIFFERS)
