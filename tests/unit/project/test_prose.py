# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The prose linter: the rules of tools/prose/vocabulary.yml, and the texts to which they apply."""

from __future__ import annotations

import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from support.repository import REPOSITORY
from tools.prose import vocabulary
from tools.prose.linter import check, files_with_prose, passages
from tools.prose.passages import (
    CELL,
    CODE,
    COMMENT,
    DESCRIPTION,
    DOCSTRING,
    HEADING,
    ITEM,
    MESSAGE,
    NAME,
    PARAGRAPH,
    PICTURE,
    SUMMARY,
    Finding,
)
from tools.prose.wrapping import wrapped

VOCABULARY = vocabulary.load()

# how a text of each kind is written
WRITTEN = {
    HEADING: ("page.md", "# {}\n"),
    PARAGRAPH: ("page.md", "{}\n"),
    NAME: ("tasks.yml", "- name: '{}'\n"),
    SUMMARY: ("module.py", '"""{}"""\n'),
}


def found(tmp_path: Path, name: str, text: str) -> list[Finding]:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return check(tmp_path, [Path(name)], VOCABULARY).findings


def rules_broken_by(tmp_path: Path, sentence: str, kinds: frozenset[str]) -> set[str]:
    kind = PARAGRAPH if PARAGRAPH in kinds else min(kinds & set(WRITTEN))
    name, form = WRITTEN[kind]
    return {finding.rule for finding in found(tmp_path, name, form.format(sentence))}


@pytest.mark.parametrize("word", VOCABULARY.words, ids=lambda word: word.name)
def test_word_rule_with_its_examples_finds_one_and_permits_the_other(word: vocabulary.Word, tmp_path: Path) -> None:
    breaks, keeps = VOCABULARY.examples[word.name]
    assert word.name in rules_broken_by(tmp_path, breaks, word.kinds)
    assert word.name not in rules_broken_by(tmp_path, keeps, word.kinds)


NUMBERED = " ".join(f"word{number}" for number in range(30))
LONG = "The daemon " + "waits and\n" * 19
FORMS = {
    "long-sentence": ("page.md", f"{LONG}ends.\n", f"{LONG[:-1]}.\n"),
    "long-line": ("page.md", f"{NUMBERED[:101]}\n", "`" + "long_name " * 12 + "`\n"),
    "heading-case": ("page.md", "# The New Daemon\n", "# The hook runner of Azure, 2.1 On a VM\n"),
    "heading-end": ("page.md", "# Install:\n", "# Install\n"),
    "predicate": (
        "module.py",
        'def is_open():\n    """Check the state."""\n',
        'def is_open():\n    """Return True if it is open."""\n',
    ),
    "summary-length": ("module.py", f'"""{"a" * 111}"""\n', f'"""{"a" * 110}"""\n'),
}


@pytest.mark.parametrize("form", VOCABULARY.forms)
def test_form_rule_finds_one_text_and_permits_the_other(form: str, tmp_path: Path) -> None:
    name, breaks, keeps = FORMS[form]
    assert {finding.rule for finding in found(tmp_path, name, breaks)} == {form}
    assert found(tmp_path, name, keeps) == []


def test_sentence_with_semicolons_in_a_table_counts_by_its_parts(tmp_path: Path) -> None:
    row = "| a | b |\n| --- | --- |\n| one | {} |\n"
    assert found(tmp_path, "page.md", row.format(f"{NUMBERED}; {NUMBERED}")) == []
    assert len(found(tmp_path, "page.md", row.format(f"{NUMBERED} {NUMBERED}"))) == 1


def test_text_of_a_picture_may_be_a_long_line_and_a_long_sentence(tmp_path: Path) -> None:
    text = " ".join(f"{word}a" for word in NUMBERED.split() + NUMBERED.split())
    assert found(tmp_path, "page.md", f"![{text}](picture.svg)\n") == []


def test_wrapping_a_page_breaks_prose_and_keeps_code_tables_and_meaning() -> None:
    words = NUMBERED.split()
    code = f"`{' '.join(words[:9])}`"
    page = f"- {' '.join(words)}\n\n> {' '.join(words)} {code}\n\n| {NUMBERED} |\n| --- |\n\n```\n{NUMBERED}\n```\n"
    long = [number for number, line in enumerate(page.splitlines(), 1) if len(line) > 100]
    lines = wrapped(page, long, 100).splitlines()
    assert [line for line in lines if len(line) > 100] == [f"| {NUMBERED} |", NUMBERED]
    assert [line[:2] for line in lines[:7]] == ["- ", "  ", "  ", "", "> ", "> ", "> "]
    assert code in "\n".join(lines)


def test_wrapping_that_would_begin_a_list_is_refused() -> None:
    text = NUMBERED[:97] + " - more"
    with pytest.raises(ValueError, match="break it by hand"):
        wrapped(f"{text} words that follow\n", [1], 98)


