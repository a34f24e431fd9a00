# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The rules of vocabulary.yml about words, and their exceptions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tools.prose.passages import KINDS, Finding, Passage, sentences

FILE = Path(__file__).with_name("vocabulary.yml")


class Exemption(NamedTuple):
    """A place where a finding is right.

    Attributes:
        rule: name of the rule.
        file: path or pattern of paths.
        text: a part of the passage that contains the finding.
        reason: why the text stays.
    """

    rule: str
    file: str
    text: str
    reason: str

    def covers(self, finding: Finding, context: str) -> bool:
        """Return True if a finding in this context stays."""
        return self.rule == finding.rule and fnmatch(finding.path, self.file) and self.text in context


class Word(NamedTuple):
    """A rule about words.

    Attributes:
        name: its key.
        pattern: matches the words.
        kinds: the kinds of passages for which it holds.
        exact: upper and lower case differ.
        at_start: the words begin a sentence that is not a question.
        problem: the reason of the rule.
        remedy: the change that the writer can make.
    """

    name: str
    pattern: re.Pattern[str]
    kinds: frozenset[str]
    exact: bool
    at_start: bool
    problem: str
    remedy: str

    def findings(self, passage: Passage, text: str) -> Iterator[Finding]:
        """Yield each match in a passage.

        Args:
            passage: the passage.
            text: its text in one line and in small letters, or as it is if the pattern depends on the case.
        """
        if passage.kind not in self.kinds:
            return
        for start, end in self._matches(text):
            if not self.at_start or _begins_statement(passage.flat, start):
                words = passage.flat[start:end].strip()
                yield Finding(passage.path, passage.line_at(start), self.name, words, self.problem, self.remedy)

    def _matches(self, text: str) -> Iterator[tuple[int, int]]:
        # a pattern that began with a test of the character before it would be slow
        match = self.pattern.search(text)
        while match:
            start, end = match.span()
            whole = start == 0 or not (text[start - 1].isalnum() and text[start].isalnum())
            if whole:
                yield start, end
            match = self.pattern.search(text, end if whole and end > start else start + 1)


def _begins_statement(text: str, start: int) -> bool:
    """Return True if a sentence, or its part after a semicolon, begins at a position and is not a question."""
    positions = {
        position + match.end()
        for position, sentence in sentences(text)
        if not sentence.endswith("?")
        for match in re.finditer(r"^|; ", sentence)
    }
    return start in positions


class Vocabulary(NamedTuple):
    """The rules.

    Attributes:
        words: rules about words.
        forms: the settings of the other checks, by their names.
        exemptions: the places where findings stay.
        examples: sentences by the name of a rule: one that breaks it, and one that keeps it.
    """

    words: tuple[Word, ...]
    forms: Mapping[str, Mapping[str, Any]]
    exemptions: tuple[Exemption, ...]
    examples: Mapping[str, tuple[str, str]]


def load(file: Path = FILE) -> Vocabulary:
    """Return the rules of a file; ValueError for a rule without problem, remedy or examples."""
    data = yaml.safe_load(file.read_text(encoding="utf-8"))
    words, examples = [], {}
    for name, rule in data["words"].items():
        missing = {"pattern", "problem", "remedy", "breaks", "keeps"} - set(rule)
        unknown = set(rule.get("kinds", ())) - set(KINDS)
        if missing or unknown:
            raise ValueError(
                f"{file.name}: {name}: missing {sorted(missing)}, unknown kinds {sorted(unknown)}; add them"
            )
        words.append(
            Word(
                name=name,
                pattern=_compiled(rule["pattern"]),
                kinds=frozenset(rule.get("kinds", KINDS)),
                exact=rule.get("case") == "exact",
                at_start=rule.get("sentence") == "start",
                problem=rule["problem"],
                remedy=rule["remedy"],
            )
        )
        examples[name] = (rule["breaks"], rule["keeps"])
    exemptions = [
        Exemption(name, **exemption)
        for name, rule in {**data["words"], **data["forms"]}.items()
        for exemption in rule.get("except", ())
    ]
    return Vocabulary(tuple(words), data["forms"], tuple(exemptions), examples)


def _compiled(pattern: str) -> re.Pattern[str]:
    # a folded scalar has blanks in the place of line breaks, before each "|"
    joined = re.sub(r"\s+\|", "|", pattern.strip())
    return re.compile(rf"(?:{joined})(?!\w)")
