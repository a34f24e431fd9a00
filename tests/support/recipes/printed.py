# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The files, command lines and other blocks in the documents.

A block whose first line is a comment with a path, such as `# group_vars/web.yml`, is that file.
Each line of a shell block is a command, and so is the text behind a prompt in a `console` block.
The name of any other block is its first line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from support.repository import REPOSITORY

FILE, COMMAND, OTHER = "file", "command", "other"
SHELLS = ("sh", "bash", "shell")
PATH_COMMENT = re.compile(r"# ([\w.-]+(?:/[\w.-]+)*\.(?:cfg|ini|service|timer|ya?ml))$")
# a block in a list item has its indentation
FENCED = re.compile(r"^( *)```([\w-]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


class Printed(NamedTuple):
    """One file, command line or other block of a document.

    Attributes:
        name: the path of a file, a command line, or the first line of another block.
        text: the whole text.
    """

    document: str
    kind: str
    language: str
    name: str
    text: str


def printed_in(document: str) -> list[Printed]:
    """Return everything that a document of the repository prints, in order."""
    return [found for block in blocks_in(document) for found in block]


def blocks_in(document: str) -> list[list[Printed]]:
    """Return the files, commands and other texts of each block of a document."""
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    return [list(of_block(document, language, block)) for language, block in fences(text)]


def fences(text: str) -> list[tuple[str, str]]:
    """Return language and text of each fenced block, without the indentation of the fence."""
    return [
        (language, re.sub(f"^{indentation}", "", block, flags=re.MULTILINE))
        for indentation, language, block in FENCED.findall(text)
    ]


def of_block(document: str, language: str, block: str) -> Iterator[Printed]:
    first = block.splitlines()[0]
    path = PATH_COMMENT.match(first)
    if path:
        yield Printed(document, FILE, language, path[1], block)
    elif language in (*SHELLS, "console") and not block.startswith("#!"):
        for line in commands(language, block):
            yield Printed(document, COMMAND, language, line, line)
    else:
        yield Printed(document, OTHER, language, first, block)


def commands(language: str, block: str) -> list[str]:
    """Return the command lines of a block, with continued lines joined and without comments."""
    lines = re.sub(r"\\\n\s*", "", block).splitlines()
    if language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [re.sub(r"\s+# .*", "", line).strip() for line in lines if line.strip() and not line.startswith("#")]


def find(document: str, name: str) -> Printed:
    """Return the file, command line or block of this name; LookupError unless there is exactly one."""
    found = [printed for printed in printed_in(document) if printed.name == name]
    if len(found) != 1:
        raise LookupError(
            f"{document} prints {name!r} {len(found)} times; remedy: change the test together with the document"
        )
    return found[0]