PAGE = """\
<!--
somebody
-->

# Nobody

Text with `nobody` and a [link](nobody.md),
and nobody in its second line. "A quotation of
nobody".

```sh
nobody
```

- an item of nobody

| head | nobody |
| --- | --- |
| cell | ![nobody](picture.svg) |
"""


def test_page_has_findings_in_its_prose_only_with_their_lines(tmp_path: Path) -> None:
    assert [finding.line for finding in found(tmp_path, "page.md", PAGE)] == [5, 8, 15, 17, 19]
    kinds = [passage.kind for passage in passages(Path("page.md"), PAGE)]
    assert kinds == [HEADING, PARAGRAPH, ITEM, CELL, CELL, CELL, PICTURE, CELL]


MODULE = '''\
"""Read what nobody reads.

Args:
    value: of nobody.
        Another line about nobody.

CLI Example::

    nobody
"""

# a comment of two lines,
# the second about nobody
VALUE = "# nobody"  # nobody

DOCUMENTATION = """
options:
  one:
    description: Nobody sets it.
"""


def read(path: str) -> None:
    """Fail for ``nobody``."""
    raise ValueError(f"{path}: nobody reads it; read it")
'''


def test_module_has_findings_in_docstrings_comments_documentation_and_messages(tmp_path: Path) -> None:
    assert [finding.line for finding in found(tmp_path, "module.py", MODULE)] == [1, 4, 5, 13, 14, 19, 25]
    kinds = {passage.kind for passage in passages(Path("module.py"), MODULE)}
    assert kinds == {SUMMARY, DOCSTRING, COMMENT, DESCRIPTION, MESSAGE}


def test_module_of_the_tests_has_no_findings_in_messages(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    text = MODULE.partition("def read")[2]
    assert found(tmp_path, "tests/module.py", f"def read{text}") == []


TASKS = """\
# nobody
- name: Install for nobody
  ansible.builtin.debug:
    msg: >-
      The folder {{ nobody }}
      of nobody
  vars:
    other: a value of nobody
"""


def test_tasks_have_findings_in_comments_names_and_messages(tmp_path: Path) -> None:
    assert [finding.line for finding in found(tmp_path, "tasks.yml", TASKS)] == [1, 2, 6]


def test_ansible_markup_in_a_description_is_code(tmp_path: Path) -> None:
    text = "description: Set O(nobody) to V(nobody), see L(the page of nobody, https://nobody.example)."
    assert [finding.subject for finding in found(tmp_path, "spec.yml", text)] == ["nobody"]
    (passage,) = passages(Path("spec.yml"), text)
    assert passage.text == f"Set {CODE} to {CODE}, see the page of nobody."


def test_exemption_covers_its_file_rule_and_text_only(tmp_path: Path) -> None:
    exemption = vocabulary.Exemption("indefinite-person", "page.md", "user nobody", "it is a name")
    rules = VOCABULARY._replace(exemptions=(exemption,))
    (tmp_path / "page.md").write_text("The user nobody.\n\nIt is nobody.\n", encoding="utf-8")
    (tmp_path / "other.md").write_text("The user nobody.\n", encoding="utf-8")
    result = check(tmp_path, [Path("page.md"), Path("other.md")], rules)
    assert [(finding.path, finding.line) for finding in result.findings] == [("other.md", 1), ("page.md", 3)]
    assert result.used == {exemption}


def test_rule_without_an_example_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rules.yml"
    file.write_text("words: {one: {pattern: a, problem: b, remedy: c, breaks: a}}\nforms: {}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"rules.yml: one: missing \['keeps'\]"):
        vocabulary.load(file)


FILES = files_with_prose(REPOSITORY)
# groups of about equal size, for several workers
PARTS = {
    "unit tests": [name for name in FILES if name.parts[:2] == ("tests", "unit")],
    "other tests": [name for name in FILES if name.parts[0] == "tests" and name.parts[1] != "unit"],
    "roles": [name for name in FILES if name.parts[0] == "roles"],
    "other files": [name for name in FILES if name.parts[0] not in ("tests", "roles")],
}


@pytest.mark.parametrize("part", PARTS)
def test_prose_of_the_repository_keeps_the_rules(part: str) -> None:
    findings = check(REPOSITORY, PARTS[part], VOCABULARY).findings
    assert findings == [], "\n" + "\n".join(map(str, findings))


@pytest.mark.parametrize("exemption", VOCABULARY.exemptions, ids=lambda exemption: exemption.rule)
def test_exemption_has_a_reason_and_covers_a_finding(exemption: vocabulary.Exemption) -> None:
    names = [name for name in FILES if fnmatch(name.as_posix(), exemption.file)]
    assert exemption.reason
    assert exemption in check(REPOSITORY, names, VOCABULARY).used


def test_command_with_a_page_that_keeps_the_rules_succeeds() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tools.prose", "docs/style.md"],
        cwd=REPOSITORY,
        env={"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
