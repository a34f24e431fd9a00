# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Follows a page as a reader does: pastes its commands in order, and compares its outputs with the real ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from support.daemon.documents import shape
from support.recipes.printed import fences, is_shown
from support.repository import REPOSITORY
from support.start.new_user import NewUser, Terminal

# the home directory in outputs
PRINTED_HOME = "/home/you"


def follow(document: str, user: NewUser, fails: str = "") -> None:
    """Paste each block of commands of a page; an output block behind it shows the output of this block.

    ``fails`` is the first command line of a block with a command that has to fail.
    """
    with user.terminal() as terminal:
        blocks = fences((REPOSITORY / document).read_text(encoding="utf-8"))
        follow_blocks(blocks, user, terminal, lambda block: block.splitlines()[0] == fails)


def follow_blocks(
    blocks: Iterable[tuple[str, str]], user: NewUser, terminal: Terminal, fails: Callable[[str], bool]
) -> None:
    """Paste blocks of the languages sh and text; AssertionError if a command fails, or if an output differs."""
    began, output = time.monotonic(), ""
    for language, text in blocks:
        assert language in ("sh", "text"), text
        if language == "sh":
            output = terminal.paste(text, fails=fails(text)).replace(str(user.home), PRINTED_HOME)
            print(f"after {time.monotonic() - began:.0f} s: {text.splitlines()[-1]}")
        else:
            assert is_shown(shape(output), shape(text)), f"the output is\n{output}\nand the page has\n{text}"
