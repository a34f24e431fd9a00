# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Passages of prose, and findings in them."""

from __future__ import annotations

import re
from typing import NamedTuple

# stands for a code span, a value or a quotation of code: a noun without letters
CODE = "\N{OBJECT REPLACEMENT CHARACTER}"

# parts of Markdown and of Markdown-like text in Python and YAML
HEADING, PARAGRAPH, ITEM, CELL, PICTURE = "heading", "paragraph", "item", "cell", "picture"
# parts of Python and YAML
SUMMARY, DOCSTRING, COMMENT, MESSAGE, NAME, DESCRIPTION = (
    "summary",
    "docstring",
    "comment",
    "message",
    "name",
    "description",
)
KINDS = (HEADING, PARAGRAPH, ITEM, CELL, PICTURE, SUMMARY, DOCSTRING, COMMENT, MESSAGE, NAME, DESCRIPTION)

# not the end of an ellipsis
_END = re.compile(r"(?<!\.\.)[.!?][\"')]*\s+")


class Passage(NamedTuple):
    """A heading, paragraph, list item, table cell, docstring, comment, message or name.

    Attributes:
        path: the file, relative to the repository.
        line: the number of its first line.
        kind: one of KINDS.
        text: the text. Code is replaced by CODE; line breaks are those of the file.
        subject: the name of the function or class that a summary describes.
    """

    path: str
    line: int
    kind: str
    text: str
    subject: str = ""

    @property
    def flat(self) -> str:
        """The text in one line, with the same positions of all characters."""
        return self.text.replace("\n", " ")

    def line_at(self, position: int) -> int:
        """Return the number of the line in the file that has a position of the text."""
        return self.line + self.text.count("\n", 0, position)


class Finding(NamedTuple):
    """A place that breaks a rule.

    Attributes:
        path: the file, relative to the repository.
        line: the number of the line.
        rule: the name of the rule.
        subject: the words that break the rule.
        problem: the reason of the rule.
        remedy: the change that the writer can make.
    """

    path: str
    line: int
    rule: str
    subject: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f'{self.path}:{self.line}: "{self.subject}": {self.problem}; {self.remedy} [{self.rule}]'


def sentences(text: str) -> list[tuple[int, str]]:
    """Return position and text of each sentence; a blank follows its full stop or question mark."""
    ends = [match.end() for match in _END.finditer(text)]
    found = []
    for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
        sentence = text[start:end]
        if sentence.strip():
            found.append((start + len(sentence) - len(sentence.lstrip()), sentence.strip()))
    return found
