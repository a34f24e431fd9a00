# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Which files have prose, and the findings in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tools.prose.checks import form_findings, line_findings
from tools.prose.markdown_passages import markdown_passages
from tools.prose.passages import Finding, Passage
from tools.prose.python_passages import python_passages
from tools.prose.vocabulary import Exemption, Vocabulary
from tools.prose.yaml_passages import yaml_passages
from tools.repository.collection_tree import tracked_or_new

_YAML = {".yml", ".yaml", ".sls"}
# releases are history, and are not changed
_NO_PROSE = {"changelogs/changelog.yaml", "tools/prose/vocabulary.yml"}


class Result(NamedTuple):
    """The findings in some files.

    Attributes:
        findings: those without an exemption.
        used: the exemptions that cover a finding.
    """

    findings: list[Finding]
    used: set[Exemption]


def files_with_prose(repository: Path) -> list[Path]:
    """Return the paths of all Markdown, Python and YAML files that git tracks or would add."""
    return sorted(
        name
        for name in tracked_or_new(repository)
        if name.suffix in {".md", ".py", *_YAML}
        and name.as_posix() not in _NO_PROSE
        and not (repository / name).is_symlink()
    )


def check(repository: Path, names: Iterable[Path], vocabulary: Vocabulary) -> Result:
    """Check files of a repository."""
    findings: list[Finding] = []
    used: set[Exemption] = set()
    for name in names:
        text = (repository / name).read_text(encoding="utf-8")
        for finding, context in _found(name, text, vocabulary):
            covering = {one for one in vocabulary.exemptions if one.covers(finding, context)}
            used |= covering
            if not covering:
                findings.append(finding)
    return Result(sorted(set(findings)), used)


def passages(name: Path, text: str) -> Iterator[Passage]:
    """Yield the prose of a file."""
    path = name.as_posix()
    if name.suffix == ".md":
        yield from markdown_passages(path, text)
    elif name.suffix == ".py":
        # messages of tests are for developers, and often values of a case
        yield from python_passages(path, text, messages=name.parts[0] != "tests")
    else:
        yield from yaml_passages(path, text, everything=name.parts[:2] == ("changelogs", "fragments"))


def _found(name: Path, text: str, vocabulary: Vocabulary) -> Iterator[tuple[Finding, str]]:
    """Yield each finding with the text around it."""
    for passage in passages(name, text):
        small = passage.flat.lower()
        for word in vocabulary.words:
            for finding in word.findings(passage, passage.flat if word.exact else small):
                yield finding, passage.flat
        for finding in form_findings(passage, vocabulary.forms):
            yield finding, passage.flat
    if name.suffix == ".md":
        for finding in line_findings(name.as_posix(), text, vocabulary.forms["long-line"]):
            yield finding, finding.subject
