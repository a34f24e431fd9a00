# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Follows a start page: pastes its commands into a shell, and compares what they print with the page.

A block of the language sh is commands. A block of the language text is the output of the commands before it;
its line "..." stands for any lines. A test handles every other block itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from support.new_user.shell import Shell
from support.repository import REPOSITORY

COMMANDS = "sh"
OUTPUT = "text"
# the home folder of the reader on a page
PRINTED_HOME = "/home/you"
ANY_LINES = "(?:.*\n)*?"

_FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# what differs from run to run
_GUID = re.compile(r"\b[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z|\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT")
_SECONDS = re.compile(r"\b\d+\.\d\d?$", re.MULTILINE)


class Block(NamedTuple):
    """One block of a page with a language."""

    language: str
    text: str

def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page in their order."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    return [Block(*found) for found in _FENCED.findall(text)]


def is_as_printed(printed: str, actual: str, home: str) -> bool:
    """Return True if the outputs agree, apart from ids, times and the home folder."""
    shown = [comparable(line) for line in printed.splitlines()]
    lines = [ANY_LINES if line.strip() == "..." else re.escape(line) + "\n" for line in shown]
    given = comparable(actual.replace(home, PRINTED_HOME))
    return re.fullmatch("".join(lines), "".join(line.rstrip() + "\n" for line in given.splitlines())) is not None


def comparable(text: str) -> str:
    return _SECONDS.sub("SECONDS", _TIME.sub("TIME", _GUID.sub("ID", text)))


class PageReader:
    """Follows the blocks of one page in a shell.

    Args:
        page: path in the repository.
        home: the home folder of the user of the shell.
    """

    def __init__(self, page: str, home: str) -> None:
        self._blocks = blocks_of(page)
        self._home = home
        self._output = ""

    def go_on(self, shell: Shell, last: str = "", answers: Mapping[str, str] | None = None) -> str:
        """Follow the blocks up to the commands with this text, and the output that belongs to them.

        Args:
            shell: for the commands.
            last: a text of the last commands; by default all blocks are followed.
            answers: lines for the commands with a text, which read from the terminal.

        Returns:
            The output of the last commands.
        """
        found = not last
        while self._blocks and not (found and last and self._blocks[0].language != OUTPUT):
            block = self._blocks.pop(0)
            if block.language == COMMANDS:
                given = "".join(text for part, text in (answers or {}).items() if part in block.text)
                self._output = shell.paste(block.text, given)
                found = found or last in block.text
            else:
                self._compare(block)
        assert found, f"no commands that are left have {last!r}"
        return self._output

    def take(self, language: str) -> str:
        """Return the next block, which must have this language and is left to the test."""
        block = self._blocks.pop(0)
        assert block.language == language, block
        return block.text

    def prints(self, actual: str) -> None:
        """Compare the next block with an output."""
        self._output = actual
        self._compare(self._blocks.pop(0))

    def is_at_end(self) -> bool:
        return not self._blocks

    def _compare(self, block: Block) -> None:
        assert block.language == OUTPUT, f"no test follows this block: {block}"
        assert is_as_printed(block.text, self._output, self._home), f"{self._output}\nis not\n{block.text}"
