# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The one reader of what pages print: blocks, files, command lines with their output, and its comparison.

A block whose first line is a comment with a path, such as `# group_vars/web.yml`, is that file.
Each line of a shell block is a command, and so is the text behind a prompt in a `console` block.
The name of any other block is its first line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markdown_it import MarkdownIt

from support.repository import REPOSITORY

FILE, COMMAND, OTHER = "file", "command", "other"
SHELLS = ("sh", "bash", "shell")
# a line of an output that stands for any lines
ELLIPSIS = "..."
PATH_COMMENT = re.compile(r"# ([\w.-]+(?:/[\w.-]+)*\.(?:cfg|ini|service|timer|ya?ml))$")
CONTINUED = re.compile(r"\\\n\s*")


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
    return [
        found
        for language, block in fences((REPOSITORY / document).read_text(encoding="utf-8"))
        for found in _of_block(document, language, block)
    ]


def find(document: str, name: str) -> Printed:
    """Return the file, command line or block of this name; LookupError unless there is exactly one."""
    found = [printed for printed in printed_in(document) if printed.name == name]
    if len(found) != 1:
        raise LookupError(
            f"{document} prints {name!r} {len(found)} times; remedy: change the test together with the document"
        )
    return found[0]


def fences(text: str) -> list[tuple[str, str]]:
    """Return language and text of each code block of a Markdown text, without indentation."""
    tokens = MarkdownIt("commonmark").parse(text)
    return [(token.info, token.content) for token in tokens if token.type in ("fence", "code_block")]


def dialogues(block: str) -> list[tuple[str, str]]:
    """Return (command, output) of each prompt in the text of a console block, with continued lines joined."""
    parts = re.split(r"^\$ ", CONTINUED.sub("", block), flags=re.MULTILINE)[1:]
    return [(command, output) for command, _newline, output in (part.partition("\n") for part in parts)]


def is_shown(output: Sequence[str], printed: Sequence[str]) -> bool:
    """Return True if the lines of a printed output, with its ellipses, stand for the lines of the output."""
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


def replaced(text: str, differs: Sequence[tuple[str, str]]) -> list[str]:
    """Return the lines of an output, with words for patterns of text that differs between two runs."""
    for pattern, word in differs:
        text = re.sub(pattern, word, text)
    return [line.rstrip() for line in text.rstrip("\n").splitlines()]


def _of_block(document: str, language: str, block: str) -> Iterator[Printed]:
    first = block.splitlines()[0]
    path = PATH_COMMENT.match(first)
    if path:
        yield Printed(document, FILE, language, path[1], block)
    elif language == "console":
        for command, _output in dialogues(block):
            yield Printed(document, COMMAND, language, command, command)
    elif language in SHELLS and not block.startswith("#!"):
        for line in CONTINUED.sub("", block).splitlines():
            if line.strip() and not line.startswith("#"):
                command = re.sub(r"\s+# .*", "", line).strip()
                yield Printed(document, COMMAND, language, command, command)
    else:
        yield Printed(document, OTHER, language, first, block)
