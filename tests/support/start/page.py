# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Follows a page as a reader does: pastes its commands in order, and compares its outputs with the real ones."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from support.daemon.documents import shape
from support.recipes.printed import fences
from support.repository import REPOSITORY
from support.start.new_user import NewUser
from support.start.terminal import Terminal

# a line of an output block that stands for any lines
ELLIPSIS = "..."
# the home directory in outputs
PRINTED_HOME = "/home/you"


def blocks_of(document: str) -> list[tuple[str, str]]:
    """Return (language, text) of each block, in order; pages of a start have commands and outputs only."""
    found = fences((REPOSITORY / document).read_text(encoding="utf-8"))
    assert {language for language, _text in found} <= {"sh", "text"}, document
    return found


def follow(document: str, user: NewUser, terminal: Terminal, failing: Collection[str] = ()) -> None:
    """Paste each block of commands; an output block behind it shows the output of this block.

    ``failing`` are the first command lines of blocks with a command that has to fail.

    Raises:
        AssertionError: a command failed, or an output differs.
    """
    began, output = time.monotonic(), ""
    for language, text in blocks_of(document):
        if language == "sh":
            output = terminal.paste(text, fails=text.splitlines()[0] in failing).replace(str(user.home), PRINTED_HOME)
            print(f"{document}: after {time.monotonic() - began:.0f} s: {text.splitlines()[-1]}")
        else:
            assert is_shown(shape(output), shape(text)), (
                f"{document}: the output is\n{output}\nand the page has\n{text}"
            )


def is_shown(output: Sequence[str], printed: Sequence[str]) -> bool:
    """Return True if a printed output, with its ellipses, stands for the output."""
    parts: list[list[str]] = [[]]
    for line in printed:
        if line.strip() == ELLIPSIS:
            parts.append([])
        else:
            parts[-1].append(line)
    at = 0
    for number, part in enumerate(parts):
        last = len(output) - len(part)
        starts = [at] if number == 0 else range(at, last + 1)
        if number == len(parts) - 1:
            starts = [start for start in starts if start == last]
        found = [start for start in starts if list(output[start : start + len(part)]) == part]
        if not found:
            return False
        at = found[0] + len(part)
    return True
