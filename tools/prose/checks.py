# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Checks of forms: sentences, lines, headings and docstrings."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tools.prose.markdown_passages import prose_lines
from tools.prose.passages import CODE, HEADING, PICTURE, SUMMARY, Finding, Passage, sentences

_PREDICATE = re.compile(r"(?:is|has)_")
_STATES_TRUTH = re.compile(r"(?:Return )?(?:True|False|whether|Whether)\b|Forget|Collect")
_SHOWN = 60

Settings = Mapping[str, Any]


def form_findings(passage: Passage, forms: Mapping[str, Settings]) -> Iterator[Finding]:
    """Yield the findings of all checks of one passage, without those of lines."""
    if passage.kind != PICTURE:
        yield from _long_sentences(passage, forms["long-sentence"])
    if passage.kind == HEADING:
        yield from _capitals(passage, forms["heading-case"])
        if passage.text.rstrip().endswith((".", ":", ",", ";")):
            yield _finding(passage, "heading-end", forms, passage.text)
    if passage.kind == SUMMARY:
        if len(passage.text) > forms["summary-length"]["columns"]:
            yield _finding(passage, "summary-length", forms, passage.text)
        if _PREDICATE.match(passage.subject) and not _STATES_TRUTH.match(passage.text):
            yield _finding(passage, "predicate", forms, passage.text)


def line_findings(path: str, text: str, settings: Settings) -> Iterator[Finding]:
    """Yield the lines of a Markdown page that are too long and have a place to break them."""
    for number, line in prose_lines(text):
        longest = max((len(word) for word in line.split()), default=0)
        if len(line) > settings["columns"] and longest < settings["unbreakable"]:
            yield Finding(path, number, "long-line", _excerpt(line), settings["problem"], settings["remedy"])


def _long_sentences(passage: Passage, settings: Settings) -> Iterator[Finding]:
    parts = sentences(passage.flat)
    if passage.kind in settings["lists"]:
        parts = [part for position, text in parts for part in _entries(position, text)]
    for position, text in parts:
        if len(text.split()) > settings["words"]:
            line = passage.line_at(position)
            yield Finding(passage.path, line, "long-sentence", _excerpt(text), settings["problem"], settings["remedy"])


def _entries(position: int, text: str) -> Iterator[tuple[int, str]]:
    for match in re.finditer(r"[^;]+", text):
        yield position + match.start(), match[0]


def _capitals(passage: Passage, settings: Settings) -> Iterator[Finding]:
    names = set(settings["names"].split())
    words = re.findall(r"\S+", passage.text)
    for before, word in itertools.pairwise(words):
        bare = re.sub(r"^\W+|(?:'s)?\W*$", "", word)
        # a number, a colon or a bracket begins another text
        begins = before[-1] in ".:?)" or word[0] in '("' or before[0].isdigit()
        if re.fullmatch(r"[A-Z][a-z]+(?:-\w+)*", bare) and bare not in names and not begins:
            yield Finding(passage.path, passage.line, "heading-case", bare, settings["problem"], settings["remedy"])


def _finding(passage: Passage, rule: str, forms: Mapping[str, Settings], text: str) -> Finding:
    settings = forms[rule]
    return Finding(passage.path, passage.line, rule, _excerpt(text), settings["problem"], settings["remedy"])


def _excerpt(text: str) -> str:
    shown = " ".join(text.split()).replace(CODE, "`...`")
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."
