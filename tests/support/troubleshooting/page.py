# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The sections of docs/troubleshooting.md, and the comparison of their output with that of a run."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from support.repository import REPOSITORY

DOCUMENT = "docs/troubleshooting.md"
# a line that stands for any number of lines
ANY_LINES = "..."
_EVENT_ID = re.compile(r"[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}")
_HEADING = re.compile(r"^(#{2,4}) (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
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
    """The blocks below one heading, in their order; a test takes them one after the other."""

    def __init__(self, heading: str) -> None:
        self.heading = heading
        self._left = sections()[heading]
        ids = [found[0] for block in self._left for found in [_EVENT_ID.search(block.output)] if found]
        self._event_id = ids[0] if ids else ""

    def take(self, language: str) -> Block:
        """Return the next block; it has to have this language."""
        block = self._left.pop(0)
        assert block.language == language, f"the next block of {self.heading!r} is {block}"
        return block

    def see(self, run: Callable[[str], tuple[int, str]], exit_code: int = 0) -> str:
        """Run the next command, compare its exit code and its output with the page, and return the output."""
        block = self.take("console")
        code, text = run(block.text)
        compare(self.heading, block, text)
        assert code == exit_code, f"{block.text}: exit code {code}\n{text}"
        return text

    def event_id(self) -> str:
        return self._event_id

    def see_block(self, block: Block, run: Callable[[str], tuple[int, str]]) -> None:
        """Run a command that was taken before, and compare its output."""
        compare(self.heading, block, run(block.text)[1])

    def see_all(self, run: Callable[[str], tuple[int, str]]) -> None:
        """Run all further commands of the section, which succeed."""
        while self._left:
            self.see(run)

    def left(self) -> list[Block]:
        """Return the blocks that nothing has taken."""
        return list(self._left)


def sections() -> dict[str, list[Block]]:
    """Return the blocks of each heading of the page that has any."""
    text = (REPOSITORY / DOCUMENT).read_text(encoding="utf-8")
    headings = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    found = {
        heading[2]: [block for part in _BLOCK.findall(text[heading.end() : end]) for block in _steps(*part)]
        for heading, end in zip(headings, ends, strict=True)
    }
    return {heading: blocks for heading, blocks in found.items() if blocks}


def _steps(language: str, text: str) -> list[Block]:
    if language != "console":
        return [Block(language, text, "")]
    found = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _newline, output = re.sub(r"\\\n\s*", "", part).partition("\n")
        found.append(Block(language, command, output))
    return found


def compare(heading: str, block: Block, actual: str) -> None:
    """Raise AssertionError unless an output is that of the page, apart from times and hashes."""
    expected, found = shape(block.output), shape(actual)
    parts: list[list[str]] = [[]]
    for line in expected:
        if line == ANY_LINES:
            parts.append([])
        else:
            parts[-1].append(line)
    assert _fits(parts, found), f"{heading}: $ {block.text}\nthe page has\n{block.output}\nthe run printed\n{actual}"


def _fits(parts: list[list[str]], found: list[str]) -> bool:
    """Return True if the lines consist of these parts, with any lines between two of them."""
    if len(parts) == 1:
        return found == parts[0]
    first, *middle, last = parts
    at, end = len(first), len(found) - len(last)
    if at > end or found[:at] != first or found[end:] != last:
        return False
    for part in middle:
        starts = [start for start in range(at, end - len(part) + 1) if found[start : start + len(part)] == part]
        if not starts:
            return False
        at = starts[0] + len(part)
    return True


def shape(text: str) -> list[str]:
    """Return the lines of an output, with placeholders for text that differs between two runs."""
    for pattern, word in _DIFFERS:
        text = re.sub(pattern, word, text)
    return [line.rstrip() for line in text.rstrip("\n").splitlines()]
